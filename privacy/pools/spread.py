"""A public bound on the largest probability that any candidate can have (docs/mechanism.md).

For every input w the score is 1-Lipschitz in the candidate: score(w, u) - score(w, v) <= d(u, v),
and therefore

    Pr[u | w] = 1 / sum_v exp((eps/2) (score(w, v) - score(w, u)))
             <= 1 / sum_v exp(-(eps/2) d(u, v)) =: 1 / S_u(eps).

Names that leave the pool take at most 1 each from S_u, so 1 / (S_u - removed) bounds the rest.

`spread_table` computes S(eps) = min_u S_u(eps) on a grid, for angular and chordal distance, always
rounded down; `Spread.total` gives a lower bound of S(eps) between the grid points.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

ANGULAR: Final = "angular"
CHORDAL: Final = "chordal"
METRICS: Final = (ANGULAR, CHORDAL)
GRID: Final = (
    0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0,
    6.0, 7.0, 8.0, 9.0, 10.0, 12.0, 14.0, 16.0, 18.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0, 80.0,
    100.0,
)  # fmt: skip
REMOTE: Final = 0.05
_BINS: Final = 1024
_BLOCK: Final = 256
# More than the rounding of a 50- to 1000-dimensional product of unit vectors in float32.
_MARGIN: Final = 1e-4


@dataclass(frozen=True)
class Spread:
    """Lower bounds of S(eps) at the points of GRID for a pool of ``size`` names."""

    size: int
    totals: tuple[float, ...]

    def total(self, epsilon: float) -> float:
        """Return a lower bound of S(epsilon), in [1, size].

        S falls with eps, and S(eps)/n is at least (S(e)/n)^(eps/e) for e <= eps (power means); the
        better of the two neighbours' bounds is used.  Beyond the grid only the second holds.
        """
        if epsilon <= 0.0:
            return float(self.size)
        above = bisect_left(GRID, epsilon)
        bounds = [1.0]
        if above < len(GRID):
            bounds.append(self.totals[above])
        if above > 0:
            share = self.totals[above - 1] / self.size
            bounds.append(self.size * share ** (epsilon / GRID[above - 1]))
        return min(max(bounds), float(self.size))


def spread_table(
    vectors: NDArray[np.float64], sizes: Sequence[int]
) -> dict[str, list[list[float]]]:
    """Compute the totals for every metric and for the first ``size`` names of each size.

    Args:
        vectors: Unit rows, shape (n, d).
        sizes: Rising sizes of the levels; the last is n.

    Returns:
        Metric -> one list of len(GRID) totals per size, rounded down to 4 digits.
    """
    single = np.asarray(vectors, dtype=np.float32)
    lowest = {metric: [np.full(len(GRID), np.inf) for _ in sizes] for metric in METRICS}
    weights = {metric: _weights(metric) for metric in METRICS}
    for start in range(0, len(single), _BLOCK):
        block = single[start : start + _BLOCK]
        counts = np.zeros((len(block), _BINS))
        left = 0
        for level, size in enumerate(sizes):
            counts += _histogram(block @ single[left:size].T)
            left = size
            inside = counts[: max(0, size - start)]
            for metric in METRICS if len(inside) else ():
                totals = (inside @ weights[metric]).min(axis=0)
                lowest[metric][level] = np.minimum(lowest[metric][level], totals)
    return {
        metric: [[_floor(value) for value in row] for row in lowest[metric]] for metric in METRICS
    }


def central_rows(vectors: NDArray[np.float64]) -> list[int]:
    """Return the rows to keep, in order: all but the REMOTE share that lies furthest off.

    A name far from all others could become much more likely than they are, for an input beyond
    it; it would set the bound for the whole pool.  Rank is by the mean cosine to the pool.
    """
    closeness = np.round(vectors @ vectors.mean(axis=0), 6)
    drop = int(REMOTE * len(vectors))
    order = np.argsort(closeness, kind="stable")
    return sorted(int(row) for row in order[drop:])


def _weights(metric: str) -> NDArray[np.float64]:
    """Return exp(-(eps/2) d) per cosine bin and grid point, d the largest distance in the bin."""
    edges = 1.0 - 2.0 * np.arange(1, _BINS + 1) / _BINS - _MARGIN
    edges = np.clip(edges, -1.0, 1.0)
    far = np.arccos(edges) / np.pi if metric == ANGULAR else np.sqrt(2.0 - 2.0 * edges)
    return np.asarray(np.exp(-0.5 * np.outer(far, np.array(GRID))), dtype=np.float64)


def _histogram(cosine: NDArray[Any]) -> NDArray[np.float64]:
    """Count the cosines of each row in equal bins from 1 down to -1."""
    bins = ((1.0 - cosine) * np.float32(_BINS / 2)).astype(np.int32)
    np.clip(bins, 0, _BINS - 1, out=bins)
    bins += np.arange(len(bins), dtype=np.int32)[:, None] * np.int32(_BINS)
    flat = np.bincount(bins.ravel(), minlength=len(bins) * _BINS)
    return flat.reshape(len(bins), _BINS).astype(np.float64)


def _floor(value: float) -> float:
    """Round down to 4 significant digits, never below 1 (a candidate counts itself)."""
    scale = 10.0 ** (math.floor(math.log10(value)) - 3)
    return max(1.0, math.floor(value / scale) * scale) if value > 1.0 else 1.0
