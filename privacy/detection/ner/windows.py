"""Overlapping windows over a text of any length."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Window:
    """Words ``start`` to ``end`` (one past the last) that the model reads together.

    ``keep_start`` and ``keep_end`` bound the words whose scores are taken from this window: each
    word of the text is kept by exactly one window, the one that shows it more context.
    """

    start: int
    end: int
    keep_start: int
    keep_end: int


def make_windows(sizes: Sequence[int], budget: int, overlap: int) -> list[Window]:
    """Cut words into windows that overlap, none of which has more than ``budget`` pieces.

    Args:
        sizes: Word pieces of each word; each at most ``budget``.
        budget: Most pieces in a window.
        overlap: Pieces that neighbouring windows share, about; less than ``budget``.

    Returns:
        Windows in order. Together they keep every word once.

    Raises:
        ValueError: A word does not fit into a window, or the overlap leaves no room to advance.
    """
    if overlap >= budget or any(size > budget for size in sizes):
        raise ValueError("a window must be larger than the overlap and than any word")
    bounds: list[tuple[int, int]] = []
    start = 0
    while start < len(sizes):
        end, used = start, 0
        while end < len(sizes) and used + sizes[end] <= budget:
            used += sizes[end]
            end += 1
        bounds.append((start, end))
        if end == len(sizes):
            break
        back, shared = end, 0
        while back - 1 > start and shared + sizes[back - 1] <= overlap:
            back -= 1
            shared += sizes[back]
        start = back
    cuts = [0]
    cuts += [
        (after[0] + before[1] + 1) // 2 for before, after in zip(bounds, bounds[1:], strict=False)
    ]
    cuts.append(len(sizes))
    return [
        Window(low, high, cuts[number], cuts[number + 1])
        for number, (low, high) in enumerate(bounds)
    ]
