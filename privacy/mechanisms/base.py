"""What every mechanism that draws substitutes has in common (DESIGN 3.1, 3.2)."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from privacy.mechanisms.exclusions import Exclusions
from privacy.pools.pool import Pool
from privacy.randomness import Randomness

Forbidden = Callable[[str], bool] | Exclusions


class PoolExhausted(Exception):
    """No name is left to draw; the policy's exhaustion rule decides what happens next."""


class MechanismError(ValueError):
    """The parameters of a mechanism make no sense; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Draw:
    """One substitute, and what the ledger is charged for it.

    Attributes:
        index: Position in the pool (the same at every level).
        name: The substitute.
        epsilon: Bound on the privacy loss between any two originals; infinite for `paper`.
        delta: Probability with which that bound may fail.
        mechanism: Name of the mechanism.
        metric: ``angular``, ``chordal`` or ``none``: what epsilon scales with below the worst case.
        angle: Realised angle/pi between original and substitute: a diagnostic, no privacy measure.
        cosine: Realised cosine, likewise.
    """

    index: int
    name: str
    epsilon: float
    delta: float
    mechanism: str
    metric: str
    angle: float
    cosine: float


class Mechanism(Protocol):
    """Draws same-type substitutes from a public pool."""

    @property
    def name(self) -> str: ...

    @property
    def metric(self) -> str: ...

    def draw(
        self,
        original: str,
        pool: Pool,
        taken: Collection[int],
        forbidden: Forbidden,
        rng: Randomness,
    ) -> Draw:
        """Draw a substitute for ``original``.

        Args:
            taken: Indices issued in this session already; they have left the pool.
            forbidden: What must not be drawn, see `Exclusions`; a predicate over names is
                evaluated on every remaining name (slower).

        Raises:
            PoolExhausted: Nothing remains.
        """

    def probabilities(
        self, original: str, pool: Pool, taken: Collection[int] = ()
    ) -> NDArray[np.float64]:
        """Return the exact output distribution before exclusions, shape (len(pool),)."""

    def log_probabilities(
        self, vector: NDArray[np.float64], pool: Pool, taken: Collection[int] = ()
    ) -> NDArray[np.float64]:
        """Return its logarithm for an input vector (unit or zero); -inf for what cannot come."""

    def loss_bound(self, a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
        """Return the bound this mechanism claims on the loss between two input vectors."""

    def base_charge(self, pool: Pool) -> tuple[float, float]:
        """Return the (epsilon, delta) of a draw without exclusions, for any two inputs."""

    def exclusion_charge(self, pool: Pool, taken: int, count: int) -> tuple[float, float]:
        """Return (epsilon, delta) of excluding at most ``count`` names, ``taken`` having left."""
