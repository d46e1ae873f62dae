"""Makes mechanisms by name; a name can be taken once only."""

from collections.abc import Callable
from typing import Any, Final

from privacy.embedding.base import Embedding
from privacy.mechanisms.base import Mechanism, MechanismError
from privacy.mechanisms.exponential import ExponentialMechanism
from privacy.mechanisms.paper import PaperMechanism
from privacy.mechanisms.uniform import UniformMechanism
from privacy.pools.spread import ANGULAR

Maker = Callable[..., Mechanism]

_MAKERS: Final[dict[str, Maker]] = {}


def register_mechanism(name: str, maker: Maker) -> None:
    """Add a mechanism.  ``maker(embedding, **parameters)`` returns it.

    Raises:
        ValueError: The name is taken.
    """
    if name in _MAKERS:
        raise ValueError(f"there is a mechanism {name!r} already")
    _MAKERS[name] = maker


def mechanism_names() -> tuple[str, ...]:
    """Return the names that `make_mechanism` knows."""
    return tuple(_MAKERS)


def make_mechanism(
    name: str,
    embedding: Embedding,
    *,
    epsilon: float | None = None,
    tau: float | None = None,
    metric: str = ANGULAR,
    never_self: bool = True,
    theta: float | None = None,
) -> Mechanism:
    """Return the mechanism ``name``; parameters it does not have must be left out.

    ``exponential`` needs epsilon and tau and takes the metric, ``uniform`` takes none of them,
    ``paper`` needs theta and takes epsilon (none: uniform within C_theta).

    Raises:
        MechanismError: Unknown name, a missing or meaningless parameter.
    """
    if name not in _MAKERS:
        raise MechanismError(f"unknown mechanism {name!r}: there are {', '.join(_MAKERS)}")
    given: dict[str, Any] = {"epsilon": epsilon, "tau": tau, "theta": theta}
    parameters = {key: value for key, value in given.items() if value is not None}
    if metric != ANGULAR:
        parameters["metric"] = metric
    try:
        return _MAKERS[name](embedding, never_self=never_self, **parameters)
    except TypeError as error:
        raise MechanismError(
            f"the mechanism {name!r} got {sorted(parameters)}: exponential needs epsilon and tau "
            "(metric if wanted), uniform nothing, paper theta (epsilon if wanted)"
        ) from error


register_mechanism("exponential", ExponentialMechanism)
register_mechanism("uniform", UniformMechanism)
register_mechanism("paper", PaperMechanism)
