"""Word-level d_χ text (Feyisetan et al. 2020), to compare with: noisy word vectors, nearest words."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from privacy.ppft.noise import isotropic_laplace
from privacy.randomness import Randomness


class WordNoise:
    """Replaces every word by the word nearest to its noised vector.

    Args:
        words: Vocabulary.
        vectors: (len(words), d), not normalised.
        random: Source of the noise.
    """

    def __init__(
        self, words: Sequence[str], vectors: NDArray[np.float32], random: Randomness
    ) -> None:
        self._words = list(words)
        self._index = {word: i for i, word in enumerate(self._words)}
        self._vectors = np.asarray(vectors, dtype=np.float32)
        self._norms = (self._vectors**2).sum(axis=1) / 2.0
        self._random = random

    def sanitise(self, text: str, epsilon: float) -> str:
        """Return the text with every word redrawn; unknown words are drawn as the zero vector."""
        parts = text.replace(",", " ,").replace(".", " .").replace("?", " ?").split()
        chosen = [i for i, part in enumerate(parts) if part[0].isalnum()]
        points = np.zeros((len(chosen), self._vectors.shape[1]))
        for row, i in enumerate(chosen):
            found = self._index.get(parts[i].lower())
            if found is not None:
                points[row] = self._vectors[found]
        points += isotropic_laplace(len(chosen), points.shape[1], epsilon, self._random)
        near = (points.astype(np.float32) @ self._vectors.T - self._norms).argmax(axis=1)
        for row, i in enumerate(chosen):
            parts[i] = self._words[int(near[row])]
        return " ".join(parts)
