"""From token states to the rows that leave: pool, unit norm, noise, unit norm again."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privacy.ppft.noise import Noise
from privacy.randomness import Randomness


def slots(tokens: int, k: int) -> int:
    """Return m = ⌈n/k⌉, the number of rows of a text of n tokens."""
    return -(-tokens // k)


def pool(states: ArrayLike, k: int) -> NDArray[np.float64]:
    """Mean over non-overlapping windows of ``k`` rows; the last window over its real length.

    Args:
        states: (n, d).
        k: Window, at least 1.

    Returns:
        float64 of shape (⌈n/k⌉, d).

    Raises:
        ValueError: k is below 1 or the states are not a matrix.
    """
    matrix = np.asarray(states, dtype=np.float64)
    if k < 1 or matrix.ndim != 2:
        raise ValueError("pooling needs a matrix of states and a window of at least 1")
    starts = np.arange(0, len(matrix), k)
    if not len(starts):
        return np.zeros((0, matrix.shape[1]))
    lengths = np.minimum(k, len(matrix) - starts)
    return np.asarray(np.add.reduceat(matrix, starts, axis=0) / lengths[:, None])


def unit(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale each row to norm 1; a zero row stays zero, which no longer than 1 is either."""
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12))


def obfuscate(states: ArrayLike, k: int, noise: Noise, random: Randomness) -> NDArray[np.float32]:
    """Return the rows that may leave the trust boundary.

    Before the noise every row has norm 1, so two inputs are at most 2 apart and one row costs at most
    2ε (Euclidean).  What follows the noise is post-processing.

    Args:
        states: Token states (n, d).
        k: Pooling window.
        noise: What is added.
        random: Its source; the operating system's for anybody's data.

    Returns:
        float32 of shape (⌈n/k⌉, d), unit rows.
    """
    clean = unit(pool(states, k))
    return unit(clean + noise.draw(len(clean), clean.shape[1], random)).astype(np.float32)
