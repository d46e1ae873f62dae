"""The matcher of sweep and guard: what it must find, what it must leave."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.detection.folding import fold, squeeze
from privacy.detection.matcher import KnownMatcher
from privacy.detection.phone_forms import phone_forms
from privacy.types import (
    AMOUNT,
    BANK_ACCOUNT,
    CREDIT_CARD,
    CVC,
    EMAIL,
    IBAN,
    LOC,
    ORG,
    PERSON,
    PHONE,
    RECORD_ID,
    URL,
    US_SSN,
    USERNAME,
    Span,
)


def found(
    originals: list[tuple[str, str]], text: str, supported: list[Span] | None = None
) -> list[str]:
    return [text[s.start : s.end] for s in KnownMatcher(originals).find(text, supported or [])]


@pytest.mark.parametrize(
    ("original", "text", "hits"),
    [
        ("Ilse Varga", "ILSE VARGA met ilse varga", ["ILSE VARGA", "ilse varga"]),
        ("ilse varga", "Ilse Varga", ["Ilse Varga"]),
        ("Ilse Varga", "Ilse\n   Varga", ["Ilse\n   Varga"]),
        ("Ilse   Varga", "Ilse Varga", ["Ilse Varga"]),
        ("Ilse Varga", "Ilse\u00a0Varga", ["Ilse\u00a0Varga"]),
        ("Varga", "Vargas Vargan overVarga overvarga", ["Varga", "Varga"]),
        ("Brook", "Brooks", []),
        ("Thomas", "Thomass", []),
        ("Varga", "Varga's, (Varga) Varga-Lund", ["Varga", "Varga", "Varga"]),
        ("Varga", "report_varga_2.pdf", ["varga"]),
        ("User1", "User12 and User1", ["User1"]),
        ("Varga7", "Varga Varga7 Varga71", ["Varga7"]),
        ("Ilse Varga", "ilse_varga ilse.varga Ilse-Varga ilse%20varga", ["ilse_varga", "ilse.varga", "Ilse-Varga", "ilse%20varga"]),
        ("Zoë Krüger", "ZOË KRÜGER, Zoe\u0308 Kru\u0308ger, Zoe Kruger", ["ZOË KRÜGER", "Zoe\u0308 Kru\u0308ger", "Zoe Kruger"]),
        ("Zoe\u0308", "met Zoë", ["Zoë"]),
        ("O'Brien", "O’Brien and O'BRIEN", ["O’Brien", "O'BRIEN"]),
        ("Jean-Luc", "Jean\u2011Luc", ["Jean\u2011Luc"]),
        ("Ilse Varga", "I\u00adlse Var\u200bga", ["I\u00adlse Var\u200bga"]),
        ("Ilse", "Ｉｌｓｅ", ["Ｉｌｓｅ"]),
        ("Weiß", "WEISS", ["WEISS"]),
        ("김민수", "김민수 씨", ["김민수"]),
        ("C++ Ltd.", "the C++ Ltd. office", ["C++ Ltd."]),
    ],
)  # fmt: skip
def test_names(original: str, text: str, hits: list[str]) -> None:
    assert found([(original, PERSON)], text) == hits


@pytest.mark.parametrize("word", ["May", "Will", "Mark", "Rose"])
def test_an_everyday_word_needs_support(word: str) -> None:
    low = word.lower()
    known = [(word, PERSON)]
    assert found(known, f"{low} I ask? {word} is a word. {word} again") == []
    assert found(known, f"then {word} said") == [word]
    assert found(known, f"THEN {word.upper()} SAID") == []
    text = f"{word} is here"
    assert found(known, text, [Span(0, len(word), PERSON, 0.9, "t")]) == [word]


def test_may_i_neither_changes_nor_blocks() -> None:
    assert found([("May", PERSON)], "may I come in? You may.") == []


def test_an_acronym_that_is_a_word_is_found_in_capitals_only() -> None:
    assert found([("IT", ORG)], "It is it. The IT desk") == ["IT"]
    assert found([("US", LOC)], "tell us about the US plan") == ["US"]
    assert found([("US", LOC)], "TELL US NOW, ALL OF YOU, THIS IS ALL IN CAPITALS") == []


@pytest.mark.parametrize("order", [1, -1])
def test_a_spelling_in_capitals_hides_no_other(order: int) -> None:
    text = "They met Rose there."
    (span,) = KnownMatcher([("ROSE", PERSON), ("Rose", PERSON)][::order]).find(text)
    assert text[span.start : span.end] == "Rose"


def test_full_names_with_everyday_words_need_none() -> None:
    assert found([("Mark Rose", PERSON)], "mark rose left") == ["mark rose"]


@pytest.mark.parametrize(
    ("original", "type_", "text", "hits"),
    [
        ("212-555-0142", PHONE, "2125550142 (212) 555-0142 212.555.0142", ["2125550142", "(212) 555-0142", "212.555.0142"]),
        ("212-555-0142", PHONE, "+1 212 555 0142 / +12125550142", ["+1 212 555 0142", "+12125550142"]),
        ("+49 30 901820", PHONE, "030 901820, 0049 30 901820", ["030 901820", "0049 30 901820"]),
        ("2125550142", PHONE, "92125550142 21255501420", []),
        ("4111 1111 1111 1111", CREDIT_CARD, "4111-1111-1111-1111 4111111111111111", ["4111-1111-1111-1111", "4111111111111111"]),
        ("4111 1111 1111 1111", CREDIT_CARD, "x4111111111111111 41111111111111112", []),
        ("DE89 3704 0044 0532 0130 00", IBAN, "de89370400440532013000", ["de89370400440532013000"]),
        ("536-22-8714", US_SSN, "536 22 8714 or 536228714", ["536 22 8714", "536228714"]),
        ("77-1234-X", RECORD_ID, "771234x 77/1234/X", ["771234x", "77/1234/X"]),
        ("12345678", BANK_ACCOUNT, "1234, 5678", []),
        ("ilse.varga@example.com", EMAIL, "ILSE.VARGA@EXAMPLE.COM", ["ILSE.VARGA@EXAMPLE.COM"]),
        ("ilse.varga@example.com", EMAIL, "user ilse.varga logged in", ["ilse.varga"]),
        ("info@example.com", EMAIL, "the info desk", []),
        ("chris@example.com", EMAIL, "Chris left", []),
        ("https://x.example/ilse", URL, "see https://x.example/ilse.", ["https://x.example/ilse"]),
    ],
)  # fmt: skip
def test_structured(original: str, type_: str, text: str, hits: list[str]) -> None:
    assert found([(original, type_)], text) == hits


def test_the_local_part_is_a_username() -> None:
    (span,) = KnownMatcher([("ilse.varga@example.com", EMAIL)]).find("by ilse.varga")
    assert span.type == USERNAME


def test_short_numbers_need_a_detector() -> None:
    text = "CVC 731 on page 731"
    assert found([("731", CVC)], text) == []
    assert found([("731", CVC)], text, [Span(4, 7, CVC, 0.9, "t")]) == ["731"]
    assert found([("$50", AMOUNT)], "pay $50 now") == ["$50"]


def test_leftmost_longest() -> None:
    known = [("Mark Lee", PERSON), ("Mark Leeson", PERSON), ("Lee", PERSON), ("Ilse", PERSON)]
    assert found(known, "Mark Leeson met Mark Lee and Lee") == ["Mark Leeson", "Mark Lee", "Lee"]


def test_a_longer_name_that_fails_its_border_does_not_hide_the_shorter() -> None:
    assert found([("Ilse", PERSON), ("Ilse Var", PERSON)], "Ilse Varga") == ["Ilse"]


def test_nothing_known_and_empty_texts() -> None:
    assert KnownMatcher([]).find("Ilse") == []
    assert KnownMatcher([("", PERSON), ("  ", PERSON)]).find("a b") == []
    assert KnownMatcher([("Ilse", PERSON)]).find("") == []


def test_offsets_are_code_points_of_the_original() -> None:
    text = "🚀🚀👩\u200d👩\u200d👧 Ilse  Varga 🙂 fi ﬁ Ilse Varga"
    assert found([("Ilse Varga", PERSON)], text) == ["Ilse  Varga", "Ilse Varga"]


def test_two_hundred_originals_in_twenty_thousand_characters() -> None:
    import time

    known = [(f"Given{i} Familia{i}q", PERSON) for i in range(150)]
    known += [(f"212-555-{1000 + i}", PHONE) for i in range(50)]
    matcher = KnownMatcher(known)
    text = "The quick brown fox called Given12 Familia12q and 212 555 1004 on a day.\n" * 270
    begin = time.process_time()
    assert len(matcher.find(text)) == 540
    assert time.process_time() - begin < 0.25


NAMES = st.text(
    alphabet=st.characters(categories=["Lu", "Ll", "Lo"], exclude_characters="ͅ"),
    min_size=3,
    max_size=12,
)


@given(
    NAMES,
    st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]),
    st.text(alphabet=" .,\n!?()é🚀", max_size=8),
)
def test_every_normal_form_of_a_name_is_found(name: str, form: str, around: str) -> None:
    shown = unicodedata.normalize(form, name)  # type: ignore[arg-type]
    text = f"{around} {shown} {around}"
    assert found([(name + "q1", PERSON)], f"{around} {shown}q1 {around}") == [f"{shown}q1"]
    assert fold(text).origin(0, len(fold(text).text)) == (0, len(text))


@given(st.text(max_size=80))
def test_folding_maps_back_to_ranges_of_the_text(text: str) -> None:
    view = fold(text)
    for index in range(len(view.text)):
        start, end = view.origin(index, index + 1)
        assert 0 <= start < end <= len(text)


@given(st.text(max_size=120), st.lists(st.text(min_size=1, max_size=12), max_size=5))
def test_results_are_sorted_and_disjoint_for_any_input(text: str, originals: list[str]) -> None:
    spans = KnownMatcher([(o, PERSON) for o in originals]).find(text)
    assert all(0 <= s.start < s.end <= len(text) for s in spans)
    assert all(a.end <= b.start for a, b in zip(spans, spans[1:], strict=False))


@given(st.sampled_from(["upper", "lower", "title"]), st.sampled_from([" ", "\n", "\t ", "\u00a0"]))
def test_case_and_white_space_never_hide_a_name(case: str, gap: str) -> None:
    text = f"x {getattr('ilse', case)()}{gap}{getattr('varga', case)()} y"
    assert len(found([("Ilse Varga", PERSON)], text)) == 1


def test_squeeze_keeps_letters_and_digits_with_their_places() -> None:
    view = squeeze("a-1 b")
    assert (view.text, view.index.tolist()) == ("a1b", [0, 2, 4])


@pytest.mark.parametrize(
    ("surface", "forms"),
    [
        ("212-555-0142", {"2125550142", "12125550142"}),
        ("+49 30 901820", {"4930901820", "004930901820", "030901820", "30901820"}),
        ("020 7946 0958", {"02079460958", "2079460958"}),
        ("123", set()),
    ],
)
def test_phone_forms(surface: str, forms: set[str]) -> None:
    assert phone_forms(surface) >= forms
