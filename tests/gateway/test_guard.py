"""The outbound guard: originals anywhere, and values of high risk where nobody read."""

import orjson
import pytest

from gateway.guard import GuardBlocked, check_outbound
from privacy.substitution.entry import Entry
from privacy.substitution.known import KnownOriginals

KNOWN = KnownOriginals(
    [Entry("person.family", "varga", "Varga", "Novak", 3, {}, "PERSON", 1.0)],
)


@pytest.mark.parametrize(
    "body",
    [
        {"messages": [{"role": "user", "content": "Ask VARGA."}]},
        {"tools": [{"function": {"parameters": {"properties": {"varga": {}}}}}]},
        {"messages": [{"tool_calls": [{"function": {"arguments": '{"to": ["Varga"]}'}}]}]},
        {"messages": [{"role": "varga"}]},
    ],
)
def test_an_original_left_anywhere_blocks(body: object) -> None:
    with pytest.raises(GuardBlocked, match="PERSON"):
        check_outbound(orjson.dumps(body), KNOWN, set())


@pytest.mark.parametrize(
    ("value", "type"),
    [
        ("4111 1111 1111 1111", "CREDIT_CARD"),
        ("ilse@example.com", "EMAIL"),
        ("CH93 0076 2011 6238 5295 7", "IBAN"),
        ("sk-abcdefghijklmnopqrstuvwxyz123456", "SECRET"),
    ],
)
def test_a_value_of_high_risk_blocks_where_nobody_read(value: str, type: str) -> None:
    payload = orjson.dumps({"id": value})
    with pytest.raises(GuardBlocked, match=type):
        check_outbound(payload, KNOWN, set())
    assert check_outbound(payload, KNOWN, {value}) == ["id", value]


@pytest.mark.parametrize(
    "value",
    [
        "call_9a8b7c6d5e4f3a2b1c0d",
        "toolu_01A09q90qw90lq917835lq9",
        "c5f7a0e2-6a1b-4f0c-9f5e-2f1e7a9d0c11",
        "gpt-4o-2024-08-06",
        "http://json-schema.org/draft-07/schema#",
        "data:image/png;base64,iVBORAKIAABCDEFGHIJKLMNOPsk-abcdefghijklmnopqrstuvwxyz123456",
        "Novak",
    ],
)
def test_the_protocols_own_values_pass(value: str) -> None:
    check_outbound(orjson.dumps({"id": value}), KNOWN, set())


def test_a_string_that_passed_is_searched_for_what_came_later() -> None:
    known = KnownOriginals(
        [*KNOWN.entries, Entry("person.family", "brandt", "Brandt", "Horvat", 4, {}, "PERSON", 1.0)]
    )
    for text, known_before in (("Varga", 0), ("Brandt", 0), ("Brandt", 1)):
        with pytest.raises(GuardBlocked):
            check_outbound(orjson.dumps({"a": text}), known, {text}, lambda _, n=known_before: n)
    check_outbound(orjson.dumps({"a": "Varga"}), known, {"Varga"}, lambda _: 1)


def test_the_name_of_the_model_is_nobodys() -> None:
    check_outbound(orjson.dumps({"model": "varga-3-large"}), KNOWN, set())


def test_a_match_inside_an_issued_substitute_is_no_leak() -> None:
    entries = [
        Entry("org", "acme", "Acme", "Brandt Tools", 1, {}, "ORG", 1.0),
        Entry("person.family", "brandt", "Brandt", "Horvat", 4, {}, "PERSON", 1.0),
    ]
    check_outbound(orjson.dumps({"a": "at Brandt Tools"}), KnownOriginals(entries), set())
    with pytest.raises(GuardBlocked):
        check_outbound(
            orjson.dumps({"a": "at Brandt Tools, Brandt"}), KnownOriginals(entries), set()
        )
