"""Name, organisation and secret recognizers, by table."""

import pytest

from privacy.detection.base import Recognizer
from privacy.detection.recognizers.names import make_word
from privacy.detection.recognizers.org_form import OrgFormRecognizer
from privacy.detection.recognizers.person_context import PersonContextRecognizer
from privacy.detection.recognizers.person_email import PersonEmailRecognizer
from privacy.detection.recognizers.person_gazetteer import PersonGazetteerRecognizer
from privacy.detection.recognizers.person_script import PersonScriptRecognizer
from privacy.detection.recognizers.secret import SecretRecognizer


def surfaces(recognizer: Recognizer, text: str, least: float = 0.5) -> list[str]:
    spans = sorted(recognizer.find(text), key=lambda s: (s.start, -s.end))
    return list(dict.fromkeys(text[s.start : s.end] for s in spans if s.score >= least))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("pls ask ilse varga about it", ["ilse varga"]),
        ("SIGNED: ILSE VARGA, TREASURER", ["ILSE VARGA"]),
        ("by Ilse   Varga on", ["Ilse   Varga"]),
        ("Ilse M. Varga Jr. left", ["Ilse M. Varga Jr."]),
        ("Varga, Ilse", ["Varga, Ilse"]),
        ("VARGA, ILSE", ["VARGA, ILSE"]),
        ('met Ilse "Izzy" Varga', ['Ilse "Izzy" Varga']),
        ("Tadeo Brandt", ["Tadeo Brandt"]),
        ("Mary-Ann O'Brien", ["Mary-Ann O'Brien"]),
        ("they hired Ilse.", ["Ilse"]),
        ("maria may come", []),
        ("Each individual must file a form; every applicant signs.", []),
        ("we will mark the long road", []),
        ("src/ilse/varga.py", []),
        ("ilse_varga = 1", []),
        ("obj.ilse varga(", []),
        ("He went to Paris", []),
        ("Please call Mrs O'Hara today", []),
        ("We met Prof D'Angelo", []),
        ("they hired Herr.", []),
    ],
)
def test_person_gazetteer(text: str, found: list[str]) -> None:
    assert surfaces(PersonGazetteerRecognizer(), text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Dr. Ilse M. Varga said", ["Ilse M. Varga"]),
        ("Frau Varga", ["Varga"]),
        ("Prof. van der Berg", ["van der Berg"]),
        ("dr varga", ["varga"]),
        ("Signed by Ilse Varga", ["Ilse Varga"]),
        ("my name is ilse varga", ["ilse varga"]),
        ("Kind regards,\nTadeo", ["Tadeo"]),
        ("I'm Bo, write", ["Bo"]),
        ("Dear Tadeo,", ["Tadeo"]),
        ("I am Happy to help", []),
        ("Dear Team,", []),
        ("from Monday to Friday", []),
        ("dr strange weather", []),
        ("O’Sullivan (Fionnuala) called.", ["O’Sullivan", "Fionnuala"]),
        ("Brandt (Tadeo), Varga (Ilse)", ["Brandt", "Tadeo", "Varga", "Ilse"]),
        ("Figure (Left) shows", []),
        ("with New Features", []),
    ],
)
def test_person_context(text: str, found: list[str]) -> None:
    assert surfaces(PersonContextRecognizer(), text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Chris Mbeki - chrismbeki@roa.test", ["Chris Mbeki"]),
        ("Mbeki Chris <c.mbeki@roa.test>", ["Mbeki Chris"]),
        ("Zoë Krüger (zoe.krueger@x.test)", ["Zoë"]),
        ("I'm Bo, write to bo.lund@example.com", ["Bo"]),
        ("mail support@example.com for Support", []),
        ("nothing here", []),
        ("a@b", []),
        ('`Digest realm="realm@host.com"`', []),
        ("- name: Checkout\n  uses: actions/checkout@v4", []),
        ("Vite and Express: express@main, vite@5.4.1", []),
    ],
)
def test_person_email(text: str, found: list[str]) -> None:
    assert surfaces(PersonEmailRecognizer(), text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "Varga Dental Supplies GmbH hired",
            ["Varga Dental Supplies GmbH", "Varga Dental Supplies"],
        ),
        ("the Acme Inc. office", ["Acme Inc."]),
        ("Brandt & Lund Ltd", ["Brandt & Lund Ltd"]),
        ("Varga Dental Supplies hired Ilse", ["Varga Dental Supplies"]),
        ("University of Lund", ["University of Lund"]),
        ("Copyright 2006 Acmex Group", ["Acmex Group"]),
        ("Siemens AG", ["Siemens AG"]),
        ("Ilse M. Varga of Brunnholt Glaswerke AG", ["Brunnholt Glaswerke AG"]),
        ("Bank of Basel AG", ["Bank of Basel AG"]),
        ("The Company shall", []),
        ("our bank and the group", []),
        ("5 KG of flour", []),
        ("we limited it", []),
    ],
)
def test_org_form(text: str, found: list[str]) -> None:
    assert surfaces(OrgFormRecognizer(), text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("key sk-abcdefghijklmnop1234", ["sk-abcdefghijklmnop1234"]),
        ("AKIAIOSFODNN7EXAMPLE", ["AKIAIOSFODNN7EXAMPLE"]),
        ("ghp_" + "a1" * 18, ["ghp_" + "a1" * 18]),
        (
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-DEF_1",
            ["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-DEF_1"],
        ),
        ("password=hunter22", ["hunter22"]),
        ("my password is Tr0ub4dor&3.", ["Tr0ub4dor&3"]),
        ('api_key: "a8f5f167f44f4964"', ["a8f5f167f44f4964"]),
        ("Authorization: Bearer abcdEFGH12345678", ["abcdEFGH12345678"]),
        ("PIN: 4711", ["4711"]),
        ("DB_PASSWORD=s3cr3t!", ["s3cr3t!"]),
        ("password for the vault is hunter2-Zx81.", ["hunter2-Zx81"]),
        ("The password of her mail account was Summer24!", ["Summer24!"]),
        ("my PIN is 4711", ["4711"]),
        ("the PIN for the card is 4711.", ["4711"]),
        ("the password for the vault is wrong", []),
        ("a pin is round", []),
        ("password is wrong", []),
        ("password = request.form['p']", []),
        ("password: str", []),
        ("token = get_token()", []),
        ("password=${DB_PASSWORD}", []),
        ("token: 42", []),
        ("the key is simple", []),
        ("self.password = password", []),
        ("task-1234567890123456789", []),
    ],
)
def test_secret(text: str, found: list[str]) -> None:
    assert surfaces(SecretRecognizer(), text) == found


