"""The uniform mechanism: every remaining name is equally likely, epsilon is 0."""

import numpy as np
from numpy.typing import NDArray

from privacy.embedding.base import Embedding
from privacy.mechanisms.drawing import DrawingMechanism
from privacy.pools.pool import Pool


class UniformMechanism(DrawingMechanism):
    """Draws uniformly; the output does not depend on the original unless it is excluded."""

    name = "uniform"
    metric = "none"

    def __init__(self, embedding: Embedding, *, never_self: bool = True) -> None:
        super().__init__(embedding, never_self)

    def log_weights(
        self, vector: NDArray[np.float64], pool: Pool, taken: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Return 0 per name, -inf where taken."""
        return np.where(taken, -np.inf, 0.0)

    def base_charge(self, pool: Pool) -> tuple[float, float]:
        """Return (0, 0)."""
        return 0.0, 0.0

    def largest_probability(self, pool: Pool, taken: int) -> float:
        """Return one over the number of remaining names, exact."""
        return 1.0 / max(1, len(pool) - taken)

    def loss_bound(self, a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
        """Return 0."""
        return 0.0
