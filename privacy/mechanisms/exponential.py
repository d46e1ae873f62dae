"""The exponential mechanism with a target distance over a fixed public pool (DESIGN 3.1, 3.2).

McSherry and Talwar, "Mechanism Design via Differential Privacy" (FOCS 2007), with the score
-|d(w, u) - tau|, which is 1-Lipschitz in w for the metric d; proof in docs/mechanism.md.
"""

import math

import numpy as np
from numpy.typing import NDArray

from privacy.embedding.base import Embedding
from privacy.embedding.geometry import angle, chord
from privacy.mechanisms.base import MechanismError
from privacy.mechanisms.drawing import DrawingMechanism
from privacy.pools.pool import Pool
from privacy.pools.spread import ANGULAR, CHORDAL

COSINE = "cosine"


class ExponentialMechanism(DrawingMechanism):
    """Pr[u | w] is proportional to exp(-(epsilon/2) |d(w, u) - tau|), full support.

    With ``metric="angular"`` d is angle/pi in [0, 1]; the loss between w and w' is at most
    epsilon * angle(w, w'), and epsilon for any two inputs.  With ``metric="cosine"`` d is 1 - cos
    in [0, 2]; the loss is at most epsilon * |w - w'| (chordal), 2 * epsilon for any two inputs.

    Raises:
        MechanismError: epsilon is not positive and finite, tau outside the range of d, or the
            metric unknown.
    """

    name = "exponential"

    def __init__(
        self,
        embedding: Embedding,
        *,
        epsilon: float,
        tau: float,
        metric: str = ANGULAR,
        never_self: bool = True,
    ) -> None:
        super().__init__(embedding, never_self)
        self._range = {ANGULAR: 1.0, COSINE: 2.0}.get(metric, 0.0)
        if not self._range:
            raise MechanismError(f"unknown metric {metric!r}: use 'angular' or 'cosine'")
        if not (epsilon > 0.0 and math.isfinite(epsilon)):
            raise MechanismError(f"epsilon must be a positive number, not {epsilon}")
        if not 0.0 <= tau <= self._range:
            raise MechanismError(f"tau must lie in [0, {self._range:g}] for {metric}, not {tau}")
        self.epsilon = epsilon
        self.tau = tau
        self.metric = ANGULAR if metric == ANGULAR else CHORDAL

    def log_weights(
        self, vector: NDArray[np.float64], pool: Pool, taken: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Return -(epsilon/2) |d - tau| per name, -inf where taken."""
        if self.metric == ANGULAR:
            distance = pool.angles_to(vector)
        else:
            distance = 1.0 - pool.cosines_to(vector)
        weights = -0.5 * self.epsilon * np.abs(distance - self.tau)
        weights[taken] = -np.inf
        return np.asarray(weights, dtype=np.float64)

    def base_charge(self, pool: Pool) -> tuple[float, float]:
        """Return (epsilon times the diameter of the metric, 0)."""
        return self.epsilon * self._range, 0.0

    def largest_probability(self, pool: Pool, taken: int) -> float:
        """Return the pool's public bound for this epsilon and tau."""
        return pool.p_max(self.epsilon, self.tau, self.metric, taken)

    def loss_bound(self, a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
        """Return epsilon times the angular or chordal distance of the inputs."""
        distance = angle(a, b) if self.metric == ANGULAR else chord(a, b)
        return self.epsilon * distance
