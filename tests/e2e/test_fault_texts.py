"""Faults of comparable systems, by id: texts that must be sanitised, or left alone, and come back."""

from collections.abc import Iterator
from typing import Any

import pytest
from e2e_gateway import Gateway, found_in, running_gateway
from e2e_upstream import send_message

# id -> text, what must not leave, what must be there unchanged
SANITISED: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "B01": (
        "My line is 943 476 5919, thanks!",
        ("943 476 5919", "476 5919"),
        ("My line is ", ", thanks!"),
    ),
    "B02": (
        "I'm Bo, write to bo.lund@example.com or ring 212-555-0142 after six.",
        ("Bo, write", "bo.lund", "212-555-0142"),
        ("I'm ", " or ring ", " after six."),
    ),
    "B04": (
        "\U0001f680\U0001f680\U0001f469\u200d\U0001f469\u200d\U0001f467 Ilse Varga called from 212-555-0142 \U0001f642",
        ("Ilse", "Varga", "212-555-0142"),
        (
            "\U0001f680\U0001f680\U0001f469\u200d\U0001f469\u200d\U0001f467 ",
            " called from ",
            "\U0001f642",
        ),
    ),
    "B05": (
        "Signed by Ilse   Varga on Monday (three blanks between the names).",
        ("Ilse", "Varga"),
        ("Signed by ", "   ", " on Monday (three blanks"),
    ),
    "B06": ("Varga Dental Supplies hired Ilse Brandt.", ("Varga", "Ilse", "Brandt"), (" hired ",)),
    "B08": ("licence MED-88231, holder Ilse Varga", ("88231", "Ilse", "Varga"), ("licence ",)),
    "B09": ("Ilse Varga met Tadeo Brandt.", ("Ilse", "Varga", "Tadeo", "Brandt"), (" met ",)),
    "B10": ("SIGNED: ILSE VARGA, TREASURER", ("ILSE", "VARGA"), ("SIGNED: ", ", TREASURER")),
    "B11": ("pls ask ilse varga about it", ("ilse", "varga"), ("pls ask ", " about it")),
    "B13": ("Chris Mbeki - chrismbeki@roa.test", ("Chris", "Mbeki", "chrismbeki"), (" - ", "@")),
    "B14": (
        "ilse@corp.internal, bo@files.lan, cy@dept.local",
        ("ilse@corp", "bo@files", "cy@dept", "corp.internal", "files.lan", "dept.local"),
        (", ",),
    ),
    "B17": (
        "token=aWxzZS52YXJnYUBleGFtcGxlLmNvbQ== and ilse.varga%40example.com, not SGVsbG8gd29ybGQh",
        ("aWxzZS52YXJnYUBleGFtcGxlLmNvbQ", "ilse.varga"),
        ("token=", " and ", "SGVsbG8gd29ybGQh"),
    ),
    "B21": (
        "Card 4111 1111 1111 1111, ilse@example.com and CVC 731",
        ("4111 1111 1111 1111", "ilse", "CVC 731"),
        ("Card ", " and CVC "),
    ),
    "B15": (
        "Write to person@example.invalid, SSN 536-22-8714.",
        ("person@example.invalid", "536-22-8714"),
        ("Write to ",),
    ),
    "B18": (
        "The pump was serviced on schedule. " * 400 + "Meet Ilse Varga at the gate.",
        ("Ilse", "Varga"),
        ("The pump was serviced on schedule. Meet ", " at the gate."),
    ),
    "B19": (
        "The valve was replaced. " * 110 + "Forward it to Tadeo Brandt.",
        ("Tadeo", "Brandt"),
        ("The valve was replaced. Forward it to ",),
    ),
    "B42": (
        "Send 212-555-0142 and 212-555-0143 to ops.",
        ("212-555-0142", "212-555-0143"),
        ("Send ", " to ops."),
    ),
    "B90": ("Call Ilse Varga, SSN 536-22-8714.", ("Ilse", "Varga", "536-22"), ("Call ", ", SSN ")),
}

