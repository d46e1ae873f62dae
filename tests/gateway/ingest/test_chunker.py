"""No entity is cut, nothing is lost."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.ingest.chunker import ChunkingOptions, Piece, chunk
from privacy.types import Span

SEPARATORS = ("\n\n", "\n", ". ", "; ", " ", "")


@st.composite
def documents(draw: st.DrawFn) -> tuple[str, list[Span], ChunkingOptions]:
    words = st.text(alphabet="abä. \n;\U0001f600-", min_size=0, max_size=12)
    text = "".join(draw(st.lists(words, max_size=60)))
    spans = []
    if text:
        for _ in range(draw(st.integers(0, 12))):
            start = draw(st.integers(0, len(text) - 1))
            end = draw(st.integers(start + 1, min(len(text), start + 25)))
            spans.append(Span(start, end, "PERSON", 0.5, "test"))
    size = draw(st.integers(1, 60))
    return text, spans, ChunkingOptions(size, draw(st.integers(0, size - 1)))


@settings(max_examples=400, deadline=None)
@given(documents())
def test_no_span_is_cut_and_no_character_is_lost(
    case: tuple[str, list[Span], ChunkingOptions],
) -> None:
    text, spans, options = case
    pieces = chunk(text, spans, options, SEPARATORS)
    covered: set[int] = set()
    for piece in pieces:
        assert piece.text == text[piece.start : piece.end] and piece.text
        covered.update(range(piece.start, piece.end))
        # Whatever overlaps the piece lies in it whole, and is reported at its place.
        expected = [s for s in spans if s.start < piece.end and piece.start < s.end]
        assert all(piece.start <= s.start and s.end <= piece.end for s in expected)
        assert [(s.start + piece.start, s.end + piece.start) for s in piece.spans] == sorted(
            (s.start, s.end) for s in expected
        )
    assert all(i in covered or text[i].isspace() for i in range(len(text)))
    assert [p.start for p in pieces] == sorted(p.start for p in pieces)


def test_a_border_in_a_name_moves_to_its_edge() -> None:
    text = "x" * 10 + " Ilse   Varga " + "y" * 10
    start = text.index("Ilse")
    span = Span(start, start + len("Ilse   Varga"), "PERSON", 1.0, "test")
    for size in range(3, 30):
        pieces = chunk(text, [span], ChunkingOptions(size, 0), SEPARATORS)
        whole = [p for p in pieces if "Ilse   Varga" in p.text]
        assert len(whole) == 1
        (found,) = whole[0].spans
        assert whole[0].text[found.start : found.end] == "Ilse   Varga"


def test_sizes_overlap_and_repetitive_text() -> None:
    text = "same words again. " * 400
    pieces = chunk(text, [], ChunkingOptions(700, 100), SEPARATORS)
    assert all(len(piece.text) <= 875 + 100 for piece in pieces)
    for before, after in zip(pieces, pieces[1:], strict=False):
        assert 0 < before.end - after.start <= 100
        assert text[after.start - 1].isspace()
    assert pieces[-1].end == len(text.rstrip())


def test_a_heading_does_not_stand_alone() -> None:
    text = "Heading\n\n" + "Sentence of some length here. " * 40
    pieces = chunk(text, [], ChunkingOptions(700, 100), SEPARATORS)
    assert pieces[0].text.startswith("Heading\n\nSentence")


def test_blank_text_has_no_chunk() -> None:
    assert chunk("", [], ChunkingOptions(), SEPARATORS) == []
    assert chunk(" \n\n ", [], ChunkingOptions(), SEPARATORS) == []


@pytest.mark.parametrize(("size", "overlap"), [(0, 0), (10, 10), (10, -1)])
def test_impossible_options(size: int, overlap: int) -> None:
    with pytest.raises(ValueError, match="chunking needs"):
        ChunkingOptions(size, overlap)


def test_a_piece_shows_no_text_when_printed() -> None:
    span = Span(0, 4, "PERSON", 1.0, "test")
    assert "Ilse" not in repr(Piece(0, 4, "Ilse", (span,)))
