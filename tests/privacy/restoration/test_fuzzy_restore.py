"""Misspelt and inflected substitutes: restored when sure, left alone otherwise."""

import pytest

from privacy.restoration import Pair, Restorer

PAIRS = [
    Pair("Marta", "Ilse", "given"),
    Pair("Novak", "Brandt", "family"),
    Pair("Quintero", "Lund", "family"),
    Pair("Nordwerk", "Salzmann", "whole"),
    Pair("Sebastian", "Bo", "given"),
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Martha", "Ilse"),
        ("Marrta", "Ilse"),
        ("Martas", "Ilses"),
        ("Nóvak", "Brandt"),
        ("NOVAKS", "BRANDTS"),
        ("the Novaks' house", "the Brandts' house"),
        ("Novakk", "Brandt"),
        ("Novakova", "Brandtova"),
        ("Novakem", "Brandtem"),
        ("Nowak", "Brandt"),
        ("Quintreo", "Lund"),
        ("Quinteor", "Quinteor"),  # the edit touches the end
        ("Quinetro", "Lund"),
        ("Quintera", "Quintera"),
        ("Qintero", "Lund"),
        ("Nordwerks", "Salzmanns"),
        ("**Martha** (Martha)", "**Ilse** (Ilse)"),
        ("Martha. Then", "Ilse. Then"),
    ],
)
def test_damage(text: str, expected: str) -> None:
    assert Restorer(PAIRS).restore(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "martha",  # not capitalised
        "MarTha",
        "Maria",  # a name of its own, one letter away
        "Marina",
        "Martina",
        "Mart",  # too short
        "Sebastiana",  # the feminine form is somebody else
        "Martha.txt",
        "/home/Martha",
        "Martha@corp.test",
        "Martha_x",
        "Martha-Lynn",
        "<Martha>",
        "`Martha`",
        "Martha2",
        "Market",
        "Novelty",
    ],
)
def test_left_alone(text: str) -> None:
    assert Restorer(PAIRS).restore(text) == text


def test_only_one_candidate() -> None:
    pairs = [Pair("Lindner", "A", "family"), Pair("Lindtner", "B", "family")]
    assert Restorer(pairs[:1]).restore("Linddner") == "A"
    assert Restorer(pairs).restore("Linddner") == "Linddner"
    pairs = [Pair("Hermann", "A", "family"), Pair("Herrman", "B", "family")]
    assert Restorer(pairs).restore("Herrmann") == "Herrmann"


def test_two_originals_of_one_substitute() -> None:
    pairs = [Pair("Novak", "A", "family"), Pair("Novak", "B", "family")]
    assert Restorer(pairs).restore("Nóvak") == "Nóvak"


def test_names_of_the_session_are_not_damage() -> None:
    pairs = [*PAIRS, Pair("Tadeo", "Martha", "given"), Pair("Novaks", "Lindqvist", "family")]
    assert Restorer(pairs).restore("Martha, Novaks") == "Martha, Lindqvist"


def test_common_and_protected_words() -> None:
    pairs = [Pair("Garrden", "Ilse", "given")]
    assert Restorer(pairs).restore("Garden Gárrden") == "Garden Ilse"
    restorer = Restorer(PAIRS).protecting(["Ask Martha about Novak."])
    assert restorer.restore("Martha and Nowak") == "Martha and Brandt"
    restorer = Restorer(PAIRS, common_word=lambda word: word == "Martha")
    assert restorer.restore("Martha and Nowak") == "Martha and Brandt"


def test_endings_only_where_they_can_follow() -> None:
    assert Restorer([Pair("Novak", "Jones", "family")]).restore("Novaks") == "Jones"
    assert Restorer([Pair("Novak", "Varga", "family")]).restore("Novakova") == "Varga"
    assert Restorer([Pair("Varga", "Novak", "family")]).restore("Vargou") == "Novak"


def test_switched_off() -> None:
    assert Restorer(PAIRS, fuzzy=False).restore("Martha Marta Nóvak") == "Martha Ilse Nóvak"