UNTOUCHED = {
    "B24": "cfg.name = re.search(p, s); run build.sh then main.rs",
    "B25": "7305551234567 and SKU 536804398",
    "B27": "db/migrate/20261130081502_add_users.sql",
    "B28": "Each individual must file a form; every applicant signs.",
}


def _sent(gateway: Gateway) -> str:
    content: str = gateway.upstream.bodies[-1]["messages"][-1]["content"]
    return content


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("case", SANITISED)
def test_sanitised_and_restored(gateway: Gateway, case: str, stream: bool) -> None:
    text, gone, kept = SANITISED[case]
    assert gateway.ask(text, f"fault-{case}", stream) == f"You wrote: {text} Thank you."
    sent = _sent(gateway)
    assert found_in(sent, gone) == [], sent
    assert [piece for piece in kept if piece not in sent] == [], sent


@pytest.mark.parametrize("case", UNTOUCHED)
def test_left_alone(gateway: Gateway, case: str) -> None:
    text = UNTOUCHED[case]
    assert gateway.ask(text, f"fault-{case}") == f"You wrote: {text} Thank you."
    assert _sent(gateway) == text


def test_B10_capitals_stay_capitals(gateway: Gateway) -> None:
    gateway.ask(SANITISED["B10"][0], "fault-capitals")
    name = _sent(gateway).removeprefix("SIGNED: ").removesuffix(", TREASURER")
    assert name == name.upper()
    assert len(name.split()) == 2


def test_B42_two_numbers_are_two(gateway: Gateway) -> None:
    gateway.ask(SANITISED["B42"][0], "fault-two-numbers")
    first, second = _sent(gateway).removeprefix("Send ").removesuffix(" to ops.").split(" and ")
    assert first != second


def test_B72_the_upstream_gets_no_field_of_ours(gateway: Gateway) -> None:
    body = {
        "model": "test-model",
        "messages": [{"role": "user", "content": "I am Ilse Varga."}],
        "temperature": 0.5,
        "metadata": {"penname_session": "fault-B72"},
        "penname": {"vector_store_ids": []},
    }
    assert gateway.post(body).status_code == 200
    assert set(gateway.upstream.bodies[-1]) == {"model", "messages", "temperature"}
    assert set(gateway.upstream.bodies[-1]["messages"][0]) == {"role", "content"}


def test_B52_no_instruction_is_added(gateway: Gateway) -> None:
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "I am Ilse Varga."},
    ]
    gateway.ask(messages, "fault-B52")
    sent = gateway.upstream.bodies[-1]["messages"]
    assert [m["role"] for m in sent] == ["system", "user"]
    assert sent[0]["content"] == "Be brief."
    assert sent[1]["content"].startswith("I am ")
    assert len(sent[1]["content"].split()) == 4


def test_B40_what_looks_like_a_marker_is_text(gateway: Gateway, marking: Gateway) -> None:
    for marker in ("<PERSON_1>", "[PERSON_1]"):
        text = f"Use {marker} as the template field. Ilse Varga signs."
        for one in (gateway, marking):
            assert one.ask(text, f"B40{marker[0] == '<'}") == f"You wrote: {text} Thank you."
            assert marker in _sent(one)
            assert found_in(_sent(one), ("Varga",)) == []


