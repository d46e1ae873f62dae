"""The part of drawing that the mechanisms share: weights in, a charged `Draw` out."""

from abc import ABC, abstractmethod
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from privacy.embedding.base import Embedding
from privacy.embedding.geometry import angle
from privacy.mechanisms.base import Draw, Forbidden, MechanismError, PoolExhausted
from privacy.mechanisms.exclusions import (
    NOTHING,
    Exclusions,
    exclusion_charge,
    from_predicate,
)
from privacy.mechanisms.sampling import log_normalised, sample_index
from privacy.pools.pool import Pool
from privacy.randomness import Randomness


class DrawingMechanism(ABC):
    """Draws in proportion to weights over the names that have not left the pool.

    Args:
        embedding: The public map from names to vectors that the pools were built with.
        never_self: Honour ``forbidden`` in `draw`, at the price of `exclusion_charge`.
    """

    name: str
    metric: str

    def __init__(self, embedding: Embedding, never_self: bool) -> None:
        self.embedding = embedding
        self.never_self = never_self

    @abstractmethod
    def log_weights(
        self, vector: NDArray[np.float64], pool: Pool, taken: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Return new log weights, shape (len(pool),), -inf wherever ``taken`` is true."""

    @abstractmethod
    def base_charge(self, pool: Pool) -> tuple[float, float]:
        """Return the (epsilon, delta) of a draw without exclusions, for any two inputs."""

    @abstractmethod
    def largest_probability(self, pool: Pool, taken: int) -> float:
        """Return a bound on the probability of any name under any input, ``taken`` having left."""

    @abstractmethod
    def loss_bound(self, a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
        """Return the bound claimed on the loss between two inputs, without exclusions."""

    def draw(
        self,
        original: str,
        pool: Pool,
        taken: Collection[int],
        forbidden: Forbidden,
        rng: Randomness,
    ) -> Draw:
        """Draw a substitute; see `privacy.mechanisms.base.Mechanism.draw`."""
        self._check(pool)
        gone = _mask(pool, taken)
        barred = self._exclusions(pool, taken, forbidden)
        vector = self.embedding.vector(original)
        weights = self.log_weights(vector, pool, gone)
        if barred.indices:
            weights[_inside(pool, barred.indices)] = -np.inf
        index = sample_index(weights, rng)
        if index is None:
            raise PoolExhausted(f"no name is left in the pool {pool.fine_type}")
        epsilon, delta = self.base_charge(pool)
        more, slack = self.exclusion_charge(pool, int(gone.sum()), barred.bound)
        row = pool.vectors[index]
        return Draw(
            index=index,
            name=pool.names[index],
            epsilon=epsilon + more,
            delta=min(1.0, delta + slack),
            mechanism=self.name,
            metric=self.metric,
            angle=angle(vector, row),
            cosine=float(np.clip(vector @ row, -1.0, 1.0)),
        )

    def probabilities(
        self, original: str, pool: Pool, taken: Collection[int] = ()
    ) -> NDArray[np.float64]:
        """Return the exact output distribution before exclusions, shape (len(pool),)."""
        vector = self.embedding.vector(original)
        return np.asarray(np.exp(self.log_probabilities(vector, pool, taken)), dtype=np.float64)

    def log_probabilities(
        self, vector: NDArray[np.float64], pool: Pool, taken: Collection[int] = ()
    ) -> NDArray[np.float64]:
        """Return its logarithm for an input vector, -inf for what cannot come."""
        self._check(pool)
        return log_normalised(self.log_weights(vector, pool, _mask(pool, taken)))

    def exclusion_charge(self, pool: Pool, taken: int, count: int) -> tuple[float, float]:
        """Return (epsilon, delta) of excluding at most ``count`` names, ``taken`` having left."""
        if count == 0:
            return 0.0, 0.0
        return exclusion_charge(count, self.largest_probability(pool, taken))

    def _exclusions(self, pool: Pool, taken: Collection[int], forbidden: Forbidden) -> Exclusions:
        if not self.never_self:
            return NOTHING
        if isinstance(forbidden, Exclusions):
            return forbidden
        return from_predicate(pool, taken, forbidden)

    def _check(self, pool: Pool) -> None:
        if pool.dimension != self.embedding.dimension:
            raise MechanismError(
                f"the pool {pool.fine_type} has vectors of length {pool.dimension}, the embedding "
                f"of length {self.embedding.dimension}: build the pools with this embedding"
            )


def _mask(pool: Pool, taken: Collection[int]) -> NDArray[np.bool_]:
    gone = np.zeros(len(pool), dtype=np.bool_)
    gone[_inside(pool, taken)] = True
    return gone


def _inside(pool: Pool, indices: Collection[int]) -> list[int]:
    """Return the indices that this level of the pool has."""
    return [index for index in indices if 0 <= index < len(pool)]
