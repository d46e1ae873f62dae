"""The privacy account of a data set: an append-only history and what it adds up to.

Privacy loss distributions with pessimistic discretisation (Koskela et al. 2020; Doroshenko et al.,
"Connect the Dots", 2022; library dp-accounting), hence an upper bound. The Gaussian-DP approximation
is not offered: it reports less than the truth.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, Final, Literal

from learning.bitfit.errors import CheckpointError

Adjacency = Literal["add_remove", "replace_one"]

MECHANISM: Final = "poisson-sampled gaussian, PLD pessimistic, 1"
_WIDEST: Final = 2.0**14
_NARROWEST: Final = 0.1
_ACCURACY: Final = 5e-4
# Width of a cell of the discretised privacy loss; a wider one is faster and gives a larger epsilon.
FINE: Final = 1e-4
COARSE: Final = 1e-3


@dataclass(frozen=True, slots=True)
class Entry:
    """Steps of one kind.

    Attributes:
        rate: Poisson sampling rate q, in (0, 1].
        noise_multiplier: Sigma over the clipping norm; 0 for steps without noise.
        steps: Number of noisy steps, empty batches included.
        label: Which phase or run they belong to.
    """

    rate: float
    noise_multiplier: float
    steps: int
    label: str = ""

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise ValueError(f"the sampling rate must be in (0, 1], not {self.rate}")
        if not (math.isfinite(self.noise_multiplier) and self.noise_multiplier >= 0):
            raise ValueError("the noise multiplier must be a number >= 0")
        if self.steps < 0:
            raise ValueError("steps must be >= 0")


class Accountant:
    """What one data set has been charged, over all phases, reruns and trials on it."""

    def __init__(self, history: Iterable[Entry] = ()) -> None:
        self._history: list[Entry] = list(history)

    @property
    def history(self) -> tuple[Entry, ...]:
        """Everything charged, oldest first."""
        return tuple(self._history)

    @property
    def steps(self) -> int:
        """Number of noisy steps charged."""
        return sum(entry.steps for entry in self._history)

    def charge(self, rate: float, noise_multiplier: float, steps: int = 1, label: str = "") -> None:
        """Append steps; equal ones in a row become one entry.  Raises ValueError."""
        new = Entry(rate, noise_multiplier, steps, label)
        last = self._history[-1] if self._history else None
        if last and (last.rate, last.noise_multiplier, last.label) == (
            rate,
            noise_multiplier,
            label,
        ):
            self._history[-1] = Entry(rate, noise_multiplier, last.steps + steps, label)
        else:
            self._history.append(new)

    def epsilon(
        self, delta: float, adjacency: Adjacency = "add_remove", *, interval: float = FINE
    ) -> float:
        """The smallest proven epsilon at ``delta`` for the whole history; infinite without noise.

        Args:
            delta: In (0, 1).
            adjacency: Neighbouring data sets differ by one record added or removed, or by one
                record's value.
            interval: Cell width of the discretisation, ``FINE`` or ``COARSE``.
        """
        if not 0 < delta < 1:
            raise ValueError(f"delta must be in (0, 1), not {delta}")
        merged: dict[tuple[float, float], int] = {}
        for entry in self._history:
            key = (entry.rate, entry.noise_multiplier)
            merged[key] = merged.get(key, 0) + entry.steps
        steps = tuple((q, s, n) for (q, s), n in sorted(merged.items()) if n)
        return _epsilon(steps, delta, adjacency, interval)

    def state_dict(self) -> dict[str, Any]:
        """Plain data for a checkpoint."""
        return {"mechanism": MECHANISM, "history": [asdict(entry) for entry in self._history]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over a saved history that continues this one.

        Raises:
            CheckpointError: Another mechanism, or a history from which charges have gone.
        """
        if state.get("mechanism") != MECHANISM:
            raise CheckpointError(
                f"the saved account is of mechanism {state.get('mechanism')!r}, not {MECHANISM!r}; "
                "start a new account and add its epsilon by hand"
            )
        loaded = [Entry(**entry) for entry in state["history"]]
        if not _continues(self._history, loaded):
            raise CheckpointError(
                "the saved account lacks charges that this one holds: an account only grows"
            )
        self._history = loaded


def _continues(old: list[Entry], new: list[Entry]) -> bool:
    if len(new) < len(old):
        return False
    for number, entry in enumerate(old):
        other = new[number]
        same = (entry.rate, entry.noise_multiplier, entry.label) == (
            other.rate,
            other.noise_multiplier,
            other.label,
        )
        may_grow = number == len(old) - 1
        if not same or other.steps < entry.steps or (other.steps > entry.steps and not may_grow):
            return False
    return True


@lru_cache(maxsize=256)
def _epsilon(
    steps: tuple[tuple[float, float, int], ...],
    delta: float,
    adjacency: Adjacency,
    interval: float,
) -> float:
    if not steps:
        return 0.0
    if any(sigma == 0 for _, sigma, _ in steps):
        return math.inf
    import dp_accounting
    from dp_accounting.pld import PLDAccountant

    relation = {
        "add_remove": dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
        "replace_one": dp_accounting.NeighboringRelation.REPLACE_ONE,
    }[adjacency]
    accountant = PLDAccountant(relation, value_discretization_interval=interval)
    for rate, sigma, count in steps:
        gaussian = dp_accounting.GaussianDpEvent(sigma)
        accountant.compose(dp_accounting.PoissonSampledDpEvent(rate, gaussian), count)
    return max(0.0, float(accountant.get_epsilon(delta)))


def calibrate(
    epsilon: float,
    delta: float,
    plan: Sequence[tuple[float, int]],
    spent: Accountant | None = None,
) -> float:
    """The smallest noise multiplier with which the planned steps stay within ``epsilon``.

    Args:
        epsilon: Target for everything, ``spent`` included, add/remove adjacency.
        delta: Target delta.
        plan: (Poisson sampling rate, number of steps) of every phase, fixed in advance.
        spent: What the data set has been charged before.

    Returns:
        Sigma, rounded up so that the target is kept; relative accuracy 1e-3.

    Raises:
        ValueError: The target is out of range, or the budget is spent already.
    """
    if not (epsilon > 0 and math.isfinite(epsilon)):
        raise ValueError(f"epsilon must be a number > 0, not {epsilon}")
    if spent and spent.epsilon(delta) >= epsilon:
        raise ValueError(f"the budget of epsilon {epsilon} at delta {delta} is spent already")
    history = spent.history if spent else ()

    def cost(sigma: float) -> float:
        account = Accountant([*history, *(Entry(rate, sigma, steps) for rate, steps in plan)])
        return account.epsilon(delta, interval=COARSE)

    def fits(sigma: float) -> bool:
        return cost(sigma) <= epsilon

    def refuse_infinite(sigma: float) -> None:
        if math.isinf(cost(sigma)):
            raise ValueError(
                f"epsilon {epsilon} at delta {delta} is beyond the accounting's arithmetic for these "
                "steps: the tails that it cuts off weigh more than delta. Choose a larger delta, or "
                "fewer steps"
            )

    # From much noise down: the work of composing grows with the loss, which then stays near the target.
    high = _WIDEST
    refuse_infinite(high)
    if not fits(high):
        raise ValueError("no noise multiplier keeps this budget; what is left is too little")
    low = high / 2
    while low > _NARROWEST and fits(low):
        low, high = low / 2, low
    while high - low > _ACCURACY * high:
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    refuse_infinite(low)  # what is found then is far too much: noise with no tail to cut off
    return high
