"""Planning: what is replaced, what is drawn, and that restoration undoes it byte for byte."""

import hashlib
import os
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policies.compile import compile_rules
from policies.loader import load_policy
from privacy.embedding import WordVectors
from privacy.pools.artefact import PoolSet
from privacy.pools.build import ensure_embedding
from privacy.randomness import SeededRandomness
from privacy.restoration import Restorer
from privacy.substitution.entry import FAMILY, INITIAL, MENTION, Entry
from privacy.substitution.known import TextItem
from privacy.substitution.names import split_name
from privacy.substitution.pairs import restoration_pairs
from privacy.substitution.planner import Kept, Plan, Planner, SessionContext
from privacy.substitution.rules import BudgetExhausted, PolicyBlocked, Ruleset
from privacy.types import Span


@pytest.fixture(scope="module")
def phi() -> WordVectors:
    cache = Path(os.environ.get("PENNAME_CACHE", Path.home() / ".cache" / "penname"))
    return ensure_embedding(cache / "glove-6b-50d")


@pytest.fixture(scope="module")
def pools() -> PoolSet:
    return PoolSet.load()


def _hash(kind: str, key: str) -> str:
    return hashlib.sha256(f"{kind}/{key}".encode()).hexdigest()


@pytest.fixture(scope="module")
def planner(phi: WordVectors, pools: PoolSet) -> Planner:
    return Planner(compile_rules(load_policy("balanced"), phi), pools, SeededRandomness(7), _hash)


def _item(text: str, *found: tuple[str, str]) -> TextItem:
    spans = []
    for surface, kind in found:
        start = text.index(surface)
        spans.append(Span(start, start + len(surface), kind, 1.0, "test"))
    return TextItem(text, tuple(sorted(spans, key=lambda s: s.start)))


def _restored(plan: Plan, entries: tuple[Entry, ...] = ()) -> list[str]:
    restorer = Restorer(restoration_pairs([*entries, *plan.entries]))
    return [restorer.restore(text) for text in plan.texts]


CASES = [
    ("Dr. ILSE M. VARGA Jr. signed.", [("Dr. ILSE M. VARGA Jr.", "PERSON")]),
    ("Signed by Ilse   Varga on Monday", [("Ilse   Varga", "PERSON")]),
    ("pls ask ilse varga about it", [("ilse varga", "PERSON")]),
    ("Varga, Ilse and Ilse Varga", [("Varga, Ilse", "PERSON")]),
    ("🚀 Ilse Varga called 🙂", [("Ilse Varga", "PERSON")]),
    ("Femke van 't Hoff-Brouwer's letter", [("Femke van 't Hoff-Brouwer", "PERSON")]),
    ("McDonald met MCDONALD", [("McDonald", "PERSON")]),
    (
        "Varga Dental Supplies GmbH in Basel",
        [("Varga Dental Supplies GmbH", "ORG"), ("Basel", "LOC")],
    ),
    ("14 Rosewood Lane, Basel", [("14 Rosewood Lane, Basel", "LOC")]),
    ("mail ilse@example.com now", [("ilse@example.com", "EMAIL")]),
    ('Ilse "Izzy" Varga', [('Ilse "Izzy" Varga', "PERSON")]),
    ("Ask M. or J. K. about it", [("M.", "PERSON"), ("J. K.", "PERSON")]),
    ("Maria de  la Cruz, Maria de la  Cruz", [("Maria de  la Cruz", "PERSON")]),
    ("I. Varga wrote to Ilse Varga", [("I. Varga", "PERSON"), ("Ilse Varga", "PERSON")]),
]


@pytest.mark.parametrize(("text", "found"), CASES)
def test_restoring_undoes_substitution(
    planner: Planner, text: str, found: list[tuple[str, str]]
) -> None:
    plan = planner.plan([_item(text, *found)], SessionContext())
    assert plan.texts[0] != text
    assert _restored(plan) == [text]


ODD = [
    ("Kessler \n Brandt Holding", "ORG"),
    ("Kessler\tBrandt  Holding", "ORG"),
    ("New \n York  City", "LOC"),
    ("Varga_y \nZ. Brandt", "PERSON"),
    ("de  la Cruz\nSoto", "PERSON"),
    ("kEssLer Brandt", "ORG"),
    ("ilSe vaRga", "PERSON"),
    ("Ilse\nde la Cruz", "PERSON"),
    ("Kr&uuml;ger \n Lund", "PERSON"),
]