@pytest.fixture(scope="module")
def marking(gateway: Gateway, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway whose policy puts numbered markers for persons."""
    with running_gateway(
        tmp_path_factory.mktemp("marking"),
        detector=gateway.services.detector,
        policy={"entities": {"PERSON": {"action": "placeholder", "threshold": 0.35}}},
    ) as running:
        yield running


MARKED: dict[str, tuple[str, str]] = {
    "B44": ("Dear **{0}**, _{0}_ or `{0}`.", "Dear **Ilse Varga**, _Ilse Varga_ or `Ilse Varga`."),
    "B46": ("Hello {0_lower}", "Hello Ilse Varga"),
    "B47": (
        "{0} and {1}; ({0_bare}), <{1_bare}>",
        "Ilse Varga and Tadeo Brandt; (Ilse Varga), Tadeo Brandt",
    ),
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("case", MARKED)
def test_markers_come_back_in_every_spelling(marking: Gateway, case: str, stream: bool) -> None:
    reply, expected = MARKED[case]

    def script(handler: Any, body: dict[str, Any]) -> None:
        words = (
            body["messages"][-1]["content"].removeprefix("Ask ").removesuffix(".").split(" and ")
        )
        values = {str(i): word for i, word in enumerate(words)}
        values |= {f"{i}_lower": word.lower() for i, word in enumerate(words)}
        values |= {f"{i}_bare": word.strip("[]") for i, word in enumerate(words)}
        text = reply
        for name, value in values.items():
            text = text.replace("{" + name + "}", value)
        send_message(handler, body, {"content": text}, 1)

    marking.upstream.script = script
    try:
        answer = marking.ask("Ask Ilse Varga and Tadeo Brandt.", "markers", stream)
    finally:
        marking.upstream.script = None
    assert answer == expected


@pytest.mark.parametrize("action", ["substitute", "placeholder", "redact", "mask", "hash", "block"])
def test_B89_every_action_works(
    gateway: Gateway, tmp_path_factory: pytest.TempPathFactory, action: str
) -> None:
    kinds = {"PERSON": {"action": action}, "EMAIL": {"action": action}}
    if action == "substitute":
        kinds["EMAIL"] = {"action": "surrogate"}
    text = "Ask Ilse Varga at ilse@example.com."
    with running_gateway(
        tmp_path_factory.mktemp(action),
        detector=gateway.services.detector,
        policy={"entities": kinds},
    ) as running:
        for stream in (False, True):
            body = {
                "model": "test-model",
                "messages": [{"role": "user", "content": text}],
                "stream": stream,
            }
            response = running.post(body, "actions")
            assert response.status_code == (403 if action == "block" else 200), response.text
        sent = b"".join(running.upstream.requests)
        assert found_in(sent, ("Varga", "ilse@example.com")) == []
        if action in ("substitute", "placeholder", "hash"):
            assert running.ask(text, "actions") == f"You wrote: {text} Thank you."


LONG_WORD = "q" * 1200


@pytest.mark.parametrize("where", ["B91", "5 MB"])
def test_large_texts_are_read_to_their_end(scripted: Gateway, where: str) -> None:
    """A tool's output of 1.2 MB and a prompt of 5 MB, with names at the start and near the end."""
    size = 1_200_000 if where == "B91" else 5_000_000
    dump = f"{LONG_WORD} " * (size // len(LONG_WORD))
    text = f"Dump for Ilse Varga:\n{dump}\nMeet Tadeo Brandt, tadeo@example.com, at the gate.\n{LONG_WORD}"
    messages: list[dict[str, Any]] = [{"role": "user", "content": text}]
    if where == "B91":
        call = {"id": "c1", "type": "function", "function": {"name": "dump", "arguments": "{}"}}
        messages = [
            {"role": "user", "content": "Dump it."},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": text},
        ]
    if where != "B91":
        scripted.upstream.script = lambda h, b: send_message(
            h, b, {"content": b["messages"][0]["content"][-1300:]}
        )
    response = scripted.post({"model": "test-model", "messages": messages}, f"large-{where[0]}")
    assert response.status_code == 200
    sent = scripted.upstream.requests[-1]
    assert len(sent) > size
    assert found_in(sent, ("Ilse", "Varga", "Tadeo", "Brandt", "tadeo")) == []
    content = response.json()["choices"][0]["message"]["content"]
    assert content == (f"You wrote: {text} Thank you." if where == "B91" else text[-len(content) :])
    assert "Tadeo Brandt, tadeo@example.com" in content


def test_a_body_above_the_limit_is_refused(
    gateway: Gateway, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with running_gateway(
        tmp_path_factory.mktemp("small"), detector=gateway.services.detector, max_body_bytes=100_000
    ) as running:
        body = {"model": "test-model", "messages": [{"role": "user", "content": "Varga " * 20_000}]}
        response = running.post(body)
        assert (response.status_code, response.json()["error"]["code"]) == (
            413,
            "request_too_large",
        )
        assert "Varga" not in response.text
        assert running.upstream.requests == []
