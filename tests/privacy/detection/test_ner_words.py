"""Words and shapes: the tagger's view of a text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.detection.ner.words import (
    SHAPE_HANDLE,
    SHAPE_LINE,
    SHAPE_LOWER,
    SHAPE_MIXED,
    SHAPE_OTHER,
    SHAPE_TITLE,
    SHAPE_UPPER,
    is_paragraph_break,
    shape,
    split_words,
)


def words(text: str) -> list[str]:
    return [text[start:end] for start, end in split_words(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ilse   Varga.", ["Ilse", "Varga", "."]),
        ("O'Neil-Smith", ["O", "'", "Neil", "-", "Smith"]),
        ("Jose\u0301 Pe\u0301rez", ["Jose\u0301", "Pe\u0301rez"]),
        ("🚀🚀👩\u200d👩\u200d👧 Ilse", ["🚀🚀👩\u200d👩\u200d👧", "Ilse"]),
        ("see ❤\ufe0f @ilse_varga", ["see", "❤\ufe0f", "@ilse_varga"]),
        ("mail a@b.example", ["mail", "a", "@", "b", ".", "example"]),
        ("Ilse\r\n  Varga", ["Ilse", "\r\n  ", "Varga"]),
        ("Il\u00adse \ufeffVarga", ["Il\u00adse", "Varga"]),
        ("東京 Tower", ["東", "京", "Tower"]),
        ("snake_case", ["snake", "_", "case"]),
        ("", []),
        (" \t\u00a0", []),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@given(st.text(max_size=80))
def test_words_are_ordered_and_lose_no_letter(text: str) -> None:
    spans = split_words(text)
    assert all(start < end for start, end in spans)
    assert all(before[1] <= after[0] for before, after in zip(spans, spans[1:], strict=False))
    covered = {index for start, end in spans for index in range(start, end)}
    assert all(index in covered for index, char in enumerate(text) if char.isalnum())


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("ilse", SHAPE_LOWER),
        ("Ilse", SHAPE_TITLE),
        ("I", SHAPE_TITLE),
        ("ILSE", SHAPE_UPPER),
        ("O2B", SHAPE_UPPER),
        ("iPhone", SHAPE_MIXED),
        ("McDonald", SHAPE_MIXED),
        ("1984", SHAPE_OTHER),
        ("😀", SHAPE_OTHER),
        ("@", SHAPE_OTHER),
        ("@ilse", SHAPE_HANDLE),
        ("\n", SHAPE_LINE),
        ("東", SHAPE_LOWER),
    ],
)
def test_shape(word: str, expected: int) -> None:
    assert shape(word) == expected


@pytest.mark.parametrize(
    ("word", "expected"),
    [("\n", False), ("\r\n", False), ("\n  \n", True), ("\r\n\r\n", True), ("x", False)],
)
def test_only_an_empty_line_parts_paragraphs(word: str, expected: bool) -> None:
    assert is_paragraph_break(word) is expected
