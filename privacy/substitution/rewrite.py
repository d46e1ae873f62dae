"""The single simultaneous pass that replaces pieces of a text."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from privacy.restoration.borders import (
    MARK,
    UNDERSCORE,
    WORD,
    char_class,
    left_border,
    stands_alone,
)
from privacy.types import Span

_LONGEST_TOKEN = 256
_REACH = 5
_APOSTROPHES = ("'", "’")
_INITIAL = re.compile(r"(?<![^\W_])(?<!['’])[^\W\d_a-z]\.?\s{1,3}\Z")


@dataclass(frozen=True, slots=True)
class Piece:
    """``text[start:end]`` becomes ``replacement``; offsets in code points of the original text."""

    start: int
    end: int
    replacement: str = field(repr=False)


def rewrite(text: str, pieces: Iterable[Piece]) -> str:
    """Replace all pieces at once, so that no replacement is ever read as text to replace.

    Raises:
        ValueError: if pieces overlap or lie outside the text.
    """
    return _placed(text, pieces)[0]


def exposed(
    text: str, pieces: Iterable[Piece], find: Callable[[str], Sequence[Span]]
) -> list[Span]:
    """Return what ``find`` sees in the rewritten text where nothing was replaced; offsets of ``text``.

    Replacements change what is around a word: once "D.C." is "Hecun", "Thank" begins no sentence any
    more, and a line of capitals is none.
    """
    out, placed = _placed(text, pieces)
    if out == text:
        return []
    starts = [start for start, _ in placed]
    found = []
    for span in find(out):
        place = bisect_left(starts, span.end)
        end, own_end = (0, 0) if not place else _ends(*placed[place - 1])
        if end <= span.start:
            shift = own_end - end
            found.append(replace(span, start=span.start + shift, end=span.end + shift))
    return found


def _ends(start: int, piece: Piece) -> tuple[int, int]:
    return start + len(piece.replacement), piece.end


def _placed(text: str, pieces: Iterable[Piece]) -> tuple[str, list[tuple[int, Piece]]]:
    """Return the rewritten text, and the pieces in order with where their replacements begin there."""
    out: list[str] = []
    placed: list[tuple[int, Piece]] = []
    position = length = 0
    for piece in sorted(pieces, key=lambda p: p.start):
        if piece.start < position or piece.end > len(text):
            raise ValueError(f"pieces overlap or leave the text at offset {piece.start}")
        placed.append((length + piece.start - position, piece))
        out += (text[position : piece.start], piece.replacement)
        length += piece.start - position + len(piece.replacement)
        position = piece.end
    out.append(text[position:])
    return "".join(out), placed


def glued_tokens(
    text: str, pieces: Iterable[Piece], wholes: Sequence[tuple[int, int]] = ()
) -> list[tuple[str, str]]:
    """Return (token, rewritten token) where a piece is only part of a word: ``contract_varga.pdf``.

    Restoration looks for whole words, so such a token has to be known as a whole.  A piece that ends in
    a full stop is a word, and what replaces it may be part of one: ``D.C._map``, ``Hecun_map``.  So has a
    piece behind an initial that stays: "M. Houghton" might be short for "Mahamadou Houghton".

    Args:
        text: The original text.
        pieces: What is replaced.
        wholes: Where pieces belong together, since they are restored together: "Varga_J. K.".
    """
    groups: list[tuple[int, int, list[Piece], bool]] = []
    out, placed = _placed(text, pieces)
    wholes = _outermost(wholes)
    done = 0
    for start, piece in placed:
        glued = not (
            stands_alone(text, piece.start, piece.end)
            and (not piece.replacement or stands_alone(out, start, start + len(piece.replacement)))
        )
        initial = _INITIAL.search(text, max(done, piece.start - _REACH), piece.start)
        done = piece.end
        glued = glued or initial is not None
        low, high = _token(text, piece, wholes) if glued else (piece.start, piece.end)
        if (
            low == piece.start
            and text[low - 1 : low] in _APOSTROPHES
            and not left_border(out, start)
        ):
            low = _word_start(
                text, low - 1
            )  # "d'I Varga" became "d'S Novak", which looks contracted
        if initial is not None:
            low = min(low, _word_start(text, initial.start()))
        inside = [piece]
        while groups and low < groups[-1][1]:
            first, last, before, was_glued = groups.pop()
            low, high, glued = min(first, low), max(last, high), glued or was_glued
            inside = [*before, *inside]
        groups.append((low, high, inside, glued))
    return [
        (text[low:high], rewrite(text[low:high], [_moved(p, low) for p in inside]))
        for low, high, inside, glued in groups
        if glued and high - low <= _LONGEST_TOKEN
    ]


def _moved(piece: Piece, offset: int) -> Piece:
    return Piece(piece.start - offset, piece.end - offset, piece.replacement)


def _outermost(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the ranges that lie in no other, in order."""
    kept: list[tuple[int, int]] = []
    for low, high in sorted(ranges, key=lambda each: (each[0], -each[1])):
        if not kept or high > kept[-1][1]:
            kept.append((low, high))
    return kept


def _token(text: str, piece: Piece, wholes: Sequence[tuple[int, int]]) -> tuple[int, int]:
    low, high = piece.start, piece.end
    place = bisect_right(wholes, low, key=lambda whole: whole[0])
    if place and high <= wholes[place - 1][1]:
        low, high = wholes[place - 1]
    while low and piece.start - low <= _LONGEST_TOKEN and _in_word(text[low - 1]):
        low -= 1
    while high < len(text) and high - piece.end <= _LONGEST_TOKEN and _in_word(text[high]):
        high += 1
    return low, high


def _word_start(text: str, index: int) -> int:
    while index and _in_word(text[index - 1]):
        index -= 1
    return index


def _in_word(char: str) -> bool:
    return char_class(char) in (WORD, UNDERSCORE, MARK)
