"""What holds for the surrogates of every type."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy.randomness import Randomness, SeededRandomness, SystemRandomness
from privacy.restoration import Pair, Restorer
from privacy.surrogates import (
    SurrogateContext,
    SurrogateExhausted,
    SurrogateUnsupported,
    make_fresh,
    register,
    surrogate_for,
    surrogate_types,
    unregister,
)
from privacy.types import STRUCTURED_TYPES

EXAMPLES = {
    "EMAIL": ["Ilse.Varga+x@corp.internal", "bo@x.io", "ilse.varga%40example.com"],
    "PHONE": ["212-734-9921", "+44 20 7123 4567", "734-9921", "+36 30 123 4567"],
    "URL": ["https://github.com/ilse-varga", "https://a.corp.lan/x?u=ilse", "ilse-varga"],
    "IP_ADDRESS": ["8.8.8.8", "10.0.0.7", "2a00:1450::200e", "192.168.1.0/24"],
    "MAC_ADDRESS": ["00:1A:2B:3C:4D:5E", "001a.2b3c.4d5e", "00-1a-2b-3c-4d-5e"],
    "HOST": ["db01.corp.internal", "ILSE-LAPTOP", "printer.lan"],
    "USERNAME": ["@ilse_v84", "ivarga", "O'Neil"],
    "SECRET": ["sk-proj-abcDEF123abcDEF123abcDEF", "hunter2", "1234", "pa\"ss\\w`ord'1"],
    "CREDIT_CARD": ["4539 1488 0343 6467", "378734493671000", "30569309025904"],
    "CVC": ["731", "7310"],
    "IBAN": ["DE89 3704 0044 0532 0130 00", "GB29NWBK60161331926819", "BE68539007547034"],
    "BANK_ACCOUNT": ["021000021", "12-3456-789", "DEUTDEFF"],
    "CRYPTO_WALLET": ["1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", "0x" + "52908400098527886E0F" * 2],
    "US_SSN": ["536-22-8714", "536228714"],
    "NATIONAL_ID": ["943 476 5919", "12345678Z", "AB123456C"],
    "RECORD_ID": ["MED-88231", "77/1234.X", "7"],
    "DATE": ["17/02/1984", "February 3rd, 2024"],
}
CASES = [(type_, value) for type_, values in EXAMPLES.items() for value in values]


def context() -> SurrogateContext:
    return SurrogateContext(day_shift=-37)


def test_every_structured_type_has_a_surrogate() -> None:
    assert set(surrogate_types()) == {*STRUCTURED_TYPES, "DATE"} == set(EXAMPLES)


@pytest.mark.parametrize(("type_", "value"), CASES)
@pytest.mark.parametrize("rng", [SeededRandomness(7), SystemRandomness()])
def test_fit_to_stand_for_the_original(type_: str, value: str, rng: Randomness) -> None:
    for _ in range(30):
        drawn = surrogate_for(type_).make(value, rng, context())
        assert drawn.casefold() != value.casefold()
        assert not re.search(r"[\"'`\\]", drawn)
        assert {c for c in drawn if c.isspace()} <= {c for c in value if c.isspace()}
        assert drawn == drawn.strip()


@pytest.mark.parametrize(("type_", "value"), CASES)
def test_restoration_brings_the_original_back(type_: str, value: str) -> None:
    drawn = surrogate_for(type_).make(value, SeededRandomness(9), context())
    restorer = Restorer([Pair(drawn, value, "exact")])
    frame = "see {0}, ({0}) and **{0}**: {0}."
    text = frame.format(drawn)
    assert restorer.restore(text) == frame.format(value)
    arguments = json.dumps({"a": text, "b": json.dumps([drawn])})
    for cut in range(len(arguments)):
        stream = restorer.stream(json_escaped=True)
        restored = stream.feed(arguments[:cut]) + stream.feed(arguments[cut:]) + stream.finish()
        parsed = json.loads(restored)
        assert parsed["a"] == frame.format(value)
        assert json.loads(parsed["b"]) == [value]


@pytest.mark.parametrize("value", ["glpat-", "sk-", "AKIA", "eyJ-.", "-----BEGIN KEY-----"])
def test_what_is_only_the_beginning_of_a_secret_is_drawn_whole(value: str) -> None:
    drawn = surrogate_for("SECRET").make(value, SeededRandomness(1), context())
    assert drawn != value and len(drawn) == len(value)


@pytest.mark.parametrize("type_", sorted(set(EXAMPLES) - {"DATE"}))
@settings(max_examples=60, deadline=None)
@given(value=st.text(min_size=4, max_size=30).filter(lambda text: text == text.strip()))
def test_odd_values_never_crash_and_never_come_back(type_: str, value: str) -> None:
    try:
        drawn = surrogate_for(type_).make(value, SeededRandomness(1), context())
    except SurrogateExhausted:
        # Nothing in the value can be drawn anew.
        assert not any(char.isascii() and char.isalnum() for char in value) or type_ in (
            "PHONE",
            "CVC",
            "US_SSN",
            "CREDIT_CARD",
        )
        return
    assert drawn.casefold() != value.casefold()
    assert not re.search(r"[\"'`\\]", drawn)
    assert {c for c in drawn if c.isspace()} <= {c for c in value if c.isspace()}


@pytest.mark.parametrize(
    ("type_", "value", "count"),
    [
        ("EMAIL", "bo@x.io", 300),
        ("PHONE", "212-734-9921", 300),
        ("PHONE", "734-9921", 150),
        ("PHONE", "+46 70 123 45 67", 300),
        ("PHONE", "+61 412 345 678", 100),
        ("IP_ADDRESS", "8.8.8.8", 1000),
        ("CREDIT_CARD", "4539148803436467", 500),
        ("HOST", "db01.corp.internal", 100),
        ("USERNAME", "bo", 500),
        ("RECORD_ID", "A-17", 300),
        ("US_SSN", "536-22-8714", 500),
    ],
)
def test_there_is_room_for_many(type_: str, value: str, count: int) -> None:
    rng, used = SeededRandomness(3), set[str]()
    for _ in range(count):
        drawn = make_fresh(type_, value, rng, context(), used.__contains__)
        assert drawn not in used
        used.add(drawn)


def test_exhaustion_is_an_error_that_names_no_value() -> None:
    with pytest.raises(SurrogateExhausted, match="200 surrogates") as caught:
        make_fresh("CVC", "731", SeededRandomness(1), context(), lambda drawn: True)
    assert "731" not in str(caught.value)


def test_registry_refuses_duplicates_and_unknown_types() -> None:
    cvc = surrogate_for("CVC")
    with pytest.raises(ValueError, match="already"):
        register(cvc)
    unregister("CVC")
    with pytest.raises(ValueError, match="no surrogate for CVC"):
        surrogate_for("CVC")
    with pytest.raises(ValueError, match="to remove"):
        unregister("CVC")
    register(cvc)
    assert surrogate_for("CVC") is cvc
    with pytest.raises(ValueError, match="no surrogate for PERSON"):
        surrogate_for("PERSON")


def test_unreadable_dates_are_refused() -> None:
    with pytest.raises(SurrogateUnsupported):
        surrogate_for("DATE").make("next Michaelmas", SeededRandomness(1), context())
    with pytest.raises(SurrogateExhausted, match="zero days"):
        surrogate_for("DATE").make("17/02/1984", SeededRandomness(1), SurrogateContext())
