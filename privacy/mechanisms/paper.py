"""The truncated pool C_theta(w) of the textual-DP paper, for reproducing its tables.

"Textual Differential Privacy for Context-Aware Reasoning with Large Language Models": substitutes
come from {u : cos(w, u) < theta}.  That set depends on w, so an output in C(w) but not in C(w') has
infinite loss: there is no finite epsilon (DESIGN 3.2).
"""

import math
import weakref
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privacy.embedding.base import Embedding
from privacy.mechanisms.base import MechanismError
from privacy.mechanisms.drawing import DrawingMechanism
from privacy.pools.pool import Pool

_BLOCK: Final = 256
_ROUNDING: Final = 1e-5


class PaperMechanism(DrawingMechanism):
    """Draws from C_theta(w), uniformly (``epsilon=None``) or with weights exp(-(epsilon/2)(1-cos)).

    Every draw is charged epsilon = inf and the delta of the dictionary: the largest probability,
    over all names of the pool as originals, of an output that some other name could not give.

    Raises:
        MechanismError: theta outside (-1, 1], or epsilon not positive and finite.
    """

    name = "paper"
    metric = "none"

    def __init__(
        self,
        embedding: Embedding,
        *,
        theta: float,
        epsilon: float | None = None,
        never_self: bool = True,
    ) -> None:
        super().__init__(embedding, never_self)
        if not -1.0 < theta <= 1.0:
            raise MechanismError(f"theta must lie in (-1, 1], not {theta}")
        if epsilon is not None and not (epsilon > 0.0 and math.isfinite(epsilon)):
            raise MechanismError(f"epsilon must be a positive number, not {epsilon}")
        self.theta = theta
        self.epsilon = epsilon
        self._known: weakref.WeakKeyDictionary[Pool, tuple[float, float]] = (
            weakref.WeakKeyDictionary()
        )

    def log_weights(
        self, vector: NDArray[np.float64], pool: Pool, taken: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Return the log weights inside C_theta(w), -inf outside and where taken."""
        cosine = pool.cosines_to(vector)
        weights = np.zeros(len(pool))
        if self.epsilon is not None:
            weights = -0.5 * self.epsilon * (1.0 - cosine)
        weights[taken | (cosine >= self.theta)] = -np.inf
        return weights

    def base_charge(self, pool: Pool) -> tuple[float, float]:
        """Return (inf, delta of the dictionary)."""
        return math.inf, self.dictionary_delta(pool)

    def largest_probability(self, pool: Pool, taken: int) -> float:
        """Return a bound for names of the pool as originals; leaving names can only raise it."""
        largest = self._dictionary(pool)[1]
        return largest / (1.0 - taken * largest) if (taken + 1) * largest < 1.0 else 1.0

    def loss_bound(self, a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
        """Return infinity."""
        return math.inf

    def dictionary_delta(self, pool: Pool) -> float:
        """Return max over names w, w' of the pool of Pr_w[C(w) minus C(w')], rounded up.

        For the pool before any name has left.  Costs n^2 comparisons and n^3 additions (as one
        matrix product); cached per pool.
        """
        return self._dictionary(pool)[0]

    def _dictionary(self, pool: Pool) -> tuple[float, float]:
        """Return (delta, largest probability of one name) over the names of the pool."""
        known = self._known.get(pool)
        if known is None:
            known = self._compute(pool)
            self._known[pool] = known
        return known

    def _compute(self, pool: Pool) -> tuple[float, float]:
        vectors = pool.vectors
        blocks = range(0, len(vectors), _BLOCK)
        outside = np.empty((len(vectors), len(vectors)), dtype=np.float32)
        for start in blocks:
            cosine = vectors[start : start + _BLOCK] @ vectors.T
            outside[start : start + _BLOCK] = cosine >= self.theta
        worst = largest = 0.0
        for start in blocks:
            cosine = vectors[start : start + _BLOCK] @ vectors.T
            weights = np.ones_like(cosine)
            if self.epsilon is not None:
                weights = np.exp(-0.5 * self.epsilon * (1.0 - cosine))
            weights[cosine >= self.theta] = 0.0
            totals = weights.sum(axis=1, keepdims=True)
            shares = np.divide(weights, totals, out=np.zeros_like(weights), where=totals > 0)
            largest = max(largest, float(shares.max()))
            worst = max(worst, float((shares.astype(np.float32) @ outside.T).max()))
        return min(1.0, worst * (1.0 + _ROUNDING)), min(1.0, largest * (1.0 + _ROUNDING))