KEPT = [
    ("Mrs", "PERSON", "I met Mrs Brandt", "Mrs Brandt"),
    ("Dean", "PERSON", "I met Sir Dean Brandt and Judge Dean", "Sir Dean Brandt"),
    ("Junior", "PERSON", "I met Ilse Brandt Junior", "Ilse Brandt Junior"),
    ("GmbH", "ORG", "I met Kessler GmbH", "Kessler GmbH"),
]


@pytest.mark.parametrize(("known", "kind", "text", "mention"), KEPT)
def test_what_stays_of_a_name_is_replaced_where_it_is_known_as_one(
    planner: Planner, known: str, kind: str, text: str, mention: str
) -> None:
    """Else the guard blocks the conversation from then on."""
    first = planner.plan([_item(f"Ask {known}.", (known, kind))], SessionContext())
    plan = planner.plan([_item(text, (mention, kind))], SessionContext(first.entries))
    assert not plan.known.find(plan.texts[0])
    assert _restored(plan, first.entries) == [text]
    again = planner.plan([_item(text, (mention, kind))], SessionContext(plan.known.entries))
    assert again.texts == plan.texts and not again.changes


def test_what_stays_of_a_name_may_be_part_of_two_originals(planner: Planner) -> None:
    items = [
        _item("Ask Judge about it.", ("Judge", "PERSON")),
        _item("Judge Kessler AG sells glass.", ("Judge Kessler AG", "ORG")),
    ]
    first = planner.plan(items, SessionContext())
    item = _item("I met Judge Kessler Brandt", ("Judge Kessler Brandt", "PERSON"))
    plan = planner.plan([item], SessionContext(first.entries))
    assert not plan.known.find(plan.texts[0])
    assert _restored(plan, first.entries) == [item.text]


@pytest.mark.parametrize(("surface", "kind"), ODD)
def test_a_resent_odd_spelling_draws_nothing(planner: Planner, surface: str, kind: str) -> None:
    """A process that has settled nothing yet comes to the same text from the session's map."""
    item = _item(f"Signed by {surface}, today.", (surface, kind))
    first = planner.plan([item], SessionContext())
    again = planner.plan([item], SessionContext(first.entries))
    assert again.texts == first.texts
    assert not again.changes
    assert _restored(first) == [item.text]


def test_a_known_name_that_crosses_a_detected_span_leaves_no_piece(planner: Planner) -> None:
    first = _item("Sean O'Malley signed.", ("Sean O'Malley", "PERSON"))
    second = _item("mail sean.o'malley now", ("sean.o", "USERNAME"))
    plan = planner.plan([first, second], SessionContext())
    assert "malley" not in plan.texts[1]
    assert _restored(plan) == [first.text, second.text]


def test_an_initial_after_a_name_that_was_found_in_two_pieces(planner: Planner) -> None:
    first = planner.plan([_item("Ilse Varga", ("Ilse Varga", "PERSON"))], SessionContext())
    item = _item("met Ilse\nVarga K. here", ("Ilse", "PERSON"), ("Varga K.", "PERSON"))
    plan = planner.plan([item], SessionContext(first.entries))
    assert _restored(plan, first.entries) == [item.text]


def test_an_initial_in_lower_case_is_one(planner: Planner) -> None:
    """As a given name "S." it would be looked for, and found, in the initials of other people."""
    item = _item("mail to s. varga", ("s. varga", "PERSON"))
    plan = planner.plan([item], SessionContext())
    assert {e.fine_type for e in plan.entries} == {INITIAL, FAMILY, MENTION}
    assert re.fullmatch(r"mail to [a-rt-z]\. [^\W\d_A-Z][\w'’ -]*", plan.texts[0])
    assert _restored(plan) == [item.text]


def test_a_line_break_returns_to_its_gap(planner: Planner) -> None:
    whole = _item("Maria de la Cruz signed.", ("Maria de la Cruz", "PERSON"))
    first = planner.plan([whole], SessionContext())
    broken = _item("Ask Maria\nde la Cruz.", ("Maria", "PERSON"), ("de la Cruz", "PERSON"))
    plan = planner.plan([broken], SessionContext(first.entries))
    assert _restored(plan, first.entries) == [broken.text]


