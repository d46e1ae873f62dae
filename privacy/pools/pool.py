"""One public pool of names of a fine type."""

import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacy.embedding.base import fold
from privacy.embedding.geometry import angles, cosines, unit_rows
from privacy.pools.moments import Moments
from privacy.pools.occurrence import NameFinder
from privacy.pools.spread import ANGULAR, Spread, spread_table
from privacy.pools.types import PoolError


class Pool:
    """Names, their unit vectors and the public bound on candidate probabilities.

    A pool has levels: level 0 is the primary list, each further level (`larger`) appends the next
    public list, so the index of a name never changes.  Immutable, thread-safe.

    Args:
        names: Names of all levels, distinct when folded.
        vectors: Shape (len(names), d), any float type; normalised on first use.
        sizes: Rising level sizes; the last is len(names).
        spreads: Metric -> one `Spread` per level.
        level: The level this pool shows.

    Raises:
        PoolError: Sizes, names and vectors do not fit together.
    """

    def __init__(
        self,
        fine_type: str,
        names: Sequence[str],
        vectors: NDArray[Any],
        sizes: Sequence[int],
        spreads: Mapping[str, Sequence[Spread]],
        level: int = 0,
    ) -> None:
        fits = len(names) == len(vectors) and bool(sizes) and sizes[-1] == len(names)
        if not fits or not 0 <= level < len(sizes) or sizes[0] < 1:
            raise PoolError(f"the pool {fine_type} does not fit together: build the pools again")
        self.fine_type = fine_type
        self.level = level
        self.sizes = tuple(sizes)
        self._all = tuple(names)
        self._raw = vectors
        self._spreads = spreads
        self._lock = threading.Lock()

    @classmethod
    def from_vectors(
        cls,
        fine_type: str,
        names: Sequence[str],
        vectors: NDArray[np.float64],
        sizes: Sequence[int] | None = None,
    ) -> "Pool":
        """Make a pool and compute its bounds; time grows with the square of its size."""
        levels = [len(names)] if sizes is None else list(sizes)
        rows = unit_rows(vectors)
        spreads = {
            metric: [Spread(size, tuple(row)) for size, row in zip(levels, table, strict=True)]
            for metric, table in spread_table(rows, levels).items()
        }
        return cls(fine_type, names, rows, levels, spreads)

    def __len__(self) -> int:
        return self.sizes[self.level]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of this level, best known first."""
        return self._all[: len(self)]

    @cached_property
    def vectors(self) -> NDArray[np.float64]:
        """The unit vectors of the names, shape (len(self), d)."""
        rows = unit_rows(np.asarray(self._raw[: len(self)], dtype=np.float64))
        rows.setflags(write=False)
        return rows

    @property
    def dimension(self) -> int:
        """Length of the vectors."""
        return int(self._raw.shape[1])

    def larger(self) -> "Pool | None":
        """Return the pool with the next public list added, or None at the last level."""
        if self.level + 1 >= len(self.sizes):
            return None
        return self.at(self.level + 1)

    def at(self, level: int) -> "Pool":
        """Return this pool at a level.  Raises PoolError when there is no such level."""
        if level == self.level:
            return self
        with self._lock:
            found = self._levels.get(level)
            if found is None:
                found = Pool(self.fine_type, self._all, self._raw, self.sizes, self._spreads, level)
                found._levels = self._levels
                self._levels[level] = found
            return found

    @cached_property
    def _levels(self) -> dict[int, "Pool"]:
        return {self.level: self}

    @cached_property
    def _index(self) -> dict[str, int]:
        return {fold(name): index for index, name in enumerate(self.names)}

    @cached_property
    def _finder(self) -> NameFinder:
        return NameFinder(self.names)

    def index_of(self, name: str) -> int | None:
        """Return the index of a name, whatever its case and accents, or None."""
        return self._index.get(fold(name))

    def occurring_in(self, text: str) -> frozenset[int]:
        """Return the indices of the names that stand in ``text`` as whole words, in any case."""
        return self._finder.find(text)

    def angles_to(self, vector: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return angle/pi in [0, 1] to every name, shape (len(self),); 1/2 for a zero vector."""
        return angles(self.vectors, vector)

    def cosines_to(self, vector: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the cosine in [-1, 1] to every name, shape (len(self),)."""
        return cosines(self.vectors, vector)

    def p_max(self, epsilon: float, tau: float, metric: str = ANGULAR, removed: int = 0) -> float:
        """Return a bound on the probability of any one name under any input whatsoever.

        Holds for the exponential mechanism over the full pool, after any ``removed`` names have
        left this level; the better of two bounds, both derived in docs/mechanism.md.  Cached.

        Raises:
            PoolError: The pool has no bound for this metric.
        """
        if metric not in self._spreads:
            raise PoolError(f"the pool {self.fine_type} has no bound for the metric {metric}")
        key = (epsilon, tau, metric)
        total = self._totals.get(key)
        if total is None:
            spread = self._spreads[metric][self.level].total(epsilon)
            total = max(spread, self._moments.total(epsilon, tau, metric))
            self._totals[key] = total
        return 1.0 / max(1.0, total - removed)

    @cached_property
    def _moments(self) -> Moments:
        return Moments.of(self.vectors)

    @cached_property
    def _totals(self) -> dict[tuple[float, float, str], float]:
        return {}
