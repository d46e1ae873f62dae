"""The single simultaneous pass that replaces pieces of a text."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from privacy.restoration.borders import MARK, UNDERSCORE, WORD, char_class, stands_alone

_LONGEST_TOKEN = 256


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
    out: list[str] = []
    position = 0
    for piece in sorted(pieces, key=lambda p: p.start):
        if piece.start < position or piece.end > len(text):
            raise ValueError(f"pieces overlap or leave the text at offset {piece.start}")
        out.append(text[position : piece.start])
        out.append(piece.replacement)
        position = piece.end
    out.append(text[position:])
    return "".join(out)


def glued_tokens(text: str, pieces: Iterable[Piece]) -> list[tuple[str, str]]:
    """Return (token, rewritten token) where a piece is only part of a word: ``contract_varga.pdf``.

    Restoration looks for whole words, so such a token has to be known as a whole.
    """
    groups: list[tuple[int, int, list[Piece], bool]] = []
    for piece in sorted(pieces, key=lambda p: p.start):
        alone = stands_alone(text, piece.start, piece.end)
        low, high = (piece.start, piece.end) if alone else _token(text, piece)
        if groups and low < groups[-1][1]:
            first, last, inside, glued = groups.pop()
            groups.append((min(first, low), max(last, high), [*inside, piece], glued or not alone))
        else:
            groups.append((low, high, [piece], not alone))
    return [
        (text[low:high], rewrite(text[low:high], [_moved(p, low) for p in inside]))
        for low, high, inside, glued in groups
        if glued and high - low <= _LONGEST_TOKEN
    ]


def _moved(piece: Piece, offset: int) -> Piece:
    return Piece(piece.start - offset, piece.end - offset, piece.replacement)


def _token(text: str, piece: Piece) -> tuple[int, int]:
    low, high = piece.start, piece.end
    while low and piece.start - low <= _LONGEST_TOKEN and _in_word(text[low - 1]):
        low -= 1
    while high < len(text) and high - piece.end <= _LONGEST_TOKEN and _in_word(text[high]):
        high += 1
    return low, high


def _in_word(char: str) -> bool:
    return char_class(char) in (WORD, UNDERSCORE, MARK)
