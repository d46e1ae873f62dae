"""Vectors for unknown words: a bag of character n-grams, fitted to the vectors of known words.

The idea of composing a word from its n-grams is that of Bojanowski et al., "Enriching Word Vectors
with Subword Information" (TACL 2017).  Here the n-gram table is not trained on text: it is the
ridge regression from hashed n-gram counts to given word vectors, so it fits any set of vectors.
"""

import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

SHORTEST: Final = 3
LONGEST: Final = 5
BUCKETS: Final = 2**15
RIDGE: Final = 0.3
ROUNDS: Final = 40


def letters(word: str) -> str:
    """Return the plain letters a-z of an already folded word; others carry no n-grams."""
    return "".join(c for c in word if "a" <= c <= "z")


def buckets(word: str, count: int = BUCKETS) -> list[int]:
    """Return the bucket of every n-gram of ``^word$`` (CRC-32 modulo ``count``), with repeats.

    Empty when the word has no letter a-z.  ``count`` must be a power of two.
    """
    plain = letters(word)
    if not plain:
        return []
    marked = f"^{plain}$".encode("ascii")
    return [
        zlib.crc32(marked[start : start + size]) & (count - 1)
        for size in range(SHORTEST, LONGEST + 1)
        for start in range(len(marked) - size + 1)
    ]


def guess(word: str, table: NDArray[Any]) -> NDArray[np.float64] | None:
    """Return the mean of the n-gram vectors of a folded word, or None when it has no letter a-z.

    Args:
        table: Shape (buckets, d); the result has shape (d,) and no particular length.
    """
    rows = buckets(word, len(table))
    if not rows:
        return None
    return np.asarray(np.mean(table[rows], axis=0, dtype=np.float64), dtype=np.float64)


def fit(
    words: Sequence[str], targets: NDArray[np.float64], count: int = BUCKETS
) -> NDArray[np.float32]:
    """Fit the n-gram table: argmin over T of sum |x_w T - target_w|^2 + RIDGE |T|^2.

    x_w is the vector of n-gram shares of word w.  Solved by a fixed number of accelerated gradient
    steps (Nesterov 1983) that use only sparse products and elementwise arithmetic: unlike a
    library solver, the result does not depend on the thread count or the linear-algebra library.

    Args:
        words: Folded words, each with a letter a-z.
        targets: Unit vectors, shape (len(words), d).

    Returns:
        Shape (count, d), float32.  Buckets that no word uses stay zero.
    """
    shares = _shares(words, count)
    back = shares.T.tocsr()
    # The largest eigenvalue of X'X is at most |X|_1 |X|_inf; every row sums to 1.
    step = 1.0 / (float(np.asarray(shares.sum(axis=0)).max()) + RIDGE)
    table = np.zeros((count, targets.shape[1]))
    ahead = table
    for done in range(ROUNDS):
        slope = back @ (shares @ ahead - targets) + RIDGE * ahead
        moved = ahead - step * slope
        ahead = moved + (done / (done + 3.0)) * (moved - table)
        table = moved
    return table.astype(np.float32)


def _shares(words: Sequence[str], count: int) -> "csr_matrix":
    from scipy.sparse import csr_matrix

    columns: list[int] = []
    values: list[float] = []
    ends = [0]
    for word in words:
        rows = buckets(word, count)
        columns.extend(rows)
        values.extend([1.0 / len(rows)] * len(rows))
        ends.append(len(columns))
    shape = (len(words), count)
    return csr_matrix((values, columns, ends), shape=shape, dtype=np.float64)
