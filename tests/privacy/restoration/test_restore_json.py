"""Restoration of parsed JSON, and of JSON text in streams."""

import json
from typing import Any

import pytest

from privacy.restoration import Pair, Restorer

PAIRS = [
    Pair("Ilse", 'Marta "Izzy"', "given"),
    Pair("Varga", "Nov\\ak\n", "family"),
    Pair("Novák", "Quist", "family"),
    Pair("qx7@example.com", "ilse.varga@corp.test", "exact"),
    Pair("4000001234", "5552221111", "exact"),
    Pair("4000009999", "0049301234", "exact"),
    Pair("Brandt Tools", "Nordic Salt", "whole"),
]
DOCUMENTS: list[Any] = [
    {"to": "qx7@example.com", "n": 3, "ok": True, "none": None, "f": 1.5},
    {"name": "Ilse Varga", "Ilse": ["Varga", {"x": "Ilse's Novák"}]},
    {"body": json.dumps({"to": "Ilse", "n": 4000001234})},
    {"body": json.dumps({"inner": json.dumps({"to": "Ilse Varga", "more": json.dumps(["Ilse"])})})},
    {"body": json.dumps({"to": "Novák"}, ensure_ascii=False) + " and Ilse"},
    {"text": "[Ilse] said {Varga}", "list": "[[Ilse]]", "set": "{Ilse}"},
    {"number": 4000001234, "kept": 4000009999, "negative": -4000001234, "float": 4000001234.5},
    {"split": "Brandt\nTools", "tab": "Brandt\tTools", "emoji": "🚀Ilse👩‍👩‍👧 \ud83d Ilse"},
    {"slash": "a\\Ilse", "quote": '"Ilse"', "nul": "\x00Ilse\x1f"},
    "Ilse",
    ["Ilse", ["Varga"]],
    4000001234,
    {},
]


@pytest.mark.parametrize("document", DOCUMENTS)
@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("indent", [None, 2])
def test_text_and_tree_agree_at_every_cut(
    document: Any, ascii_only: bool, indent: int | None
) -> None:
    restorer = Restorer(PAIRS)
    expected = restorer.restore_json(document)
    text = json.dumps(document, ensure_ascii=ascii_only, indent=indent)
    whole = restorer.restore_json_text(text)
    assert json.loads(whole) == expected
    for cut in range(len(text) + 1):
        stream = restorer.stream(json_escaped=True)
        assert stream.feed(text[:cut]) + stream.feed(text[cut:]) + stream.finish() == whole
    stream = restorer.stream(json_escaped=True)
    assert "".join(map(stream.feed, text)) + stream.finish() == whole


def test_tree() -> None:
    restorer = Restorer(PAIRS)
    assert restorer.restore_json(DOCUMENTS[0])["to"] == "ilse.varga@corp.test"
    assert restorer.restore_json(DOCUMENTS[1]) == {
        "name": 'Marta "Izzy" Nov\\ak\n',
        'Marta "Izzy"': ["Nov\\ak\n", {"x": 'Marta "Izzy"\'s Quist'}],
    }
    nested = restorer.restore_json(DOCUMENTS[3])
    inner = json.loads(json.loads(nested["body"])["inner"])
    assert inner["to"] == 'Marta "Izzy" Nov\\ak\n'
    assert json.loads(inner["more"]) == ['Marta "Izzy"']
    assert restorer.restore_json(DOCUMENTS[5]) == {
        "text": '[Marta "Izzy"] said {Nov\\ak\n}',
        "list": '[[Marta "Izzy"]]',
        "set": '{Marta "Izzy"}',
    }


def test_types_are_kept() -> None:
    restored = Restorer(PAIRS).restore_json(DOCUMENTS[6])
    assert restored == {
        "number": 5552221111,
        "kept": 4000009999,
        "negative": -4000001234,
        "float": 4000001234.5,
    }
    assert Restorer(PAIRS).restore_json([True, None, 1.5]) == [True, None, 1.5]


def test_nested_escapes_as_text() -> None:
    restorer = Restorer([Pair("SUBST", 'Ilse "Izzy" Varga', "exact")])
    arguments = '{"body":"{\\"to\\":\\"SUBST\\"}"}'
    restored = restorer.restore_json_text(arguments)
    assert restored == '{"body":"{\\"to\\":\\"Ilse \\\\\\"Izzy\\\\\\" Varga\\"}"}'
    assert json.loads(json.loads(restored)["body"]) == {"to": 'Ilse "Izzy" Varga'}


def test_escapes_inside_a_substitute() -> None:
    restorer = Restorer(PAIRS)
    assert restorer.restore_json_text('{"a":"Nov\\u00e1k \\u0049lse"}') == (
        '{"a":"Quist Marta \\"Izzy\\""}'
    )
    assert restorer.restore_json_text('"Brandt\\nTools"') == '"Nordic\\nSalt"'
    assert restorer.restore_json_text('"\\ud83d\\ude00Ilse\\ud83d"') == (
        '"\\ud83d\\ude00Marta \\"Izzy\\"\\ud83d"'
    )


@pytest.mark.parametrize(
    "text",
    [
        '{"a":"x\\',
        '{"a":"x\\u00',
        '{"a":"x\\ud83d',
        '{"a":"x\\uzz Ilse"}',
        '{"a":"{\\"b\\":\\"x\\\\',
        "",
    ],
)
def test_broken_documents_lose_nothing(text: str) -> None:
    expected = text.replace("Ilse", 'Marta \\"Izzy\\"')
    assert Restorer(PAIRS).restore_json_text(text) == expected


def test_text_that_is_no_json_is_restored_too() -> None:
    assert Restorer(PAIRS).restore_json_text("send it to Ilse") == 'send it to Marta "Izzy"'
    literals = [Pair("true", "Marta", "exact"), Pair("null", "Novak", "exact")]
    assert Restorer(literals).restore_json_text('[true, null, "true"]') == '[true, null, "Marta"]'


def test_a_restored_key_never_overwrites_another() -> None:
    restorer = Restorer([Pair("Ilse", "Marta", "given")])
    assert restorer.restore_json({"Ilse": 1, "Marta": 2}) == {"Ilse": 1, "Marta": 2}
    assert restorer.restore_json({"Marta": 2, "Ilse": 1}) == {"Marta": 2, "Ilse": 1}
    assert restorer.restore_json({"Ilse": 1}) == {"Marta": 1}
