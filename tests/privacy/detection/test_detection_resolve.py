"""The overlap rule, as cases and as properties."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.detection.resolve import resolve
from privacy.types import (
    EMAIL,
    ENTITY_TYPES,
    LOC,
    NATIONAL_ID,
    ORG,
    PERSON,
    PHONE,
    URL,
    Span,
)


def span(text: str, surface: str, type_: str, score: float = 0.9, name: str = "t") -> Span:
    start = text.index(surface)
    return Span(start, start + len(surface), type_, score, name)


def shown(text: str, spans: list[Span]) -> list[tuple[str, str]]:
    return [(text[s.start : s.end], s.type) for s in spans]


def test_overlapping_numbers_become_one_span_over_the_union() -> None:
    text = "My line is 943 476 5919, thanks!"
    spans = [
        span(text, "943 476 5919", PHONE, 0.75),
        span(text, "943 476", PHONE, 0.95, "a"),
        span(text, "476 5919", NATIONAL_ID, 0.95, "b"),
    ]
    (only,) = resolve(text, spans)
    assert text[only.start : only.end] == "943 476 5919"


def test_containment_uses_score_and_length() -> None:
    text = "Varga Dental Supplies hired Ilse."
    spans = [
        span(text, "Varga Dental Supplies hired Ilse", ORG, 0.10),
        span(text, "Ilse", PERSON, 0.99),
    ]
    assert shown(text, resolve(text, spans)) == [("Varga Dental Supplies", ORG), ("Ilse", PERSON)]


def test_a_longer_certain_organisation_wins_over_the_person_in_it() -> None:
    text = "Varga Dental Supplies GmbH"
    spans = [span(text, text, ORG, 0.9), span(text, "Varga", PERSON, 0.95)]
    assert shown(text, resolve(text, spans)) == [(text, ORG)]


@pytest.mark.parametrize("gap", [" ", "   ", "\t", "\u00a0", " M. ", " van der "])
def test_adjacent_person_tokens_are_one_person(gap: str) -> None:
    text = f"by Ilse{gap}Varga now"
    spans = [span(text, "Ilse", PERSON), span(text, "Varga", PERSON)]
    assert shown(text, resolve(text, spans)) == [(f"Ilse{gap}Varga", PERSON)]


@pytest.mark.parametrize("gap", [" - ", " – ", ", ", "\n\n", " / ", " and "])
def test_other_gaps_keep_two_people_apart(gap: str) -> None:
    text = f"by Ilse{gap}Tadeo now"
    spans = [span(text, "Ilse", PERSON), span(text, "Tadeo", PERSON)]
    assert shown(text, resolve(text, spans)) == [("Ilse", PERSON), ("Tadeo", PERSON)]


def test_two_full_names_are_never_joined() -> None:
    text = "Ilse Varga Tadeo Brandt"
    spans = [span(text, "Ilse Varga", PERSON), span(text, "Tadeo Brandt", PERSON)]
    assert len(resolve(text, spans)) == 2


def test_a_person_does_not_swallow_the_address_behind_a_dash() -> None:
    text = "Chris Mbeki - chrismbeki@roa.test"
    spans = [
        span(text, "Chris Mbeki - chris", PERSON, 0.95),
        span(text, "chrismbeki@roa.test", EMAIL, 0.99),
    ]
    assert shown(text, resolve(text, spans)) == [
        ("Chris Mbeki", PERSON),
        ("chrismbeki@roa.test", EMAIL),
    ]


@pytest.mark.parametrize(
    ("text", "surface", "kept"),
    [
        ("about Varga's car", "Varga's", "Varga"),
        ("about Varga’s car", "Varga’s", "Varga"),
        ("(Ilse Varga),", "(Ilse Varga),", "Ilse Varga"),
        ("**Ilse**", "**Ilse**", "Ilse"),
        ("Ilse M. said", "Ilse M.", "Ilse M."),
        ("met Ilse Varga.", "Ilse Varga.", "Ilse Varga"),
        ("Vargas", "Varga", "Vargas"),
        ("from Lund (SE)", "Lund (SE)", "Lund (SE)"),
    ],
)
def test_edges_of_named_spans(text: str, surface: str, kept: str) -> None:
    assert [t for t, _ in shown(text, resolve(text, [span(text, surface, PERSON)]))] == [kept]


def test_a_span_is_cut_where_a_sentence_ends() -> None:
    text = "They hired Ilse. Acme Holdings LLC paid."
    cut = resolve(text, [span(text, "Ilse. Acme Holdings LLC", ORG)])
    assert shown(text, cut) == [("Ilse", ORG), ("Acme Holdings LLC", ORG)]


def test_structured_beats_named_even_when_shorter() -> None:
    text = "Varga 212-555-0142 office"
    spans = [
        span(text, "Varga 212-555-0142 office", PERSON, 0.99),
        span(text, "212-555-0142", PHONE, 0.95),
    ]
    assert ("212-555-0142", PHONE) in shown(text, resolve(text, spans))
    assert ("Varga", PERSON) in shown(text, resolve(text, spans))


def test_independent_evidence_adds_up_before_the_threshold() -> None:
    text = "met Ilse"
    one = [span(text, "Ilse", PERSON, 0.4, "a")]
    two = [*one, span(text, "Ilse", PERSON, 0.4, "b")]
    assert resolve(text, one, {PERSON: 0.5}) == []
    (found,) = resolve(text, two, {PERSON: 0.5})
    assert found.score == pytest.approx(0.64)
    assert resolve(text, two, {PERSON: 0.7}) == []


def test_the_same_recognizer_twice_is_no_new_evidence() -> None:
    text = "met Ilse"
    twice = [span(text, "Ilse", PERSON, 0.4, "a"), span(text, "Ilse", PERSON, 0.4, "a")]
    assert resolve(text, twice, {PERSON: 0.5}) == []


def test_unnamed_types_have_the_default_threshold() -> None:
    text = "in Lund"
    assert resolve(text, [span(text, "Lund", LOC, 0.49)], {}) == []
    assert len(resolve(text, [span(text, "Lund", LOC, 0.5)], {})) == 1


@pytest.mark.parametrize(("start", "end"), [(0, 99), (-1, 2), (2, 2), (3, 2)])
def test_spans_outside_the_text_are_refused_without_quoting_it(start: int, end: int) -> None:
    with pytest.raises(ValueError, match="reported") as caught:
        resolve("Ilse", [Span(start, end, PERSON, 0.9, "t")])
    assert "Ilse" not in str(caught.value)


def test_a_url_part_and_an_address_on_the_same_range_give_one_span() -> None:
    text = "?mail=ilse@example.com"
    spans = [
        span(text, "ilse@example.com", URL, 0.8),
        span(text, "ilse@example.com", EMAIL, 0.99),
    ]
    assert shown(text, resolve(text, spans)) == [("ilse@example.com", EMAIL)]


TEXTS = st.text(
    alphabet=st.sampled_from(list("Ilse Varga.-,\n'\"12@éßİ🚀 e\u0301_/")), min_size=1, max_size=60
)


@st.composite
def candidates(draw: st.DrawFn) -> tuple[str, list[Span]]:
    text = draw(TEXTS)
    spans = []
    for _ in range(draw(st.integers(0, 12))):
        start = draw(st.integers(0, len(text) - 1))
        end = draw(st.integers(start + 1, len(text)))
        type_ = draw(st.sampled_from(ENTITY_TYPES))
        score = draw(st.sampled_from([0.1, 0.4, 0.5, 0.75, 0.9, 0.99, 1.0]))
        spans.append(Span(start, end, type_, score, draw(st.sampled_from("abc"))))
    return text, spans


@given(candidates())
def test_result_is_sorted_inside_the_text_and_free_of_overlaps(
    case: tuple[str, list[Span]],
) -> None:
    text, spans = case
    result = resolve(text, spans)
    assert all(0 <= s.start < s.end <= len(text) for s in result)
    assert all(a.end <= b.start for a, b in zip(result, result[1:], strict=False))


@given(candidates(), st.randoms(use_true_random=False))
def test_the_order_of_candidates_does_not_matter(case, shuffler) -> None:  # type: ignore[no-untyped-def]
    text, spans = case
    shuffled = list(spans)
    shuffler.shuffle(shuffled)
    assert resolve(text, shuffled) == resolve(text, spans)


@given(candidates())
def test_no_letter_or_digit_of_a_structured_span_is_left_over(case: tuple[str, list[Span]]) -> None:
    text, spans = case
    result = resolve(text, spans)
    covered = {i for s in result for i in range(s.start, s.end)}
    for s in spans:
        if s.type in (EMAIL, PHONE) and sum(c.isalnum() for c in text[s.start : s.end]) >= 3:
            inside = [i for i in range(s.start, s.end) if text[i].isalnum()]
            assert sum(i not in covered for i in inside) < 3 * (len(spans) + 1)
            assert any(i in covered for i in inside)


def test_a_name_in_brackets_is_joined_only_inside_a_name() -> None:
    def names(text: str, *words: str) -> list[str]:
        spans = [Span(text.index(w), text.index(w) + len(w), "PERSON", 0.9, "ner") for w in words]
        return [text[s.start : s.end] for s in resolve(text, spans)]

    listed = names("Brandt (Tadeo) and Lund left", "Brandt", "Tadeo", "Lund")
    assert listed == ["Brandt", "Tadeo", "Lund"]
    assert names("Ask Ilse (Izzy) Varga", "Ilse", "Izzy", "Varga") == ["Ilse (Izzy) Varga"]
