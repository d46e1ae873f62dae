"""Texts as the matcher compares them, with the way back to the original offsets.

Two views:

* `fold`: case folded, compatibility-decomposed (NFKD), accents (U+0300 to U+036F) and invisible
  characters dropped, typographic apostrophes and dashes made plain, each run of white space one space.
  NFC and NFD of a name are the same, "Zoe Kruger" is "Zoë Krüger", and "Ilse Varga" is found over a
  line break and in full-width letters. Marks of other scripts tell names apart and stay.
* `squeeze`: the letters and digits of the folded view alone, for identifiers that are written with
  other separators.

Offsets are code points. A combining sequence is folded as a whole, so a match can never begin or end
inside one.
"""

import re
import unicodedata
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privacy.detection.escapes import decoded

_INVISIBLE: Final = frozenset(
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2061\u2062\u2063\u2064\u2066\u2067\u2068\u2069\ufe0e\ufe0f\ufeff"
)
_PLAIN: Final = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u02bc\u02b9\u2032\uff07\u00b4`", "'"),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d", "-"),
}
_ASCII_SPACE: Final = str.maketrans("\t\n\v\f\r\x1c\x1d\x1e\x1f`", "         '")
_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]")


@dataclass(frozen=True, slots=True)
class Folded:
    """A folded text.

    Attributes:
        text: The folded characters.
        starts: For each of them, the first code point of the original it stands for; None when equal
            to its own index.
        ends: The same, one past the last code point.
    """

    text: str = field(repr=False)
    starts: NDArray[np.int64] | None
    ends: NDArray[np.int64] | None

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Map a non-empty range of the folded text to the original."""
        if self.starts is None or self.ends is None:
            return start, end
        return int(self.starts[start]), int(self.ends[end - 1])


@lru_cache(maxsize=4096)
def _fold_cluster(cluster: str) -> str:
    out = []
    for character in unicodedata.normalize("NFKD", cluster):
        if character in _INVISIBLE:
            continue
        if character.isspace():
            out.append(" ")
        else:
            out.append(_PLAIN.get(character, character.casefold()))
    # Casefolding can undo the decomposition ("ŉ", "ΐ"), so it is done again.
    again = unicodedata.normalize("NFKD", "".join(out))
    return "".join(c for c in again if not "\u0300" <= c <= "\u036f")


def fold(text: str) -> Folded:
    """Return the folded view of ``text``, escaped letters decoded."""
    view = decoded(text)
    if view is None:
        return _folded(text)
    folded = _folded(view.text)
    if folded.starts is None or folded.ends is None:
        return Folded(folded.text, view.starts, view.ends)
    return Folded(folded.text, view.starts[folded.starts], view.ends[folded.ends - 1])


def _folded(text: str) -> Folded:
    if text.isascii():
        return _collapsed(text.lower().translate(_ASCII_SPACE), None, None)
    characters: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    position, length = 0, len(text)
    while position < length:
        match = _NOT_ASCII.search(text, position)
        stop = match.start() if match else length
        # The last plain letter before may carry the combining mark that follows.
        if match and stop > position and unicodedata.combining(text[stop]):
            stop -= 1
        if stop > position:
            characters.append(text[position:stop].lower().translate(_ASCII_SPACE))
            starts.extend(range(position, stop))
            ends.extend(range(position + 1, stop + 1))
            position = stop
            continue
        end = position + 1
        while end < length and (unicodedata.combining(text[end]) or text[end] in _INVISIBLE):
            end += 1
        folded = _fold_cluster(text[position:end])
        characters.append(folded)
        starts.extend([position] * len(folded))
        ends.extend([end] * len(folded))
        position = end
    return _collapsed("".join(characters), np.array(starts, np.int64), np.array(ends, np.int64))


def _collapsed(
    text: str, starts: NDArray[np.int64] | None, ends: NDArray[np.int64] | None
) -> Folded:
    """Make each run of spaces one space that stands for the whole run."""
    if "  " not in text:
        return Folded(text, starts, ends)
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    space = codes == 32
    keep = ~(space & np.concatenate(([False], space[:-1])))
    kept = np.flatnonzero(keep)
    last = np.concatenate((kept[1:], [len(codes)])) - 1
    collapsed = codes[keep].tobytes().decode("utf-32-le", "surrogatepass")
    return Folded(
        collapsed,
        kept if starts is None else starts[kept],
        last + 1 if ends is None else ends[last],
    )


@dataclass(frozen=True, slots=True)
class Squeezed:
    """The letters and digits of a folded text, with their indexes in it."""

    text: str = field(repr=False)
    index: NDArray[np.int64]


def squeeze(folded: str) -> Squeezed:
    """Drop everything but ASCII letters and digits from a folded text."""
    codes = np.frombuffer(folded.encode("utf-32-le", "surrogatepass"), np.uint32)
    keep = ((codes >= 48) & (codes <= 57)) | ((codes >= 97) & (codes <= 122))
    kept = np.flatnonzero(keep)
    return Squeezed(codes[keep].tobytes().decode("utf-32-le"), kept.astype(np.int64))
