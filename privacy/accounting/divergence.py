"""Exact divergences between two finite distributions given by log probabilities."""

import math

import numpy as np
from numpy.typing import NDArray


def max_divergence(p: NDArray[np.float64], q: NDArray[np.float64]) -> float:
    """Return the largest log(p/q) over outcomes that p can give, both of shape (n,).

    Infinite when p can give an outcome that q cannot; at least 0 for distributions.
    """
    possible = p > -np.inf
    if np.any(q[possible] == -np.inf):
        return math.inf
    return float(np.max(p[possible] - q[possible], initial=-np.inf))


def hockey_stick(p: NDArray[np.float64], q: NDArray[np.float64], epsilon: float) -> float:
    """Return sum over outcomes of max(0, p - exp(epsilon) q): the smallest delta for epsilon.

    With epsilon infinite, the probability under p of what q cannot give.
    """
    possible = p > -np.inf
    lost = possible & (q == -np.inf)
    total = float(np.sum(np.exp(p[lost])))
    if math.isinf(epsilon):
        return total
    shared = possible & ~lost
    above = shared & (p > q + epsilon)
    return total + float(np.sum(np.exp(p[above]) * -np.expm1(q[above] + epsilon - p[above])))


def without(p: NDArray[np.float64], indices: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the log probabilities conditioned on none of ``indices``, shape (n,).

    Raises:
        ValueError: Nothing would be left.
    """
    rest = p.copy()
    rest[indices] = -np.inf
    top = rest.max(initial=-np.inf)
    if top == -np.inf:
        raise ValueError("conditioning on an impossible event: every outcome is excluded")
    return np.asarray(rest - top - np.log(np.sum(np.exp(rest - top))), dtype=np.float64)
