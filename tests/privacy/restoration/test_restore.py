"""Restoration of whole texts."""

import unicodedata

import pytest

from privacy.restoration import Pair, Restorer

PERSON = [
    Pair("Ilse", "Marta", "given"),
    Pair("Varga", "Novak", "family"),
    Pair("Ilse M. Varga", "Marta K. Novak", "mention"),
    Pair("I. Varga", "M. Novak", "mention"),
]


def restore(pairs: list[Pair], text: str) -> str:
    return Restorer(pairs).restore(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ask Ilse M. Varga, not I. Varga.", "Ask Marta K. Novak, not M. Novak."),
        ("Varga alone, Ilse alone", "Novak alone, Marta alone"),
        ("Dr. ILSE M. VARGA Jr.", "Dr. MARTA K. NOVAK Jr."),
        ("ask ilse varga", "ask marta novak"),
        ("Ilse\nM.\nVarga", "Marta\nK.\nNovak"),
        ("Ilse   M.   Varga", "Marta   K.   Novak"),
        ("Ilse\u00a0M.\u00a0Varga", "Marta\u00a0K.\u00a0Novak"),
        ("Ilse M.\n Varga", "Marta K.\n Novak"),
        ("Ilse\n\nVarga", "Marta\n\nNovak"),
        ("nothing of the kind", "nothing of the kind"),
        ("", ""),
    ],
)
def test_persons(text: str, expected: str) -> None:
    assert restore(PERSON, text) == expected


def test_longest_first_with_borders() -> None:
    pairs = [
        Pair("Mark Lee", "Ada Quist", "mention"),
        Pair("Mark Leeson", "Bo Lund", "mention"),
        Pair("Marta", "Cy", "given"),
        Pair("Martano", "Dee", "family"),
    ]
    assert restore(pairs, "Mark Leeson met Mark Lee") == "Bo Lund met Ada Quist"
    assert restore(pairs, "Martano saw Marta in Marketing") == "Dee saw Cy in Marketing"
    # The longest form fails its border, the shorter one inside it does not.
    pairs.append(Pair("Marta Lee", "Eve", "mention"))
    assert restore(pairs, "Marta Leeson") == "Cy Leeson"


def test_each_name_comes_back_once() -> None:
    pairs = [
        *PERSON,
        Pair("Ilse Varga", "Marta Novak", "mention"),
        Pair("Tadeo Brandt", "Clara Quist", "mention"),
        Pair("Tadeo", "Clara", "given"),
        Pair("Brandt", "Quist", "family"),
    ]
    assert restore(pairs, "Ilse Varga met Tadeo Brandt.") == "Marta Novak met Clara Quist."


def test_restored_text_is_not_searched_again() -> None:
    pairs = [Pair("Ilse", "Marta", "given"), Pair("Marta", "Ilse", "family")]
    assert restore(pairs, "Ilse Marta") == "Marta Ilse"


def test_two_originals_for_one_form_are_never_a_guess() -> None:
    pairs = [Pair("Ilse", "Marta", "given"), Pair("Ilse", "Clara", "given")]
    assert restore(pairs, "Ilse ILSE ilse") == "Ilse ILSE ilse"
    # Only the upper-case form collides.
    pairs = [Pair("deVarga", "Novak", "family"), Pair("DeVarga", "Quist", "family")]
    assert restore(pairs, "deVarga DeVarga DEVARGA") == "Novak Quist DEVARGA"


def test_an_explicit_form_beats_a_derived_one() -> None:
    pairs = [Pair("Ilse", "Marta", "given"), Pair("ILSE", "I.L.S.E. Fund", "exact")]
    assert restore(pairs, "Ilse ILSE") == "Marta I.L.S.E. Fund"


def test_odd_case_of_originals() -> None:
    pairs = [
        Pair("Varga", "McDonald", "family"),
        Pair("Ilse", "o'Neil", "given"),
        Pair("Brandt Tools", "iPhone GmbH", "whole"),
        Pair("de Quist", "de la Cruz", "family"),
    ]
    assert restore(pairs, "Varga VARGA varga") == "McDonald MCDONALD mcdonald"
    assert restore(pairs, "Ilse ILSE") == "o'Neil O'NEIL"
    assert restore(pairs, "Brandt Tools BRANDT TOOLS") == "iPhone GmbH IPHONE GMBH"
    assert restore(pairs, "De Quist and De quist") == "De La Cruz and De quist"


def test_whole_entities_cross_line_breaks() -> None:
    pairs = [Pair("Brandt Tools GmbH", "Nordic Salt AB", "whole")]
    assert restore(pairs, "at Brandt Tools\nGmbH today") == "at Nordic Salt\nAB today"
    assert restore(pairs, "BRANDT\nTOOLS\nGMBH") == "NORDIC\nSALT\nAB"
    assert restore(pairs, "Brandt Tools\n\nGmbH") == "Brandt Tools\n\nGmbH"


def test_two_spacings_of_one_mention_each_come_back() -> None:
    pairs = [
        Pair("Ilse  Varga", "Marta \t Novak", "mention"),
        Pair("Ilse Varga", "Marta Novak", "mention"),
    ]
    assert restore(pairs, "Ilse  Varga, Ilse Varga") == "Marta \t Novak, Marta Novak"


