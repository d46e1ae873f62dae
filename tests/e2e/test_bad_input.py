"""Bad input: a clear error in OpenAI's shape, nothing forwarded, nothing charged, nothing quoted."""

import json
from typing import Any

import pytest
from e2e_gateway import found_in, kept_log

CANARIES = ("Ilse", "Varga", "ilse", "varga")
USER = {"role": "user", "content": "Tell Ilse Varga."}
GOOD = {"model": "test-model", "messages": [USER]}


def _raw(**fields: Any) -> bytes:
    return json.dumps({**GOOD, **fields}).encode()


def _nested(depth: int, inner: str = '"Ilse Varga"') -> bytes:
    return b'{"a":' * depth + inner.encode() + b"}" * depth


def _with_extra(raw: bytes) -> bytes:
    return _raw()[:-1] + b', "extra": ' + raw + b"}"


def _message(**fields: Any) -> bytes:
    return _raw(messages=[{**USER, **fields}])


def _arguments(text: str) -> bytes:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": text}}
    return _raw(messages=[USER, {"role": "assistant", "content": None, "tool_calls": [call]}])


REFUSED = {
    "empty": b"",
    "no JSON": b"Ilse Varga",
    "half an object": b'{"model": "test-model", "messages": [{"content": "Ilse Varga',
    "array": b'["Ilse Varga"]',
    "string": b'"Ilse Varga"',
    "null": b"null",
    "number": b"17",
    "invalid UTF-8": b'{"model": "test-model", "messages": [{"role": "user", "content": "Varga \xff"}]}',
    "UTF-16": json.dumps(GOOD).encode("utf-16"),
    "lone surrogate": _raw().replace(b"Tell", rb"\ud800 Tell"),
    "lone surrogate in a key": _with_extra(rb'{"\udfff Varga": 1}'),
    "NaN": _with_extra(b"NaN"),
    "infinite": _with_extra(b"1e400"),
    "10,000 levels": _with_extra(_nested(10_000)),
    "10,000 lists": _with_extra(b"[" * 10_000 + b"]" * 10_000),
    "600 levels": _with_extra(_nested(600)),
    "300 levels": _with_extra(_nested(300)),
    "deep content": _raw(messages=[{"role": "user", "content": [json.loads(_nested(300))]}]),
    "deep arguments": _arguments(_nested(300).decode()),
    "no model": json.dumps({"messages": [USER]}).encode(),
    "model: number": _raw(model=3),
    "model: null": _raw(model=None),
    "model: list": _raw(model=["Ilse Varga"]),
    "model: empty": _raw(model=""),
    "no messages": b'{"model": "test-model"}',
    "messages: empty": _raw(messages=[]),
    "messages: string": _raw(messages="Ilse Varga"),
    "messages: object": _raw(messages={"Ilse": "Varga"}),
    "messages: strings": _raw(messages=["Ilse Varga"]),
    "messages: null": _raw(messages=[None]),
    "role: missing": _raw(messages=[{"content": "Ilse Varga"}]),
    "role: number": _message(role=1),
    "role: a name": _message(role="Ilse Varga"),
    "content: number": _message(content=5),
    "content: true": _message(content=True),
    "content: object": _message(content={"Ilse": "Varga"}),
    "content: list of strings": _message(content=["Ilse Varga"]),
    "part without type": _message(content=[{"text": "Ilse Varga"}]),
    "part with a list as type": _message(content=[{"type": ["Ilse"], "text": "Varga"}]),
    "part with a number as text": _message(content=[{"type": "text", "text": 7}]),
    "name: number": _message(name=5),
    "tool_calls: object": _message(tool_calls={"Ilse": "Varga"}),
    "tool_calls: strings": _message(tool_calls=["Ilse Varga"]),
    "arguments: object": _message(
        tool_calls=[{"function": {"name": "f", "arguments": {"Ilse": 1}}}]
    ),
    "function: string": _message(tool_calls=[{"function": "Ilse Varga"}]),
    "tools: string": _raw(tools="Ilse Varga"),
    "tools: strings": _raw(tools=["Ilse Varga"]),
    "stream: string": _raw(stream="Ilse Varga"),
    "stream: number": _raw(stream=1),
    "stream_options: string": _raw(stream_options="Ilse Varga"),
    "n: 0": _raw(n=0),
    "n: string": _raw(n="Ilse"),
    "n: huge": _raw(n=10**30),
    "user: number": _raw(user=1),
    "user: object": _raw(user={"Ilse": "Varga"}),
    "metadata: string": _raw(metadata="Ilse Varga"),
    "metadata: list": _raw(metadata=["Ilse Varga"]),
    "penname: string": _raw(penname="Ilse Varga"),
    "session: number": _raw(metadata={"penname_session": 5}),
    "session: malformed": _raw(penname={"session": "Ilse Varga"}),
    "session: too long": _raw(penname={"session": "v" * 129}),
    "vector stores: string": _raw(penname={"vector_store_ids": "Ilse Varga"}),
    "vector stores: numbers": _raw(penname={"vector_store_ids": [1]}),
}


