"""Cut long texts into overlapping windows and join what was found in them.

Each window owns its core; the margins give context. A span belongs to the window in whose core it
starts, so an entity on a border is found once, whole, by the window that sees all of it. Cores begin
at white space where there is some within reach, so a pattern that scans from left to right meets
the same token borders as in one pass over the whole text.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from privacy.interrupt import checkpoint
from privacy.types import Span

CORE: Final = 16_384
MARGIN: Final = 2_048
_SPACE: Final = re.compile(r"\s")


@dataclass(frozen=True, slots=True)
class Window:
    """``text[start:end]`` is shown, ``text[core_start:core_end]`` is owned; offsets in code points."""

    start: int
    end: int
    core_start: int
    core_end: int


def _at_space(text: str, position: int, reach: int) -> int:
    match = _SPACE.search(text, position, min(len(text), position + reach))
    return match.start() if match else position


def windows(text: str, core: int = CORE, margin: int = MARGIN) -> Iterator[Window]:
    """Yield windows whose cores tile the text.

    Raises:
        ValueError: ``core`` < 1 or ``margin`` < 0.
    """
    if core < 1 or margin < 0:
        raise ValueError("core must be at least 1 and margin at least 0")
    length, begin = len(text), 0
    while begin < length or begin == length == 0:
        finish = length if length - begin <= core else _at_space(text, begin + core, margin)
        left = 0 if begin <= margin else _at_space(text, begin - margin, margin // 2)
        yield Window(left, min(length, finish + margin), begin, finish)
        if finish >= length:
            return
        begin = finish


def find_windowed(
    find: Callable[[str], list[Span]], text: str, core: int = CORE, margin: int = MARGIN
) -> list[Span]:
    """Run ``find`` over the windows of ``text``; offsets of the result are those of ``text``."""
    if len(text) <= core + margin:
        return find(text)
    spans: list[Span] = []
    for window in windows(text, core, margin):
        checkpoint()
        for span in find(text[window.start : window.end]):
            start = span.start + window.start
            if window.core_start <= start < window.core_end:
                spans.append(replace(span, start=start, end=span.end + window.start))
    return spans