def test_titles_suffixes_and_case_stay(planner: Planner) -> None:
    text = "Dr. ILSE M. VARGA Jr."
    sent = planner.plan([_item(text, (text, "PERSON"))], SessionContext()).texts[0]
    assert sent.startswith("Dr. ")
    assert sent.endswith(" Jr.")
    assert sent[4:-4].isupper()
    assert "VARGA" not in sent


def test_the_family_name_alone_is_the_same_person(planner: Planner) -> None:
    text = "Varga left. Ilse Varga called."
    item = TextItem(text, (Span(0, 5, "PERSON", 1.0, "test"), Span(12, 22, "PERSON", 1.0, "test")))
    sent = planner.plan([item], SessionContext()).texts[0]
    assert sent.split()[0] == sent.split()[3]


def test_known_names_are_swept_where_no_detector_found_them(planner: Planner) -> None:
    first = _item("Ilse Varga signed.", ("Ilse Varga", "PERSON"))
    second = TextItem("As Varga said before.")
    plan = planner.plan([first, second], SessionContext())
    assert "Varga" not in plan.texts[1]


def test_a_settled_text_is_read_again_only_for_what_came_later(planner: Planner) -> None:
    early = TextItem("The Varga file is with the May team.")
    late = _item("Ilse Varga signed.", ("Ilse Varga", "PERSON"))
    other = _item("Tadeo Brandt left.", ("Tadeo Brandt", "PERSON"))
    first = planner.plan([early, other], SessionContext())
    assert first.texts[0] == early.text
    kept = [Kept(done, len(first.entries)) for done in first.settled]
    second = planner.plan([*kept, late], SessionContext(first.entries))
    whole = planner.plan([early, other, late], SessionContext((*first.entries, *second.entries)))
    assert second.texts == whole.texts
    assert "Varga" not in second.texts[0]
    assert second.settled[1] is first.settled[1]


def test_an_initial_means_the_same_when_the_text_is_resent(planner: Planner) -> None:
    early = _item("I. Varga called.", ("I. Varga", "PERSON"))
    late = _item(
        "Ilse Varga and Imre Varga left.", ("Ilse Varga", "PERSON"), ("Imre Varga", "PERSON")
    )
    first = planner.plan([early], SessionContext())
    again = planner.plan([early, late], SessionContext(first.entries))
    assert again.texts[0] == first.texts[0]


def test_a_repeated_request_draws_nothing(planner: Planner) -> None:
    item = _item("Ilse Varga signed.", ("Ilse Varga", "PERSON"))
    first = planner.plan([item], SessionContext())
    again = planner.plan([item], SessionContext(first.entries, 2.0))
    assert again.texts == first.texts
    assert not again.changes


def test_a_quoted_substitute_is_left_alone(planner: Planner) -> None:
    item = _item("Ilse Varga signed.", ("Ilse Varga", "PERSON"))
    first = planner.plan([item], SessionContext())
    sent = first.texts[0]
    quoted = TextItem(sent, (Span(0, len(sent) - len(" signed."), "PERSON", 1.0, "test"),))
    assert planner.plan([quoted], SessionContext(first.entries)).texts == (sent,)


def test_the_budget_is_never_overspent(phi: WordVectors, pools: PoolSet) -> None:
    base = compile_rules(load_policy("balanced"), phi)
    tight = Ruleset(base.rules, session_epsilon=1.5)
    planner = Planner(tight, pools, SeededRandomness(1), _hash)
    item = _item("Ilse Varga signed.", ("Ilse Varga", "PERSON"))
    with pytest.raises(BudgetExhausted):
        planner.plan([item], SessionContext())
    kinder = Ruleset(base.rules, session_epsilon=1.5, on_budget="placeholder")
    plan = Planner(kinder, pools, SeededRandomness(1), _hash).plan([item], SessionContext())
    assert "[PERSON_1]" in plan.texts[0]
    assert sum(c.epsilon for c in plan.charges) <= 1.5
    assert _restored(plan) == [item.text]


def test_every_spelling_has_a_placeholder_of_its_own(phi: WordVectors, pools: PoolSet) -> None:
    base = compile_rules(load_policy("balanced"), phi)
    broke = Ruleset(base.rules, session_epsilon=0.0, on_budget="placeholder")
    planner = Planner(broke, pools, SeededRandomness(1), _hash)
    entries: tuple[Entry, ...] = ()
    for name in ("brandt", "BRANDT", "Brandt", "brAndt", "brandt"):
        item = _item(f"Ask {name}; {name} knows.", (name, "PERSON"))
        plan = planner.plan([item], SessionContext(entries))
        entries += plan.entries
        assert _restored(plan, entries) == [item.text]


