"""The single simultaneous pass that replaces pieces of a text."""

from collections.abc import Iterable
from dataclasses import dataclass, field


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