def test_exact_identifiers() -> None:
    pairs = [
        Pair("qx7@example.com", "Marta.Novak@corp.test", "exact"),
        Pair("ACC-0042-x", "ACC-7731-x", "exact"),
        Pair("+1 212 555 0142", "+1 212 734 9921", "exact"),
    ]
    assert restore(pairs, "Qx7@Example.com") == "Marta.Novak@corp.test"
    assert restore(pairs, "QX7@EXAMPLE.COM") == "MARTA.NOVAK@CORP.TEST"
    assert restore(pairs, "acc-0042-x ACC-0042-x") == "acc-0042-x ACC-7731-x"
    assert restore(pairs, "ACC-0042-xy") == "ACC-0042-xy"
    assert (
        restore(pairs, "+1 212 555 0142, +1 212 555  0142") == "+1 212 734 9921, +1 212 555  0142"
    )


def test_normal_forms_of_a_substitute() -> None:
    pairs = [Pair("Novák", "Šťastný", "family")]
    decomposed = unicodedata.normalize("NFD", "Novák")
    assert restore(pairs, f"Novák {decomposed} NOVÁK") == "Šťastný Šťastný ŠŤASTNÝ"


def test_an_original_keeps_its_own_normal_form() -> None:
    original = unicodedata.normalize("NFD", "Novák")
    assert restore([Pair("Varga", original, "family")], "Varga") == original


@pytest.mark.parametrize(
    "written",
    [
        "[PERSON_1]",
        "<PERSON_1>",
        "PERSON_1",
        "person_1",
        "Person_1",
        "**PERSON_1**",
        r"PERSON\_1",
        "[person 1]",
        "[Person_1]",
    ],
)
def test_numbered_placeholders_in_any_dress(written: str) -> None:
    pairs = [Pair("[PERSON_1]", "Izzy", "placeholder"), Pair("[PERSON_2]", "Bo", "placeholder")]
    restored = restore(pairs, f"Hello {written} and [PERSON_12]!")
    assert restored.replace("**", "") == "Hello Izzy and [PERSON_12]!"
    assert restore(pairs, "[PERSON_1] and [PERSON_2]") == "Izzy and Bo"


def test_redacted_person_markers() -> None:
    pairs = [Pair("[REDACTED_PERSON_1]", "Marta", "placeholder")]
    assert restore(pairs, "Hello [redacted_person_1]") == "Hello Marta"
    pairs.append(Pair("[REDACTED_PERSON_2]", "Novak", "placeholder"))
    text = "[REDACTED_PERSON_1] and [REDACTED_PERSON_2], not [REDACTED_PERSON_3]"
    assert restore(pairs, text) == "Marta and Novak, not [REDACTED_PERSON_3]"


def test_a_constant_placeholder_is_not_restored() -> None:
    pairs = [Pair("[PERSON]", "Marta", "placeholder"), Pair("[PERSON]", "Clara", "placeholder")]
    assert restore(pairs, "[PERSON]") == "[PERSON]"


def test_common_words_keep_to_the_written_form() -> None:
    pairs = [Pair("Rose", "Marta", "given")]
    assert restore(pairs, "Rose grew a rose") == "Marta grew a rose"


def test_negations_are_not_names() -> None:
    pairs = [Pair("Don", "Marta", "given")]
    restorer = Restorer(pairs, common_word=lambda word: False)
    assert restorer.restore("Don's dog. Don't, don’t, DON'T") == "Marta's dog. Don't, don’t, DON'T"


def test_lone_surrogates_do_no_harm() -> None:
    assert restore(PERSON, "\ud83d Ilse \udc00") == "\ud83d Marta \udc00"


def test_bad_pairs_are_refused_without_repeating_them() -> None:
    with pytest.raises(ValueError, match="unknown kind") as caught:
        Pair("Ilse", "Marta", "person")
    assert "Marta" not in str(caught.value)
    for substitute in ("", " Ilse", "Ilse\n"):
        with pytest.raises(ValueError, match="white space") as caught:
            Pair(substitute, "Marta", "given")
        assert "Marta" not in str(caught.value)


def test_no_pairs() -> None:
    assert restore([], "Ilse Varga") == "Ilse Varga"
    stream = Restorer([]).stream()
    assert stream.feed("Ilse") + stream.finish() == "Ilse"


def test_what_was_sent_goes_before_a_mention_cut_to_an_initial() -> None:
    pairs = [
        Pair("Lucrecia Michelson", "Dean O'Hara", "mention"),
        Pair("L. Michelson", "D. O'Hara", "initialled"),
        Pair("Michelson", "O'Hara", "family"),
    ]
    assert Restorer(pairs).restore("L. Michelson, L. MICHELSON") == "D. O'Hara, D. O'HARA"
    sent = Pair("L. Michelson", "S. O'Hara", "mention")
    assert Restorer([*pairs, sent]).restore("L. Michelson wrote") == "S. O'Hara wrote"


@pytest.mark.parametrize("mark", ["'", "’"])
def test_the_letter_of_a_possessive_begins_no_name(mark: str) -> None:
    pairs = [Pair("S Maddock", "D O'Hara", "initialled"), Pair("Maddock", "O'Hara", "family")]
    restorer = Restorer(pairs)
    assert restorer.restore(f"Dean{mark}S Maddock") == f"Dean{mark}S O'Hara"
    assert restorer.restore(f"{mark}S Maddock{mark}") == f"{mark}D O'Hara{mark}"
    assert restorer.restore("l'S Maddock d'S. Maddock") == "l'S O'Hara d'S. O'Hara"
    names = Restorer([Pair("S-6685", "S-2210", "exact"), Pair("T&K Bank", "S&P Bank", "whole")])
    assert (
        names.restore(f"d{mark}S-6685, dell{mark}T&K Bank") == f"d{mark}S-2210, dell{mark}S&P Bank"
    )
