"""Windows tile the text, and what they find is what one pass finds."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.detection.windows import find_windowed, windows
from privacy.types import PERSON, Span

NAME = re.compile(r"[A-Z][a-z]+ [A-Z][a-z]+")


def find(text: str) -> list[Span]:
    return [Span(m.start(), m.end(), PERSON, 0.9, "names") for m in NAME.finditer(text)]


@given(st.text(alphabet="ab \n", max_size=300), st.integers(1, 50), st.integers(0, 30))
def test_cores_tile_the_text(text: str, core: int, margin: int) -> None:
    cuts = list(windows(text, core, margin))
    assert cuts[0].core_start == 0
    assert cuts[-1].core_end == len(text)
    for left, right in zip(cuts, cuts[1:], strict=False):
        assert left.core_end == right.core_start
    assert all(w.start <= w.core_start <= w.core_end <= w.end for w in cuts)


@given(
    st.lists(
        st.sampled_from(["Ilse Varga", "pump", "the", "x" * 30, "Tadeo Brandt", "\n"]), max_size=60
    ),
    st.integers(20, 60),
)
def test_windows_find_what_one_pass_finds(words: list[str], core: int) -> None:
    text = ", ".join(words)
    assert find_windowed(find, text, core, 60) == find(text)


def test_an_entity_on_a_border_is_found_once() -> None:
    for shift in range(30):
        text = "y" * shift + " " + "z " * 20 + "Ilse Varga" + " z" * 40
        assert len(find_windowed(find, text, 40, 20)) == 1


@pytest.mark.parametrize(("core", "margin"), [(0, 1), (1, -1)])
def test_impossible_windows_are_refused(core: int, margin: int) -> None:
    with pytest.raises(ValueError, match="core must be"):
        list(windows("abc", core, margin))


def test_an_empty_text_has_one_empty_window() -> None:
    assert len(list(windows(""))) == 1