def test_private_key_block_is_one_secret_with_or_without_its_footer() -> None:
    block = "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY-----"
    text = f"here:\n{block}\nbye"
    assert block in surfaces(SecretRecognizer(), text)
    cut = "x -----BEGIN PRIVATE KEY-----\nMIIabc"
    assert cut[2:] in surfaces(SecretRecognizer(), cut)


@pytest.mark.parametrize(
    ("surface", "case"),
    [("ilse", "lower"), ("ILSE", "upper"), ("Ilse", "title"), ("McBride", "title"), ("M", "title")],
)
def test_case_of_a_word(surface: str, case: str) -> None:
    assert make_word(surface, 0).case == case


def test_hyphenated_names_count_by_their_parts() -> None:
    word = make_word("Mary-Ann", 3)
    assert (word.start, word.end, word.given) == (3, 11, True)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Напишите, пожалуйста, Владимиру Сидорову.", ["Владимиру Сидорову"]),
        ("Вчера звонила Ольга.", ["Ольга"]),
        ("Ольга Петрова-Иванова подписала.", ["Ольга Петрова-Иванова"]),
        ("Ο Γιώργος Παπαδόπουλος υπέγραψε.", ["Γιώργος Παπαδόπουλος"]),
        ("Когда заканчивается договор?", []),
        ("Ilse Varga called.", []),
        ("日本語のテキスト", []),
    ],
)
def test_names_in_other_scripts_with_capitals(text: str, found: list[str]) -> None:
    assert surfaces(PersonScriptRecognizer(), text) == found


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Szanowna Pani Małgorzato Wiśniewska, proszę", "Małgorzato Wiśniewska"),
        ("Spotkanie z panem Wiśniewskim jutro", "Wiśniewskim"),
        ("Spotkali Krzysztofa Zielińskiego wczoraj", "Krzysztofa Zielińskiego"),
        ("Kedves Zsófia! Holnap", "Zsófia"),
        ("a szerződés Kovács Eszter neve alatt", "Kovács Eszter"),
        ("il sig. D'Agostino è qui", "D'Agostino"),
        ("Sayın Çelikkol, merhaba", "Çelikkol"),
        ("mevrouw Oosterwijk belt", "Oosterwijk"),
        ("The minutes of dr Abercrombe say so", "Abercrombe"),
        ("vážený pane Dvořáku, paní Novákové", "Novákové"),
    ],
)
def test_forms_of_address_and_of_names_in_other_languages(text: str, name: str) -> None:
    found = [
        *surfaces(PersonContextRecognizer(), text),
        *surfaces(PersonGazetteerRecognizer(), text),
    ]
    assert name in found


def test_self_introduction_is_no_place() -> None:
    text = "My name is Siobhán Park."
    assert surfaces(PersonContextRecognizer(), text, 0.99) == ["Siobhán Park"]