@pytest.mark.parametrize("case", REFUSED)
def test_malformed_requests_are_refused(gateway: Any, case: str) -> None:
    before = len(gateway.upstream.requests)
    with kept_log() as log:
        response = gateway.post(REFUSED[case], "" if case.startswith("session") else "bad-input")
    assert response.status_code == 400, response.text
    error = response.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["type"] == "invalid_request_error"
    assert not any(c in response.text + "".join(log.lines) for c in CANARIES)
    assert not log.serious()
    assert len(gateway.upstream.requests) == before
    assert gateway.account("bad-input") == (0, 0, 0.0)


ACCEPTED = {
    "NUL": _message(content="Tell Ilse\x00 Varga \x00."),
    "empty content": _raw(messages=[USER, {"role": "user", "content": ""}]),
    "no content": _raw(messages=[USER, {"role": "assistant", "content": None}, USER]),
    "no parts": _raw(messages=[USER, {"role": "user", "content": []}, USER]),
    "empty part": _message(
        content=[{"type": "text", "text": ""}, {"type": "text", "text": "Varga"}]
    ),
    "duplicate keys": b'{"messages": [{"role": "user", "content": "Ilse Varga"}], ' + _raw()[1:],
    "content twice": _raw().replace(b'"role"', b'"content": "Varga", "role"'),
    "50 levels": _with_extra(_nested(50)),
    "brackets": _message(content="Varga " + "[" * 900 + "]" * 900),
    "only brackets": _message(content="[" * 900 + '"Ilse Varga"' + "]" * 900),
    "one long word": _message(content="x" * 100_000 + " Ilse Varga"),
    "unknown role": _message(role="critic"),
    "all null": _raw(stream=None, n=None, user=None, metadata=None, tools=None, penname=None),
    "odd white space": _message(content="Ilse\u2028Varga\x85\u00a0Ilse\u3000Varga\ufeff"),
    "astral": _message(content="\U0001f680 Ilse Varga \U0001f680\u200d\U0001f469"),
    "empty arguments": _arguments(""),
    "broken arguments": _arguments('{"to": "Ilse Varga'),
    "arguments of brackets": _arguments("[" * 3000),
}


@pytest.mark.parametrize("body", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_odd_requests_are_sanitised(gateway: Any, body: bytes) -> None:
    before = len(gateway.upstream.requests)
    with kept_log() as log:
        response = gateway.post(body, "odd-input")
    assert response.status_code == 200, response.text
    sent = b"".join(gateway.upstream.requests[before:]).decode()
    assert len(gateway.upstream.requests) == before + 1
    seen = sent + "".join(log.lines)
    assert found_in(seen, CANARIES) == [], seen


@pytest.mark.parametrize(
    "number", ["4111111111111111", "4111111111111111.0", "4.111111111111111e15"]
)
def test_long_numbers_are_texts(gateway: Any, number: str) -> None:
    """A card number is one, whether it is written as a string, an integer or a float."""
    response = gateway.post(_with_extra(b'{"card_number": ' + number.encode() + b"}"), "numbers")
    assert response.status_code in (200, 400), response.text
    assert b"4111111111111111" not in gateway.upstream.requests[-1]
    assert b"4.111111111111111" not in gateway.upstream.requests[-1]
