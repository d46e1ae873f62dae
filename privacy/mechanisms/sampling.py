"""Draws an index from log weights (DESIGN 3.8).

Inverse of the distribution function, with two precautions against the coarse grid of floating
point: weights are summed from the smallest up, so that a small one is never lost in a large sum,
and the uniform draw has 106 bits, fine near zero where the small weights lie.  So a candidate of
probability p among n is drawn with probability p (1 + e), |e| <= 2n * 2^-53 + 2^-106/p: for 10,000
candidates and epsilon up to 60, |e| < 1e-11, by which the loss may exceed epsilon.  No candidate of
positive weight becomes impossible.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from privacy.randomness import Randomness

_BITS: Final = 2.0**53


def fine_uniform(rng: Randomness) -> float:
    """Return a uniform draw from (0, 1) with 106 bits, rounded to float64."""
    coarse, fine = rng.uniform(2)
    cell = min(float(np.floor(coarse * _BITS)), _BITS - 1.0)
    return float((cell + fine) / _BITS)


def sample_index(log_weights: NDArray[np.float64], rng: Randomness) -> int | None:
    """Draw an index with probability proportional to exp(log_weights), or None if all are -inf.

    Args:
        log_weights: Shape (n,); -inf marks what cannot be drawn.
    """
    possible = np.flatnonzero(log_weights > -np.inf)
    if not len(possible):
        return None
    weights = np.exp(log_weights[possible] - log_weights[possible].max())
    order = np.argsort(weights, kind="stable")
    edges = np.cumsum(weights[order])
    place = int(np.searchsorted(edges, fine_uniform(rng) * edges[-1], side="right"))
    return int(possible[order[min(place, len(order) - 1)]])


def log_normalised(log_weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log probabilities for log weights, shape (n,); all -inf stays all -inf."""
    top = log_weights.max(initial=-np.inf)
    if top == -np.inf:
        return log_weights
    shifted = log_weights - top
    return np.asarray(shifted - np.log(np.sum(np.exp(shifted))), dtype=np.float64)