@pytest.mark.parametrize("name", ["Ilse  Varga", "Ilse\nVarga", "Ilse \tVarga", "Ilse\nde la Cruz"])
def test_white_space_between_two_placeholders_comes_back(
    phi: WordVectors, pools: PoolSet, name: str
) -> None:
    base = compile_rules(load_policy("balanced"), phi)
    broke = Ruleset(base.rules, session_epsilon=0.0, on_budget="placeholder")
    item = _item(f"Ask {name}; {name} knows.", (name, "PERSON"))
    plan = Planner(broke, pools, SeededRandomness(1), _hash).plan([item], SessionContext())
    assert _restored(plan) == [item.text]
    assert plan.texts[0].count("[PERSON_") == 4


def test_a_literal_placeholder_is_not_reused(phi: WordVectors, pools: PoolSet) -> None:
    rules = compile_rules(load_policy("paper"), phi)
    planner = Planner(rules, pools, SeededRandomness(1), _hash)
    text = "Use <EMAIL_1> as the field. Write to ilse@example.com"
    plan = planner.plan([_item(text, ("ilse@example.com", "EMAIL"))], SessionContext())
    assert "[EMAIL_2]" in plan.texts[0]
    assert _restored(plan) == [text]


def test_strict_blocks_secrets(phi: WordVectors, pools: PoolSet) -> None:
    planner = Planner(compile_rules(load_policy("strict"), phi), pools, SeededRandomness(1), _hash)
    with pytest.raises(PolicyBlocked, match="SECRET"):
        planner.plan([_item("key sk-abcdef", ("sk-abcdef", "SECRET"))], SessionContext())


def test_the_same_phone_in_another_format_is_one_number(planner: Planner) -> None:
    text = "Ring 212-555-0142 or (212) 555-0142."
    plan = planner.plan(
        [_item(text, ("212-555-0142", "PHONE"), ("(212) 555-0142", "PHONE"))], SessionContext()
    )
    numbers = ["".join(c for c in part if c.isdigit()) for part in plan.texts[0].split(" or ")]
    assert numbers[0] == numbers[1]
    assert _restored(plan) == [text]


# The empty word makes runs of blanks.
WORDS = st.sampled_from(
    ["Ilse", "Varga", "met", "Tadeo", "Brandt", "ILSE", "varga", "and", "de", "la", "M.", "I.", ""]
)


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(words=st.lists(WORDS, min_size=1, max_size=12), data=st.data())
def test_any_spans_round_trip(planner: Planner, words: list[str], data: st.DataObject) -> None:
    text = " ".join(words)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8, unique=True)))
    kinds = st.sampled_from(["PERSON", "ORG", "LOC", "RECORD_ID"])
    spans = tuple(
        Span(a, b, data.draw(kinds), 1.0, "test")
        for a, b in zip(cuts[::2], cuts[1::2], strict=False)
        if text[a:b].strip() == text[a:b]
        and (a == 0 or text[a - 1] == " ")
        and (b == len(text) or text[b] == " ")
    )
    plan = planner.plan([TextItem(text, spans)], SessionContext())
    assert _restored(plan) == [text]


@pytest.mark.parametrize(
    ("surface", "parts"),
    [
        ("Dr. Ilse M. Varga Jr.", ["Ilse", "M", "Varga"]),
        ("Varga, Ilse", ["Varga", "Ilse"]),
        ("Maria de la Cruz", ["Maria", "de la Cruz"]),
        ("Femke van 't Hoff-Brouwer", ["Femke", "van 't Hoff-Brouwer"]),
        ("J. K.", ["J", "K"]),
        ("Anna-Lena O'Neil", ["Anna-Lena", "O'Neil"]),
        ("Varga's", ["Varga"]),
        ("...", []),
    ],
)
def test_names_are_split_into_parts(surface: str, parts: list[str]) -> None:
    found = split_name(surface, lambda _: None)
    assert [surface[p.start : p.end] for p in found] == parts


