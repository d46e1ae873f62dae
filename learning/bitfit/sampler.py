"""Poisson sampling: every record enters every batch independently with the same probability."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from privacy.randomness import Randomness, SystemRandomness


class PoissonSampler:
    """Draws the logical batches of one process.

    In a data-parallel run each process holds the records ``rank, rank + world, ...`` and draws for
    them alone, so that the union is one Poisson sample of all records. A batch may be empty.

    Args:
        records: Number of records of the whole data set.
        rate: q, from configured, public numbers; in (0, 1].
        rank: Number of this process.
        world: Number of processes.
        randomness: The operating system's when None.

    Raises:
        ValueError: A number is out of range.
    """

    def __init__(
        self,
        records: int,
        rate: float,
        *,
        rank: int = 0,
        world: int = 1,
        randomness: Randomness | None = None,
    ) -> None:
        if not 0 < rate <= 1:
            raise ValueError(f"the sampling rate must be in (0, 1], not {rate}")
        if records < 0 or not 0 <= rank < world:
            raise ValueError("records must be >= 0 and rank in [0, world)")
        self._own: NDArray[np.int64] = np.arange(rank, records, world, dtype=np.int64)
        self._rate = rate
        self._randomness = randomness or SystemRandomness()

    def draw(self) -> NDArray[np.int64]:
        """Indices of one batch, int64, in increasing order, possibly none."""
        return self._own[self._randomness.uniform(len(self._own)) < self._rate]


def microbatches(indices: NDArray[np.int64], size: int) -> Iterator[NDArray[np.int64]]:
    """Cut a logical batch into pieces that fit the memory; nothing is dropped, none for no index."""
    if size < 1:
        raise ValueError("the size of a microbatch must be at least 1")
    for start in range(0, len(indices), size):
        yield indices[start : start + size]
