"""The shipped tagger on the texts that taggers are known to fail on."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy.detection.ner.tagger import NerTagger
from privacy.types import NAMED_TYPES, PERSON

Border = tuple[int, int]
SHARED = NerTagger.load()
RECALL_FLOOR = 0.8
PRECISION_FLOOR = 0.8
SAMPLE = Path(__file__).parent / "ner_sample.jsonl"


@pytest.fixture(scope="module")
def tagger() -> NerTagger:
    return SHARED


def people(tagger: NerTagger, text: str) -> list[str]:
    (spans,) = tagger.tag([text])
    return [text[s.start : s.end] for s in spans if s.type == PERSON]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SIGNED: ILSE VARGA, TREASURER", ["ILSE VARGA"]),
        ("pls ask ilse varga about it", ["ilse varga"]),
        ("Signed by Ilse   Varga on Monday (three blanks between the names).", ["Ilse   Varga"]),
        ("🚀🚀👩‍👩‍👧 Ilse Varga called from 212-555-0142 🙂", ["Ilse Varga"]),
        ("Dear Mr. Varga, José Peréz wrote to us.", ["Varga", "José Peréz"]),
        ("Jose\u0301 Varga wrote to us.", ["Jose\u0301 Varga"]),
        ("The contract was signed by Ilse\nVarga in the morning.", ["Ilse\nVarga"]),
        ("Dr. Ngozi Okonkwo examined the patient.", ["Ngozi Okonkwo"]),
    ],
)
def test_finds_the_whole_name(tagger: NerTagger, text: str, names: list[str]) -> None:
    assert people(tagger, text) == names


@pytest.mark.parametrize("filler", [400, 73, 74, 75, 76, 77])
def test_finds_a_name_at_the_end_of_a_long_text(tagger: NerTagger, filler: int) -> None:
    text = "The pump was serviced on schedule. " * filler + "Meet Ilse Varga at the gate."
    assert people(tagger, text) == ["Ilse Varga"]


def test_finds_a_name_after_2600_characters(tagger: NerTagger) -> None:
    filler = "The committee reviewed the maintenance figures of the plant in detail. "
    text = (filler * 40)[:2570] + ". Forward it to Tadeo Brandt."
    assert people(tagger, text) == ["Tadeo Brandt"]


def test_a_name_on_a_window_border_is_found_once(tagger: NerTagger) -> None:
    # Word by word, the name moves over a whole window and over the border to the next.
    before = "The pump was serviced on schedule and nobody had to wait for the spare part. " * 9
    after = "The invoice was paid in full and the file is closed. " * 12
    words = before.split()
    texts = [" ".join(words[cut:]) + " Later Ilse Varga came home. " + after for cut in range(126)]
    for text, spans in zip(texts, tagger.tag(texts), strict=True):
        assert [text[s.start : s.end] for s in spans] == ["Ilse Varga"]


def test_common_words_are_no_names(tagger: NerTagger) -> None:
    texts = [
        "may i ask whether you will mark the exam?",
        "Translate the following text and keep the formatting.",
        "Annual General Meeting Agenda: Opening Remarks, Financial Statements.",
        "The pump was serviced on schedule.",
    ]
    assert tagger.tag(texts) == [[], [], [], []]


def test_types_of_places_and_organisations(tagger: NerTagger) -> None:
    text = "She works for Brandt Consulting GmbH in Budapest, Hungary."
    (spans,) = tagger.tag([text])
    found = {(text[s.start : s.end], s.type) for s in spans}
    assert found >= {("Brandt Consulting GmbH", "ORG"), ("Budapest", "LOC"), ("Hungary", "LOC")}


def test_no_name_runs_over_an_empty_line(tagger: NerTagger) -> None:
    text = "Attendees\n\nIlse Varga\n\nTadeo Brandt\n\nMinutes"
    (spans,) = tagger.tag([text])
    assert {"Ilse Varga", "Tadeo Brandt"} <= {text[s.start : s.end] for s in spans}
    assert all("\n\n" not in text[s.start : s.end] for s in spans)


@pytest.mark.parametrize(
    "text", ["", " \n ", "\u200d", "\x00\x01", "🙂", "\ud800", "x" * 5000, "東" * 700]
)
def test_odd_texts_are_no_trouble(tagger: NerTagger, text: str) -> None:
    (spans,) = tagger.tag([text])
    assert all(0 <= s.start < s.end <= len(text) for s in spans)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(max_size=60), max_size=5))
def test_spans_lie_inside_in_order(texts: list[str]) -> None:
    found = SHARED.tag(texts)
    assert len(found) == len(texts)
    for text, spans in zip(texts, found, strict=True):
        last = 0
        for span in spans:
            assert last <= span.start < span.end <= len(text)
            assert span.type in NAMED_TYPES
            assert 0.0 <= span.score <= 1.0
            assert text[span.start : span.end] == text[span.start : span.end].strip()
            last = span.end


def load_sample() -> tuple[list[str], list[list[Border]]]:
    rows = [json.loads(line) for line in SAMPLE.read_text(encoding="utf-8").splitlines()]
    return [r["text"] for r in rows], [[(s[0], s[1]) for s in r["spans"]] for r in rows]


def share_touched(wanted: list[list[Border]], offered: list[list[Border]]) -> float:
    """Share of the wanted spans that some offered span of the same text overlaps."""
    hits = [
        any(low < end and start < high for start, end in there)
        for here, there in zip(wanted, offered, strict=True)
        for low, high in here
    ]
    return sum(hits) / len(hits)


def test_quality_does_not_fall(tagger: NerTagger) -> None:
    texts, gold = load_sample()
    assert len(texts) >= 100
    found = [[(s.start, s.end) for s in spans] for spans in tagger.tag(texts)]
    assert share_touched(gold, found) >= RECALL_FLOOR
    assert share_touched(found, gold) >= PRECISION_FLOOR


def test_threads_get_the_same_answers(tagger: NerTagger) -> None:
    texts, _ = load_sample()
    chunks = [texts[start : start + 10] for start in range(0, 60, 10)]
    alone = [tagger.tag(chunk) for chunk in chunks]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(tagger.tag, chunks * 2))
    assert together == alone * 2


def test_a_text_does_not_depend_on_its_neighbours(tagger: NerTagger) -> None:
    texts, _ = load_sample()
    together = tagger.tag(texts[:40])
    alone = [tagger.tag([text])[0] for text in texts[:40]]
    assert together == alone


def test_reload_gives_the_same_answers(tagger: NerTagger) -> None:
    texts, _ = load_sample()
    assert NerTagger.load(threads=2).tag(texts[:10]) == tagger.tag(texts[:10])
