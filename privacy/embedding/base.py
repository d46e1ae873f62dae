"""What every embedding of names offers."""

import unicodedata
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from privacy.embedding.geometry import unit


class Embedding(Protocol):
    """A public, total map from names to directions.

    It must not depend on anybody's texts, and must give the same vector for the same name for as
    long as ``fingerprint`` stays the same: pools are built against one fingerprint.
    """

    @property
    def dimension(self) -> int:
        """Length of every vector."""

    @property
    def fingerprint(self) -> str:
        """Identifies the vectors (64 hex digits); pools and embedding must agree on it."""

    def vector(self, name: str) -> NDArray[np.float64]:
        """Return the unit vector of ``name`` (shape (dimension,)), or the zero vector."""


class WordLookup(Protocol):
    """Finds the vector of one word, or nothing."""

    def __call__(self, word: str) -> NDArray[np.float64] | None: ...


def fold(text: str) -> str:
    """Return ``text`` casefolded, compatibility-decomposed, without combining marks."""
    if text.isascii():
        return text.lower()  # the same, and large texts are folded for every plan
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(c for c in decomposed if not unicodedata.combining(c))


def words_of(name: str) -> list[str]:
    """Split a name at white space, with punctuation cut off both ends of each word."""
    words = (word.strip(".,;:!?\"'()[]{}<>\u2018\u2019\u201c\u201d") for word in name.split())
    return [word for word in words if word]


def compose(
    name: str, dimension: int, known: WordLookup, guessed: WordLookup
) -> NDArray[np.float64]:
    """Return the direction of a name of one or more words: the mean of its unit word vectors.

    A word is tried as written (lower case), folded to plain letters, then as the mean of its parts
    around hyphens and apostrophes, and last through ``guessed`` (subwords).  Words that yield
    nothing do not count.  Shape (dimension,); zero when no word yields anything.
    """
    total = np.zeros(dimension, dtype=np.float64)
    for word in words_of(name):
        total += _word(word, dimension, known, guessed)
    return unit(total)


def _word(word: str, dimension: int, known: WordLookup, guessed: WordLookup) -> NDArray[np.float64]:
    plain = fold(word)
    for form in (word.lower(), plain):
        found = known(form)
        if found is not None:
            return unit(found)
    parts = [part for part in plain.replace("'", "-").replace("\u2019", "-").split("-") if part]
    if len(parts) > 1:
        inner = [known(part) for part in parts]
        if all(vector is not None for vector in inner):
            return unit(np.sum([unit(v) for v in inner if v is not None], axis=0))
    guess = guessed(plain)
    return np.zeros(dimension) if guess is None else unit(guess)
