"""Faults seen in other gateways, on the shipped tagger and the default recognizers."""

import pytest

from privacy.detection.engine import Detector
from privacy.detection.ner import NerTagger
from privacy.detection.registry import default_recognizers
from privacy.types import NAMED_TYPES


@pytest.fixture(scope="module")
def detector() -> Detector:
    return Detector(default_recognizers(), NerTagger.load())


def shown(detector: Detector, text: str) -> list[tuple[str, str]]:
    return [(text[s.start : s.end], s.type) for s in detector.detect([text])[0]]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("My line is 943 476 5919, thanks!", [("943 476 5919", "PHONE")]),
        (
            "I'm Bo, write to bo.lund@example.com or ring 212-555-0142 after six.",
            [("Bo", "PERSON"), ("bo.lund@example.com", "EMAIL"), ("212-555-0142", "PHONE")],
        ),
        ("Signed by Ilse   Varga on Monday.", [("Ilse   Varga", "PERSON")]),
        (
            "Varga Dental Supplies hired Ilse.",
            [("Varga Dental Supplies", "ORG"), ("Ilse", "PERSON")],
        ),
        (
            "🚀🚀👩\u200d👩\u200d👧 Ilse Varga called from 212-555-0142 🙂",
            [("Ilse Varga", "PERSON"), ("212-555-0142", "PHONE")],
        ),
        ("licence MED-88231, holder Ilse Varga", [("MED-88231", "RECORD_ID"), ("Ilse Varga", "PERSON")]),
        ("SIGNED: ILSE VARGA, TREASURER", [("ILSE VARGA", "PERSON")]),
        ("pls ask ilse varga about it", [("ilse varga", "PERSON")]),
        (
            "Chris Mbeki - chrismbeki@roa.test",
            [("Chris Mbeki", "PERSON"), ("chrismbeki@roa.test", "EMAIL")],
        ),
        (
            "ilse@corp.internal, bo@files.lan, cy@dept.local",
            [("ilse@corp.internal", "EMAIL"), ("bo@files.lan", "EMAIL"), ("cy@dept.local", "EMAIL")],
        ),
        (
            "token=aWxzZS52YXJnYUBleGFtcGxlLmNvbQ== and ilse.varga%40example.com",
            [("aWxzZS52YXJnYUBleGFtcGxlLmNvbQ==", "SECRET"), ("ilse.varga%40example.com", "EMAIL")],
        ),
        (
            "Card 4111 1111 1111 1111, ilse@example.com and CVC 731",
            [("4111 1111 1111 1111", "CREDIT_CARD"), ("ilse@example.com", "EMAIL"), ("731", "CVC")],
        ),
        ("cfg.name = re.search(p, s); run build.sh then main.rs", []),
        ("7305551234567 and SKU 536804398", []),
        ("db/migrate/20261130081502_add_users.sql", []),
        ("Each individual must file a form; every applicant signs.", []),
        ("Order 5550142 shipped", []),
        ("ring 07700900123 tonight", [("07700900123", "PHONE")]),
        ("SSN 536-22-8714", [("536-22-8714", "US_SSN")]),
        ("Ilse Varga, 17/02/1984", [("Ilse Varga", "PERSON"), ("17/02/1984", "DATE")]),
        ('{"card":"4111 1111 1111 1111","to":"Ilse Varga"}', [("4111 1111 1111 1111", "CREDIT_CARD"), ("Ilse Varga", "PERSON")]),
        ("data:image/png;base64,iVBORAKIAABCDEFGHIJKLMNOPQmCC", []),
        (
            "data:image/png;base64,iVBOR...AKIAABCDEFGHIJKLMNOP... and ilse@example.com",
            [("ilse@example.com", "EMAIL")],
        ),
        # An address that begins in the payload and goes on behind it is a text.
        (
            "data:image/png;base64,QUFBilse.varga@corp.internal and text",
            [("QUFBilse.varga@corp.internal", "EMAIL")],
        ),
        (
            "https://files.example.com/ilse-varga.png?mail=ilse@example.com",
            [("ilse-varga", "URL"), ("ilse@example.com", "EMAIL")],
        ),
        ('original Ilse "Izzy" Varga', [('Ilse "Izzy" Varga', "PERSON")]),
        ("Forward it to Tadeo Brandt.", [("Tadeo Brandt", "PERSON")]),
    ],
)  # fmt: skip
def test_fault(detector: Detector, text: str, found: list[tuple[str, str]]) -> None:
    assert shown(detector, text) == found


