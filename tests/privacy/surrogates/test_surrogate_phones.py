"""Telephone numbers: reserved for fiction or unassigned, in the original's layout."""

import re

import phonenumbers
import pytest

from privacy.randomness import SeededRandomness
from privacy.surrogates import SurrogateContext, surrogate_for
from privacy.surrogates.phone_ranges import RESERVED


def draws(value: str, count: int = 30, region: str = "US") -> list[str]:
    rng = SeededRandomness(2)
    context = SurrogateContext(region=region)
    return [surrogate_for("PHONE").make(value, rng, context) for _ in range(count)]


@pytest.mark.parametrize(
    ("value", "form"),
    [
        ("212-734-9921", r"[2-9]\d\d-555-01\d\d"),
        ("(212) 734-9921", r"\([2-9]\d\d\) 555-01\d\d"),
        ("2127349921", r"[2-9]\d\d55501\d\d"),
        ("+1 212 734 9921 ext. 42", r"\+1 [2-9]\d\d 555 01\d\d ext\. \d\d"),
        (
            "+1 416 734 9921",
            r"\+1 (?:204|250|306|403|416|418|506|514|519|604|613|705|709|780|807|819|902|905)"
            r" 555 01\d\d",
        ),
        ("734-9921", r"555-01\d\d"),
        ("1-800-FLOWERS", r"1-[2-9]\d\d-55501\d\d"),
        ("+44 20 7123 4567", r"\+44 (?:20 7946 0|29 2018 0|28 9649 6)\d{3}"),
        ("+44 (0)121 712 3456", r"\+44 \(0\)1\d1 49[68] 0\d{3}|\+44 \(0\)11[345678] 496 0\d{3}"),
        ("07911 123456", r"07700 900\d{3}"),
        ("+49 221 987654", r"\+49 221 4710\d{3}"),
        ("030 12345678", r"0(?:30 23125|69 90009|40 66969|89 99998)\d{3}"),
        ("+33 1 42 68 53 00", r"\+33 (?:1 99 00|2 61 91|3 53 01|4 65 71|5 36 49) \d\d \d\d"),
        ("0033 6 12 34 56 78", r"0033 6 39 98 \d\d \d\d"),
        ("+61 2 9374 4000", r"\+61 [2378] (?:5550|7010) \d{4}"),
        ("+61 412 345 678", r"\+61 491 570 \d{3}"),
        ("+353 87 123 4567", r"\+353 20 91\d \d{4}"),
        ("+46 8 123 456 78", r"\+46 8 465 004 [0-4]\d"),
        ("+46 70 123 45 67", r"\+46 70 174 06 [1-9]\d"),
    ],
)
def test_reserved_ranges(value: str, form: str) -> None:
    region = "DE" if value.startswith("030") else "US"
    for drawn in draws(value, region=region):
        assert re.fullmatch(form, drawn), drawn


@pytest.mark.parametrize(
    "value",
    ["+36 30 123 4567", "+91 98765 43210", "+34 612 345 678", "+39 06 6982 1234", "+81 3-1234-5678",
     "+55 11 98765-4321", "+48 601 234 567", "+31 20 123 4567", "+86 138 0013 8000"],
)  # fmt: skip
def test_elsewhere_the_number_is_possible_and_unassigned(value: str) -> None:
    code = phonenumbers.parse(value).country_code
    for drawn in draws(value, 15):
        number = phonenumbers.parse(drawn)
        assert number.country_code == code
        assert phonenumbers.is_possible_number(number)
        assert not phonenumbers.is_valid_number(number)
        assert re.sub(r"\d", "0", drawn) == re.sub(r"\d", "0", value)


def test_reserved_templates_are_numbers_of_their_country() -> None:
    for code, plan in RESERVED.items():
        for template in (t for templates in plan.values() for t in templates):
            own = re.sub("[xqp]", "1", template.replace(" ", ""))
            number = phonenumbers.PhoneNumber(country_code=code, national_number=int(own))
            assert phonenumbers.is_possible_number(number), template


def test_digits_of_another_script_stay_in_it() -> None:
    for drawn in draws("٢١٢-٧٣٤-٩٩٢١", 5):
        assert re.fullmatch("[٠-٩]{3}-[٠-٩]{3}-[٠-٩]{4}", drawn)


def test_what_no_plan_knows_still_gets_a_number() -> None:
    for drawn in draws("00000-00-00000-1"):
        assert drawn.endswith(tuple("0123456789")) and len(drawn) == len("00000-00-00000-1")
    assert all(re.fullmatch(r"\d{4}", drawn) for drawn in draws("4711"))
