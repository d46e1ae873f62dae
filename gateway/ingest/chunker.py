"""Chunks that cut no entity in two.

langchain-text-splitters proposes borders; a border inside a detected entity moves to the entity's
edge. Spans found once on the whole document are re-based to each chunk, so retrieved context needs
no detection later (DESIGN 2.4), and a name at a border is neither lost nor halved.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from privacy.types import Span

CHARS_PER_TOKEN: Final = 4  # English prose; the API counts tokens, the splitter characters


@dataclass(frozen=True, slots=True)
class ChunkingOptions:
    """Sizes in characters.  A chunk may be longer only as far as an entity needs it.

    Attributes:
        size: Aim for the part of a chunk that is its own.
        overlap: Characters repeated from the chunk before, at most; below ``size``.
    """

    size: int = 700
    overlap: int = 100

    def __post_init__(self) -> None:
        if self.size < 1 or not 0 <= self.overlap < self.size:
            raise ValueError("chunking needs size >= 1 and 0 <= overlap < size")


@dataclass(frozen=True, slots=True)
class Piece:
    """``document[start:end]`` and the spans in it, offsets in code points of the piece."""

    start: int
    end: int
    text: str = field(repr=False)
    spans: tuple[Span, ...] = field(repr=False)


def chunk(
    text: str, spans: Sequence[Span], options: ChunkingOptions, separators: Sequence[str]
) -> list[Piece]:
    """Cut ``text`` into overlapping pieces; every character that is not blank is in one.

    Args:
        spans: Entities in ``text``; none is cut.
        separators: Where to cut, best place first.
    """
    blocks = _blocks(spans)
    borders = _borders(text, options, separators, blocks)
    pieces = (
        _piece(text, spans, _start(text, borders, i, options.overlap, blocks), borders[i + 1])
        for i in range(len(borders) - 1)
    )
    return [piece for piece in pieces if piece is not None]


class _Blocks:
    """Disjoint sorted intervals that no border may enter."""

    def __init__(self, intervals: Sequence[tuple[int, int]]) -> None:
        self._starts = [start for start, _ in intervals]
        self._ends = [end for _, end in intervals]

    def around(self, position: int) -> tuple[int, int] | None:
        """Return the interval that ``position`` lies strictly inside of."""
        i = bisect_right(self._starts, position) - 1
        if i >= 0 and self._starts[i] < position < self._ends[i]:
            return self._starts[i], self._ends[i]
        return None


def _blocks(spans: Sequence[Span]) -> _Blocks:
    merged: list[tuple[int, int]] = []
    for start, end in sorted((span.start, span.end) for span in spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return _Blocks(merged)


def _borders(
    text: str, options: ChunkingOptions, separators: Sequence[str], blocks: _Blocks
) -> list[int]:
    """Return increasing positions from 0 to len(text), none strictly inside a block."""
    borders = [0]
    for proposed in _proposed(text, options.size, separators):
        around = blocks.around(proposed)
        if around is not None:
            before, after = around
            proposed = before if before > borders[-1] else after
        if borders[-1] < proposed < len(text):
            borders.append(proposed)
    return _without_crumbs([*borders, len(text)], options.size) if text else borders


def _without_crumbs(borders: Sequence[int], size: int) -> list[int]:
    """Join a heading left alone to what follows it, and a short end to what precedes it."""
    kept = [borders[0]]
    for border, following in zip(borders[1:-1], borders[2:], strict=True):
        crumb = min(border - kept[-1], following - border)
        if 4 * crumb > size or 4 * (following - kept[-1]) > 5 * size:
            kept.append(border)
    return [*kept, borders[-1]]


def _proposed(text: str, size: int, separators: Sequence[str]) -> Iterator[int]:
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    # Without overlap and stripping the pieces are the document in order, so positions are sums;
    # the splitter's own start indices are found by searching and err on repetitive text.
    splitter = RecursiveCharacterTextSplitter(
        separators=list(separators),
        chunk_size=size,
        chunk_overlap=0,
        keep_separator=True,
        strip_whitespace=False,
    )
    position = 0
    for part in splitter.split_text(text):
        position += len(part)
        yield position


def _start(text: str, borders: Sequence[int], i: int, overlap: int, blocks: _Blocks) -> int:
    """Return where piece ``i`` begins: up to ``overlap`` before its border, at a word's start."""
    border = borders[i]
    if i == 0 or overlap == 0:
        return border
    earliest = max(borders[i - 1], border - overlap)
    for position in range(earliest, border):
        if position and not text[position - 1].isspace():
            continue
        if blocks.around(position) is None:
            return position
    return border


def _piece(text: str, spans: Sequence[Span], start: int, end: int) -> Piece | None:
    inside = [span for span in spans if start <= span.start and span.end <= end]
    first = min((span.start for span in inside), default=end)
    last = max((span.end for span in inside), default=start)
    while start < first and text[start].isspace():
        start += 1
    while end > max(last, start) and text[end - 1].isspace():
        end -= 1
    if start == end:
        return None
    moved = (replace(s, start=s.start - start, end=s.end - start) for s in inside)
    return Piece(start, end, text[start:end], tuple(sorted(moved, key=lambda s: (s.start, s.end))))