def test_near_valid_values_are_told_apart_by_score(detector: Detector) -> None:
    text = "person@example.invalid, 123-45-6789, 4111 1111 1111 1112"
    scores = {text[s.start : s.end]: s.score for s in detector.detect([text])[0]}
    assert scores["person@example.invalid"] >= 0.9
    assert scores["123-45-6789"] < 0.9
    assert "4111 1111 1111 1112" not in scores


@pytest.mark.parametrize("repeats", [70, 400])
def test_a_name_at_the_end_of_a_long_text_is_found(detector: Detector, repeats: int) -> None:
    text = "The pump was serviced on schedule. " * repeats + "Meet Ilse Varga at the gate."
    assert shown(detector, text) == [("Ilse Varga", "PERSON")]


def test_a_name_near_the_end_of_a_tool_output_of_over_a_megabyte() -> None:
    # Recognizers alone: the tagger's own windows have their own test.
    text = '{"row": 1, "state": "ok", "note": "pump serviced"}\n' * 24_000 + "contact: Ilse Varga\n"
    assert len(text) > 1_200_000
    assert shown(Detector(default_recognizers(), None), text) == [("Ilse Varga", "PERSON")]


QUIET = {
    "python": "import os.path\nfrom collections import OrderedDict\n\nclass UserService(BaseService):\n"
    "    def get_by_id(self, user_id: int) -> User | None:\n        return self.session.get(User, user_id)\n",
    "javascript": "const Foo = require('./foo.js');\nexport default function App({ name }) {\n"
    "  return <div className=\"name\">{name.first}</div>;\n}\n",
    "rust": "use std::collections::HashMap;\nfn main() { let x: Vec<u8> = Vec::with_capacity(1024); }\n",
    "shell": "set -euo pipefail\ncd \"$HOME\"/src && make -j4 install PREFIX=/usr/local\n",
    "sql": "SELECT u.id, u.name FROM users u JOIN orders o ON o.user_id = u.id WHERE o.total > 100;\n",
    "log": "2026-11-30 08:15:02,113 INFO worker.pool: started 4 workers in 0.213 s (pid 4123)\n"
    "2026-11-30T08:15:03Z WARN cache miss ratio=0.53 bytes=104857600 sha=9b74c9897bac770ffc029102a200c5de\n",
    "markdown": "# Install\n\n1. Run `pip install tool==1.2.3`\n2. See [the guide](docs/guide.md#setup)\n\n"
    "| step | time |\n|---|---|\n| build | 12 s |\n",
    "uuid": "id 123e4567-e89b-12d3-a456-426614174000 and 0xdeadbeef and v1.2.3.4-rc1\n",
    "yaml": "services:\n  web:\n    image: nginx:1.27\n    ports:\n      - \"8080:80\"\n",
    "prose": "The committee will review the report in spring. It may ask for changes, but most of the work "
    "is done and the results are good.\n",
    "numbers": "Rows 104729, 7919 and 15485863; pi is 3.14159265358979; 1,000,000 items; 50% off.\n",
    "stack": "Traceback (most recent call last):\n  File \"app/main.py\", line 42, in <module>\n"
    "ValueError: invalid literal for int() with base 10: 'abc'\n",
    "regex": "re.compile(r'^[a-z0-9._%+-]+@[a-z0-9.-]+\\.[a-z]{2,}$')\n",
    "css": "@media (max-width: 600px) { .card { color: #ffaa00; margin: 0 auto; } }\n",
}  # fmt: skip


@pytest.mark.parametrize("kind", sorted(QUIET))
def test_code_logs_and_plain_prose_hold_nobody(detector: Detector, kind: str) -> None:
    assert shown(detector, QUIET[kind]) == []


def test_named_spans_of_code_comments_are_still_found(detector: Detector) -> None:
    text = "# written by Ilse Varga\nx = compute(y)\n"
    assert [s for s, t in shown(detector, text) if t in NAMED_TYPES] == ["Ilse Varga"]