@pytest.mark.parametrize(
    ("substitute", "original", "answer", "restored"),
    [
        ("+1 312-555-0142", "+1 212-664-7665", "Call (312) 555-0142.", "Call (212) 664-7665."),
        ("+1 312-555-0142", "+1 212-664-7665", "tel:+13125550142", "tel:+12126647665"),
        ("312-555-0142", "212-664-7665", "+1 (312) 555-0142", "+1 (212) 664-7665"),
        (
            "312-555-0142",
            "212-664-7665",
            "312.555.0142 or 3125550142",
            "212.664.7665 or 2126647665",
        ),
        ("+44 20 7946 0958", "+44 20 7123 4567", "020 7946 0958", "020 7123 4567"),
        ("+44 20 7946 0958", "+44 20 7123 4567", "+442079460958", "+442071234567"),
        ("312-555-0142", "212-664-7665", "13125550142999", "13125550142999"),
        ("030 5550142", "030 1234567", "(030) 5550142", "(030) 5550142"),
    ],
)
def test_a_reformatted_number_is_restored_in_its_format(
    substitute: str, original: str, answer: str, restored: str
) -> None:
    entry = Entry("phone", original, original, substitute, None, {}, "PHONE")
    assert Restorer(restoration_pairs([entry])).restore(answer) == restored


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("the map D.C._map.pdf and Varga Ltd._x", [("D.C.", "LOC"), ("Varga Ltd.", "ORG")]),
        ("Will_Lindqvist J. K. signed", [("Will", "PERSON"), ("Lindqvist J. K.", "PERSON")]),
        ("S. O'Hara and Dean'S O'Hara", [("S. O'Hara", "PERSON"), ("Dean'S O'Hara", "PERSON")]),
        ("Dean O'Hara. Dean'S O'Hara wrote", [("Dean O'Hara", "PERSON")]),
        ("D-Link_I Varga__Varga, Ilse", [("Varga", "PERSON")]),
        ("D.C.'S Dean_J. K. Lund", [("D.C.", "LOC"), ("Dean", "PERSON"), ("J. K. Lund", "PERSON")]),
        ("chez l'I Varga", [("I Varga", "PERSON")]),
        ("voir d'M-44117", [("M-44117", "RECORD_ID")]),
    ],
)
def test_names_glued_to_one_another_round_trip(
    phi: WordVectors, pools: PoolSet, text: str, spans: list[tuple[str, str]]
) -> None:
    rules = compile_rules(load_policy("balanced"), phi)
    for seed in range(40):  # what is drawn decides whether there is anything to confuse
        plan = Planner(rules, pools, SeededRandomness(seed), _hash).plan(
            [_item(text, *spans)], SessionContext()
        )
        assert _restored(plan) == [text]


def test_a_token_of_which_more_is_known_later_is_restored_in_both_forms(planner: Planner) -> None:
    item = _item("see Lindqvist_Varga.pdf", ("Lindqvist", "PERSON"))
    first = planner.plan([item], SessionContext())
    kept = Kept(first.settled[0], len(first.entries))
    again = planner.plan([kept, _item("Varga", ("Varga", "PERSON"))], SessionContext(first.entries))
    assert again.texts[0] != first.texts[0]
    assert _restored(again, first.entries) == [item.text, "Varga"]
    restorer = Restorer(restoration_pairs([*first.entries, *again.entries]))
    assert restorer.restore(first.texts[0]) == item.text


def test_an_initial_that_stays_is_not_taken_for_a_substitutes(planner: Planner) -> None:
    first = planner.plan([_item("Ilse Varga", ("Ilse Varga", "PERSON"))], SessionContext())
    letter = first.texts[0][0]
    texts = ("{}. Varga wrote", "Ilse {}. Varga wrote", "J.{}. Varga wrote", "(J.-{}. Varga)")
    for text in (text.format(letter) for text in texts):
        plan = planner.plan([TextItem(text)], SessionContext(first.entries))
        assert _restored(plan, first.entries) == [text]


def test_what_replacements_expose_is_replaced_too(planner: Planner) -> None:
    # "Thank" begins a sentence as long as "D.C." stands before it, and no longer behind "Lyon".
    before = _item("In D.C. Thank you.", ("D.C.", "LOC"))
    named = _item("Ask Thank about it", ("Thank", "PERSON"))
    plan = planner.plan([before, named], SessionContext())
    assert not [hit for text in plan.texts for hit in plan.known.find(text)]
    assert _restored(plan) == [before.text, named.text]
    first = planner.plan([before], SessionContext())
    kept = Kept(first.settled[0], len(first.entries))
    again = planner.plan([kept, named], SessionContext(first.entries))
    assert not [hit for text in again.texts for hit in again.known.find(text)]
    assert _restored(again, first.entries) == [before.text, named.text]
