"""Toy embeddings and pools, small enough to compute everything about them."""

import hashlib
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from privacy.embedding import unit, unit_rows
from privacy.pools import Pool


class ToyEmbedding:
    """Vectors by name: given rows first, else a direction derived from the name; "" is zero."""

    fingerprint = "toy"

    def __init__(self, names: Sequence[str], rows: NDArray[np.float64]) -> None:
        self._rows = dict(zip(names, unit_rows(rows), strict=True))
        self.dimension = rows.shape[1]

    def vector(self, name: str) -> NDArray[np.float64]:
        if name in self._rows:
            return self._rows[name]
        if not name:
            return np.zeros(self.dimension)
        seed = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big")
        return unit(np.random.Generator(np.random.PCG64(seed)).normal(size=self.dimension))


Toy = tuple[Pool, ToyEmbedding]


def make_toy(seed: int, size: int, dimension: int = 4, spread: float = 1.0) -> Toy:
    """Return a pool of ``size`` names around a common direction; small spread, close names."""
    generator = np.random.Generator(np.random.PCG64(seed))
    rows = generator.normal(size=(size, dimension)) * spread
    rows[:, 0] += 1.0
    names = [f"Name{chr(65 + i // 26)}{chr(65 + i % 26)}" for i in range(size)]
    return Pool.from_vectors("person.given", names, unit_rows(rows)), ToyEmbedding(names, rows)


@pytest.fixture(scope="session")
def toy() -> Callable[..., Toy]:
    return make_toy
