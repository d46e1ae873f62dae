"""An upstream that fails in every way: before its first byte, in the middle, with garbage."""

import json
import socket
import struct
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import httpx
import pytest
from e2e_gateway import Gateway, kept_log, running_gateway
from e2e_upstream import delta_frame, frame, open_stream, send

TEXT = "Tell Ilse Varga that I called."
CANARIES = ("Ilse", "Varga")
Handler = BaseHTTPRequestHandler
JSON = "application/json"
SSE = "text/event-stream"


@pytest.fixture(scope="module")
def patient(gateway: Gateway, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway that waits a second for a byte, and as long as it takes for everything else."""
    with running_gateway(
        tmp_path_factory.mktemp("patient"),
        detector=gateway.services.detector,
        upstream_timeout=0.8,
    ) as running:
        yield running


def _cut(handler: Handler) -> None:
    """Drop the connection with a reset."""
    handler.close_connection = True
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()


def _late(handler: Handler, body: dict[str, Any]) -> None:
    time.sleep(1.2)
    _cut(handler)


def _sent(*frames: bytes) -> Callable[[Handler, dict[str, Any]], None]:
    def script(handler: Handler, body: dict[str, Any]) -> None:
        open_stream(handler, *frames)

    return script


def _whole(status: int, data: bytes, kind: str = JSON) -> Callable[[Handler, dict[str, Any]], None]:
    return lambda handler, body: send(handler, status, data, kind)


def _quoting(handler: Handler, body: dict[str, Any]) -> None:
    """An error that quotes what was sent, and what the user wrote."""
    said = {"error": {"message": f"bad: {body['messages'][-1]['content']} or Ilse Varga"}}
    send(handler, 400, json.dumps(said).encode(), JSON)


def _reset(handler: Handler, body: dict[str, Any]) -> None:
    _cut(handler)


def _half(handler: Handler, body: dict[str, Any]) -> None:
    handler.send_response(200)
    handler.send_header("content-type", JSON)
    handler.send_header("content-length", "5000")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [{"message": {"content": "Ilse')
    handler.wfile.flush()
    _cut(handler)


def _trickle(handler: Handler, body: dict[str, Any]) -> None:
    """Each byte is in time, the whole never."""
    open_stream(handler)
    for _ in range(75):
        handler.wfile.write(delta_frame({"content": "a "}))
        handler.wfile.flush()
        time.sleep(0.1)


EARLY = {
    "slow": (_late, 504, "upstream_timeout"),
    "reset": (_reset, 502, "upstream_failed"),
    "half an answer": (_half, 502, "upstream_failed"),
    "quotes": (_quoting, 400, "upstream_rejected"),
    "401": (_whole(401, b"{}"), 502, "upstream_rejected"),
    "redirect": (_whole(302, b""), 502, "upstream_failed"),
    "503": (_whole(503, b"Ilse Varga", "text/html"), 502, "upstream_failed"),
    "HTML": (_whole(200, b"<html>Ilse Varga</html>", "text/html"), 502, "upstream_malformed"),
    "nothing": (_whole(200, b""), 502, "upstream_malformed"),
    "a list": (_whole(200, b'["Ilse Varga"]'), 502, "upstream_malformed"),
    "no choices": (_whole(200, b'{"object": "chat.completion"}'), 502, "upstream_malformed"),
    "choices: text": (_whole(200, b'{"choices": "Ilse Varga"}'), 502, "upstream_malformed"),
    "choices: texts": (_whole(200, b'{"choices": ["Ilse Varga"]}'), 502, "upstream_malformed"),
    "invalid UTF-8": (_whole(200, b'{"choices": ["\xff"]}'), 502, "upstream_malformed"),
    "an error with 200": (_whole(200, b'{"error": {"message": "Ilse"}}'), 502, "upstream_failed"),
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("case", EARLY)
def test_failures_before_the_answer(patient: Gateway, case: str, stream: bool) -> None:
    script, status, code = EARLY[case]
    patient.upstream.script = script
    before = patient.account("early")
    body = {"model": "test-model", "messages": [{"role": "user", "content": TEXT}]}
    with kept_log() as log:
        response = patient.post({**body, "stream": stream}, "early")
    error = response.json()["error"]
    assert response.status_code == status, response.text
    # A stream that is JSON instead, or breaks off, is malformed whatever it says.
    assert error["code"] in (code, "upstream_malformed" if stream else code)
    assert error["type"] == "upstream_error"
    assert not any(c in response.text + "".join(log.lines) for c in CANARIES)
    assert log.serious() == []
    after = patient.account("early")
    assert before[0] == 0 or after == before  # charged once, by the first of these requests


HELLO = delta_frame({"content": "Hello "})
MIDWAY = {
    "cut": (_sent(HELLO), "upstream_malformed"),
    "no JSON": (_sent(HELLO, b"data: Ilse Varga\n\n"), "upstream_malformed"),
    "half JSON": (_sent(HELLO, b'data: {"choices": [\n\n'), "upstream_malformed"),
    "a list": (_sent(HELLO, b'data: ["Ilse"]\n\n'), "upstream_malformed"),
    "an error": (_sent(HELLO, frame({"error": {"message": "Ilse"}})), "upstream_failed"),
    "another shape": (
        _sent(HELLO, b"event: message_start\n" + frame({"type": "message_start", "text": "Ilse"})),
        "upstream_malformed",
    ),
    "bytes event": (_sent(HELLO, b"data: b'Ilse Varga'\n\n"), "upstream_malformed"),
    "choices: text": (_sent(HELLO, frame({"choices": "Ilse"})), "upstream_malformed"),
    "choice: text": (_sent(HELLO, frame({"choices": ["Ilse"]})), "upstream_malformed"),
    "index: text": (
        _sent(HELLO, frame({"choices": [{"index": "Ilse", "delta": {}}]})),
        "upstream_malformed",
    ),
    "delta: text": (
        _sent(HELLO, frame({"choices": [{"index": 0, "delta": "Ilse"}]})),
        "upstream_malformed",
    ),
    "tool index: list": (
        _sent(HELLO, delta_frame({"tool_calls": [{"index": [1], "function": {"arguments": "x"}}]})),
        "upstream_malformed",
    ),
    "binary": (_sent(HELLO, b"data: \xff\xfe\x00\n\n"), "upstream_malformed"),
}


@pytest.mark.parametrize("case", MIDWAY)
def test_B56_failures_in_mid_stream(hasty: Gateway, case: str) -> None:
    script, code = MIDWAY[case]
    hasty.upstream.script = script
    with kept_log() as log:
        response = hasty.post(_streamed(), "midway")
    frames = response.text.strip().split("\n\n")
    assert response.status_code == 200
    assert "Hello" in frames[0]
    assert json.loads(frames[-1].removeprefix("data: "))["error"]["code"] == code
    assert "[DONE]" not in response.text
    assert not any(c in response.text + "".join(log.lines) for c in CANARIES)
    assert log.serious() == []


def _streamed() -> dict[str, Any]:
    return {
        "model": "test-model",
        "stream": True,
        "messages": [{"role": "user", "content": TEXT}],
    }


def test_silence_in_mid_stream_is_a_timeout(hasty: Gateway) -> None:
    def script(handler: Handler, body: dict[str, Any]) -> None:
        open_stream(handler, HELLO)
        time.sleep(1.2)

    hasty.upstream.script = script
    response = hasty.post(_streamed(), "midway")
    assert "Hello" in response.text
    assert "upstream_timeout" in response.text.split("\n\n")[-2]


def test_a_stream_may_not_outlast_the_request(hasty: Gateway) -> None:
    hasty.upstream.script = _trickle
    response = hasty.post(_streamed(), "midway")
    assert "upstream_timeout" in response.text.split("\n\n")[-2]
    assert 0 < response.text.count('"a "') < 75


def test_unusual_but_valid_streams_pass(hasty: Gateway) -> None:
    """Comments, CRLF, unknown fields, events in one packet, line separators inside a text."""
    raw = json.dumps(
        {"choices": [{"index": 0, "delta": {"content": "a\u2028b\x85c"}}], "extra": {"x": 1}},
        ensure_ascii=False,
    ).encode()
    usage = frame({"choices": [], "usage": {"total_tokens": 2}})
    hasty.upstream.script = _sent(
        b": keep-alive\r\n\r\n",
        b"id: 7\r\nretry: 10\r\ndata: " + raw + b"\r\n\r\n",
        delta_frame({}, "stop") + usage + b"data: [DONE]\n\n",
    )
    response = hasty.post(_streamed(), "midway")
    frames = [json.loads(f.removeprefix("data: ")) for f in response.text.split("\n\n")[:-2]]
    text = "".join(c["delta"].get("content", "") for f in frames for c in f["choices"])
    assert text == "a\u2028b\x85c"
    assert frames[-1]["usage"] == {"total_tokens": 2}
    assert response.text.endswith("data: [DONE]\n\n")


def test_a_huge_frame_passes(hasty: Gateway) -> None:
    big = "word " * 200_000
    hasty.upstream.script = _sent(
        delta_frame({"content": big}), delta_frame({}, "stop"), b"data: [DONE]\n\n"
    )
    response = hasty.post(_streamed(), "midway")
    assert big in response.text


def test_an_unreachable_upstream(hasty: Gateway) -> None:
    model = hasty.pipeline.router.get("test-model")
    assert model is not None
    url = model.upstream._url  # type: ignore[attr-defined]
    model.upstream._url = "http://127.0.0.1:1/v1/chat/completions"  # type: ignore[attr-defined]
    try:
        for stream in (False, True):
            response = hasty.post({**_streamed(), "stream": stream}, "midway")
            assert (response.status_code, response.json()["error"]["code"]) == (
                502,
                "upstream_unreachable",
            )
    finally:
        model.upstream._url = url  # type: ignore[attr-defined]


@pytest.mark.parametrize("when", ["before the first byte", "in mid-stream"])
def test_a_client_that_goes_away_frees_the_upstream(scripted: Gateway, when: str) -> None:
    ended: list[bool] = []

    def script(handler: Handler, body: dict[str, Any]) -> None:
        if when == "before the first byte":
            time.sleep(0.3)
        try:
            open_stream(handler)
            for _ in range(100):
                handler.wfile.write(delta_frame({"content": "Ilse Varga "}))
                handler.wfile.flush()
                time.sleep(0.05)
        except OSError:
            ended.append(True)

    scripted.upstream.script = script
    with kept_log() as log:
        client = httpx.Client(
            headers={"authorization": f"Bearer {scripted.key}"}, timeout=httpx.Timeout(5, read=0.15)
        )
        try:
            with client.stream("POST", f"{scripted.url}/chat/completions", json=_streamed()) as r:
                next(r.iter_bytes())
        except httpx.ReadTimeout:
            assert when == "before the first byte"
        client.close()
        left = time.monotonic()
        while not ended and time.monotonic() - left < 4:
            time.sleep(0.05)
    assert ended, "the upstream was still written to"
    assert len(log.serious()) <= 1
    assert not any(c in "".join(log.lines) for c in CANARIES)
    scripted.upstream.script = None
    assert scripted.ask("Tell Ilse Varga.", "after-disconnect", True) == (
        "You wrote: Tell Ilse Varga. Thank you."
    )


def test_a_client_that_goes_away_while_sending(gateway: Gateway) -> None:
    before = len(gateway.upstream.requests)
    host, port = gateway.url.removeprefix("http://").removesuffix("/v1").split(":")
    with kept_log() as log, socket.create_connection((host, int(port))) as sock:
        sock.sendall(
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer "
            + gateway.key.encode()
            + b'\r\ncontent-length: 900\r\n\r\n{"messages": [{"content": "Ilse Varga'
        )
        time.sleep(0.1)
    time.sleep(0.2)
    assert len(gateway.upstream.requests) == before
    assert log.serious() == []
    assert not any(c in "".join(log.lines) for c in CANARIES)


def test_an_unexpected_fault_leaves_no_traceback(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("cannot handle Ilse Varga")

    monkeypatch.setattr("gateway.api.chat.routes.complete", broken)
    with kept_log() as log:
        response = gateway.post({**_streamed(), "stream": False}, "unexpected")
    assert response.status_code == 500
    assert set(response.json()["error"]) == {"message", "type", "param", "code"}
    assert response.headers["x-request-id"]
    assert len(log.serious()) == 1
    assert not any(c in response.text + "".join(log.lines) for c in CANARIES)
