"""Each hygiene rule, on names that show why it is there."""

import pytest

from privacy.pools import hygiene, lists
from privacy.pools.orgs import clean_org, single_word_clash
from privacy.pools.streets import street_names


@pytest.mark.parametrize(
    ("rule", "bad", "good"),
    [
        (
            hygiene.person_form,
            ["Al", "mary", "O'Neil", "Anna-Lena", "Zoë", "X" + "a" * 14],
            ["Ann"],
        ),
        (
            hygiene.place_form,
            ["Łódź", "Ayr", "UAE", "Nizza (Nice)", "Bristol city"],
            ["New York City"],
        ),
        (hygiene.offensive, ["Dick", "Kuntz"], ["Richard"]),
        (hygiene.joined_prefix, ["Mcdonald", "Obrien", "Macdonald", "Stclair"], ["Olson", "Stone"]),
        (hygiene.plain_word, ["Will", "Mark", "Rose", "Crystal", "Brown", "Woods"], ["Varga"]),
        (hygiene.only_words, ["Foundation Medicine", "Moon"], ["Medtronic Foundation"]),
        (hygiene.also_place, ["Paris", "Jordan", "Georgia", "Jackson"], ["Ilse"]),
        (hygiene.also_given, ["Thomas", "Maria"], ["Kowalczyk"]),
        (hygiene.mostly_family, ["Thomas", "Scott"], ["Ilse"]),
        (hygiene.person_like, ["Raphael Michel", "Smith"], ["Raphael Michel Laboratories"]),
        (single_word_clash, ["Owens", "London", "Target"], ["Medtronic", "Owens Corning"]),
    ],
)
def test_rule(rule: hygiene.Rule, bad: list[str], good: list[str]) -> None:
    assert [name for name in bad if rule(name) is None] == []
    assert [name for name in good if rule(name) is not None] == []


def test_a_screen_keeps_first_spellings_and_counts_reasons() -> None:
    screen = hygiene.Screen([hygiene.person_form, hygiene.plain_word])
    assert screen.keep(["Ilse", "ILSE", "Will", "Varga", "Al"]) == ["Ilse", "Varga"]
    assert screen.rejected == {"duplicate": 1, "word": 1, "form": 1}


def test_possessive_twins_lose_the_longer_form() -> None:
    assert hygiene.without_possessive_twins(["Robert", "Roberts", "Varga"]) == ["Robert", "Varga"]
    assert hygiene.without_possessive_twins(["Jacobs"], ["Jacob"]) == []


def test_not_in_compares_folded() -> None:
    rule = hygiene.not_in(["Zürich"], "city")
    assert rule("ZURICH") == "city"
    assert rule("Bern") is None


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("Signify NV", "Signify"),
        ("Accell Group N.V.", "Accell Group"),
        ("ADTRAN Holdings, Inc.", "ADTRAN Holdings"),
        ("Kojima Co.Ltd.", "Kojima"),
        ("University of Scranton", "University of Scranton"),
        ("The Travelers Companies, Inc.", "Travelers Companies"),
        ("Lyxor MSCI World ETF", None),
        ("WISDOMTREE/SHS CL- ACC USD", None),
        ("SHINNIHON CORPORATION", None),
        ("Bangabandhu Sheikh Mujibur Rahman Medical University", None),
        ("3M", None),
    ],
)
def test_organisations_lose_their_legal_form(raw: str, clean: str | None) -> None:
    assert clean_org(raw) == clean


def test_street_names_are_compounds_that_nobody_bears() -> None:
    names = street_names()
    assert len(names) > 4_000
    stems = {name.split()[0].lower() for name in names}
    assert not stems & set(lists.family_ranks())
    assert not stems & set(lists.common_words())


def test_interleaving_takes_lists_in_turn() -> None:
    assert lists.interleaved(("census_given_female", "census_given_male"))[:4] == [
        "Mary",
        "James",
        "Patricia",
        "John",
    ]
