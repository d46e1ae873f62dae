"""The engine on recognizers alone and on scripted taggers: cache, threads, failures, windows, order."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy.detection.base import Recognizer
from privacy.detection.casing import recased
from privacy.detection.engine import DEFAULT_THRESHOLDS, DetectionFailed, Detector
from privacy.detection.registry import (
    RecognizerRegistry,
    default_recognizers,
    register,
    unregister,
)
from privacy.types import ENTITY_TYPES, LOC, ORG, PERSON, PHONE, Span


class Script:
    """A tagger that knows some words, and counts how often it is asked."""

    def __init__(self, words: dict[str, tuple[str, float]]) -> None:
        self._words = words
        self.asked: list[str] = []

    def tag(self, texts: Sequence[str]) -> list[list[Span]]:
        self.asked.extend(texts)
        return [
            [
                Span(at, at + len(word), type_, score, "script")
                for word, (type_, score) in self._words.items()
                for at in _places(text, word)
            ]
            for text in texts
        ]


def _places(text: str, word: str) -> list[int]:
    places, at = [], text.find(word)
    while at >= 0:
        places.append(at)
        at = text.find(word, at + 1)
    return places


class Broken:
    name = "broken"
    types = (PHONE,)

    def find(self, text: str) -> list[Span]:
        raise RuntimeError(f"cannot read {text}")

    def tag(self, texts: Sequence[str]) -> list[list[Span]]:
        raise RuntimeError(f"cannot read {texts[0]}")


def shown(detector: Detector, text: str) -> list[tuple[str, str]]:
    return [(text[s.start : s.end], s.type) for s in detector.detect([text])[0]]


@pytest.fixture(scope="module")
def plain() -> Detector:
    return Detector(default_recognizers(), None)


def test_the_tagger_adds_to_the_recognizers() -> None:
    detector = Detector(default_recognizers(), Script({"Qorvath": (PERSON, 0.9)}))
    assert shown(detector, "then Qorvath rang 212-555-0142") == [
        ("Qorvath", PERSON),
        ("212-555-0142", PHONE),
    ]


@pytest.mark.parametrize("tagged", ["20qorvath", "%20qorvath", "%2Cqorvath", "qorvath"])
def test_a_percent_encoded_sign_is_no_part_of_a_name(tagged: str) -> None:
    detector = Detector([], Script({tagged: (PERSON, 0.9)}))
    text = f"q=then{'%20qorvath' if '%' not in tagged else tagged} 50% 20"
    assert shown(detector, text) == [("qorvath", PERSON)]


def test_a_resent_text_is_not_tagged_again() -> None:
    tagger = Script({"Qorvath": (PERSON, 0.9)})
    detector = Detector([], tagger)
    first = detector.detect(["met Qorvath", "met Qorvath", "and Qorvath"])
    again = detector.detect(["and Qorvath", "met Qorvath"])
    assert first[0] == first[1] == again[1]
    assert sorted(tagger.asked) == ["and Qorvath", "met Qorvath"]


def test_a_text_without_entities_is_cached_too() -> None:
    tagger = Script({})
    detector = Detector([], tagger)
    detector.detect(["nothing"])
    detector.detect(["nothing"])
    assert tagger.asked == ["nothing"]


def test_changing_a_result_does_not_change_the_cache() -> None:
    detector = Detector([], Script({"Qorvath": (PERSON, 0.9)}))
    detector.detect(["met Qorvath"])[0].clear()
    assert len(detector.detect(["met Qorvath"])[0]) == 1


def test_lines_in_one_case_get_a_second_look() -> None:
    tagger = Script({"Ilse Varga": (PERSON, 0.9)})
    detector = Detector([], tagger)
    assert shown(detector, "Hello.\npls ask ilse varga about it") == [("ilse varga", PERSON)]
    assert shown(detector, "SIGNED: ILSE VARGA, TREASURER") == [("ILSE VARGA", PERSON)]
    (span,) = detector.detect(["pls ask ilse varga about it"])[0]
    assert span.score == pytest.approx(0.9 * 0.85)


@given(st.text(max_size=80))
def test_recased_lines_keep_their_length(text: str) -> None:
    for offset, variant in recased(text):
        original = text[offset : offset + len(variant)]
        assert variant.casefold() == original.casefold() or len(variant) == len(original)
        assert "\n" not in variant


def test_mixed_case_needs_no_second_look() -> None:
    assert list(recased("Ask Ilse about it.\nAnd Bo.")) == []


def test_the_threshold_of_a_type_decides() -> None:
    tagger = Script({"Qorvath": (PERSON, 0.6), "Xanadou": (LOC, 0.6)})
    detector = Detector([], tagger, thresholds={PERSON: 0.7})
    assert shown(detector, "met Qorvath at Xanadou") == [("Xanadou", LOC)]


@pytest.mark.parametrize("part", ["recognizer", "tagger"])
def test_a_failure_closes_and_quotes_nothing(part: str) -> None:
    broken = Broken()
    detector = Detector([broken], None) if part == "recognizer" else Detector([], broken)
    with pytest.raises(DetectionFailed) as caught:
        detector.detect(["Ilse Varga"])
    assert "Ilse" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_a_tagger_that_drops_texts_is_a_failure() -> None:
    class Short:
        def tag(self, texts: Sequence[str]) -> list[list[Span]]:
            return []

    with pytest.raises(DetectionFailed, match="another number"):
        Detector([], Short()).detect(["a"])


def test_a_failure_is_not_cached() -> None:
    broken = Broken()
    detector = Detector([broken], None)
    for _ in range(2):
        with pytest.raises(DetectionFailed):
            detector.detect(["x"])


@pytest.mark.parametrize(
    ("thresholds", "names"), [({"PERSON": 1.5}, 1), ({"NOBODY": 0.5}, 1), ({}, 2)]
)
def test_wrong_settings_are_refused(thresholds: dict[str, float], names: int) -> None:
    with pytest.raises(ValueError, match=r"threshold|unique"):
        Detector([Broken()] * names, None, thresholds=thresholds)


def test_default_thresholds_cover_every_type() -> None:
    assert set(DEFAULT_THRESHOLDS) == set(ENTITY_TYPES)


def test_the_registry_refuses_duplicates_and_unknown_types() -> None:
    registry = RecognizerRegistry()
    registry.register(Broken())
    with pytest.raises(ValueError, match="registered already"):
        registry.register(Broken())

    class Odd(Broken):
        name = "odd"
        types = ("NOTHING",)

    with pytest.raises(ValueError, match="unknown types"):
        registry.register(Odd())
    registry.unregister("broken")
    assert registry.all() == []
    with pytest.raises(KeyError, match="broken"):
        registry.unregister("broken")


def test_the_default_registry_takes_and_gives_back() -> None:
    before = [r.name for r in default_recognizers()]
    register(Broken())
    try:
        assert [r.name for r in default_recognizers()] == [*before, "broken"]
    finally:
        unregister("broken")
    assert [r.name for r in default_recognizers()] == before
    assert len(before) == len(set(before)) >= 25
    assert all(isinstance(r, Recognizer) for r in default_recognizers())


def test_explain_shows_what_was_not_taken(plain: Detector) -> None:
    raw = plain.explain("Card 4111 1111 1111 1111, cvc 731")
    assert {s.recognizer for s in raw} >= {"credit_card", "cvc"}
    assert len(raw) >= len(plain.detect(["Card 4111 1111 1111 1111, cvc 731"])[0])


def test_many_threads_get_the_same_results(plain: Detector) -> None:
    texts = [
        f"Dr. Ilse Varga, 212-555-{1000 + i % 20}, ilse{i % 20}@example.com" for i in range(200)
    ]
    expected = [Detector(default_recognizers(), None).detect([t])[0] for t in texts[:20]]
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda t: plain.detect([t])[0], texts))
    assert all(result == expected[i % 20] for i, result in enumerate(results))


PIECES = [
    "Dr. Ilse Varga", "bo.lund@example.com", "212-555-0142", "4111 1111 1111 1111", "CVC 731", "EMP-00412",
    "DE89 3704 0044 0532 0130 00", "17/02/1984", "14 Rosewood Lane", "Varga Dental Supplies GmbH",
    "password=hunter22", "https://x.example/users/ilse-v", "10.1.2.3", "cfg.name", "NHS 943 476 5919",
    "the pump was serviced", "🚀 é\u0301", "data:image/png;base64,iVBORAKIAABCDEFGHIJKLMNOP", "\n", "...",
]  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=12), st.sampled_from([" ", ", ", "\n", " - "]))
def test_any_mixture_gives_sorted_disjoint_spans(pieces: list[str], gap: str) -> None:
    text = gap.join(pieces)
    spans = Detector(default_recognizers(), None).detect([text])[0]
    assert all(0 <= s.start < s.end <= len(text) for s in spans)
    assert all(a.end <= b.start for a, b in zip(spans, spans[1:], strict=False))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=8), st.randoms(use_true_random=False))
def test_the_order_of_recognizers_does_not_matter(pieces, shuffler) -> None:  # type: ignore[no-untyped-def]
    recognizers = default_recognizers()
    shuffler.shuffle(recognizers)
    text = "; ".join(pieces)
    ordered = Detector(default_recognizers(), None).detect([text])
    assert Detector(recognizers, None).detect([text]) == ordered


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=200))
def test_no_text_makes_the_engine_fail(text: str) -> None:
    Detector(default_recognizers(), None).detect([text])


def test_a_long_text_gives_what_its_paragraphs_give(plain: Detector) -> None:
    paragraph = (
        "The pump was serviced on schedule. Dr. Ilse Varga rang 212-555-0142 about EMP-00412.\n"
        "IBAN DE89 3704 0044 0532 0130 00, mail bo.lund@example.com, at 14 Rosewood Lane.\n\n"
    )
    repeats = 400
    whole = plain.detect([paragraph * repeats])[0]
    single = plain.detect([paragraph])[0]
    expected = [
        (s.start + i * len(paragraph), s.end + i * len(paragraph), s.type)
        for i in range(repeats)
        for s in single
    ]
    assert [(s.start, s.end, s.type) for s in whole] == expected


def test_org_of_a_scripted_tagger_is_kept_beside_the_person() -> None:
    text = "Varga Dental Supplies hired Ilse."
    tagger = Script({"Varga Dental Supplies hired Ilse": (ORG, 0.10), "Ilse": (PERSON, 0.99)})
    detector = Detector(default_recognizers(), tagger)
    assert shown(detector, text) == [("Varga Dental Supplies", ORG), ("Ilse", PERSON)]
