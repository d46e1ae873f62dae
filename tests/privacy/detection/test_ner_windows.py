"""Windows: every word once, none too large, all with context."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.detection.ner.windows import make_windows


@given(st.lists(st.integers(1, 9), max_size=300), st.integers(20, 60), st.integers(0, 12))
def test_windows_keep_every_word_once(sizes: list[int], budget: int, overlap: int) -> None:
    windows = make_windows(sizes, budget, overlap)
    kept = [word for w in windows for word in range(w.keep_start, w.keep_end)]
    assert kept == list(range(len(sizes)))
    for window in windows:
        assert window.start <= window.keep_start <= window.keep_end <= window.end
        assert sum(sizes[window.start : window.end]) <= budget
    for before, after in zip(windows, windows[1:], strict=False):
        assert before.start < after.start <= before.end


def test_a_kept_word_has_context_on_both_sides() -> None:
    windows = make_windows([1] * 1000, 100, 40)
    for before, after in zip(windows, windows[1:], strict=False):
        assert before.end - before.keep_end >= 19
        assert after.keep_start - after.start >= 19


def test_a_short_text_is_one_window() -> None:
    (window,) = make_windows([2, 3, 1], 10, 4)
    assert (window.start, window.end, window.keep_start, window.keep_end) == (0, 3, 0, 3)


def test_no_words_no_windows() -> None:
    assert make_windows([], 10, 4) == []


@pytest.mark.parametrize(("sizes", "budget", "overlap"), [([5], 4, 1), ([1], 4, 4)])
def test_refuses_what_cannot_advance(sizes: list[int], budget: int, overlap: int) -> None:
    with pytest.raises(ValueError, match="a window must be larger"):
        make_windows(sizes, budget, overlap)
