"""Unit vectors, the angular metric and the chordal metric (DESIGN 3.1).

A vector is either of unit length or zero.  The zero vector stands for "nothing is known about
this name": its angle to every unit vector is one half (the cosine is 0) and its chord is 1.  Both
metrics stay metrics with that point added, because it lies at half the diameter of the rest
(angular), and because the chord is plain Euclidean distance.
"""

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

TINY: Final = 1e-9
"""Vectors shorter than this are treated as zero: their direction would be rounding noise."""


def unit(vector: ArrayLike) -> NDArray[np.float64]:
    """Return ``vector`` (shape (d,)) at length 1, or zero when it is shorter than TINY."""
    array = np.asarray(vector, dtype=np.float64)
    length = float(np.sqrt(np.sum(array * array)))
    if not np.isfinite(length) or length < TINY:
        return np.zeros_like(array)
    return array / length


def unit_rows(matrix: ArrayLike) -> NDArray[np.float64]:
    """Return ``matrix`` (shape (n, d)) with every row at length 1 or zero (see `unit`)."""
    array = np.asarray(matrix, dtype=np.float64)
    lengths = np.sqrt(np.sum(array * array, axis=1, keepdims=True))
    usable = np.isfinite(lengths) & (lengths >= TINY)
    return np.where(usable, array / np.where(usable, lengths, 1.0), 0.0)


def cosines(matrix: NDArray[np.float64], vector: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the cosines (shape (n,), in [-1, 1]) between the unit rows and a unit vector."""
    return np.asarray(np.clip(matrix @ vector, -1.0, 1.0), dtype=np.float64)


def angles(matrix: NDArray[np.float64], vector: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``arccos(cos)/pi`` (shape (n,), in [0, 1]) between the unit rows and a unit vector.

    Near cos = 1 the arccos turns a rounding of 1e-16 into an angle of about 1e-8 rad.  That moves
    no worst-case bound: the result is in [0, 1] whatever the rounding.
    """
    return np.asarray(np.arccos(cosines(matrix, vector)) / np.pi, dtype=np.float64)


def angle(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Return the angular distance in [0, 1] between two vectors, each of unit length or zero.

    Computed as ``2*atan2(|a-b|, |a+b|)`` (Kahan), accurate for close and opposite vectors alike.
    Zero to zero is 0, zero to anything else is 1/2.
    """
    if not a.any() or not b.any():
        return 0.0 if a.any() == b.any() else 0.5
    apart = float(np.linalg.norm(a - b))
    together = float(np.linalg.norm(a + b))
    return float(2.0 * np.arctan2(apart, together) / np.pi)


def chord(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Return the Euclidean distance in [0, 2] between two vectors, each of unit length or zero."""
    return float(np.linalg.norm(a - b))
