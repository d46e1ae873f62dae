"""Responses when the upstream fails, the client goes away, time or budget runs out."""

import json
import time
from http.server import BaseHTTPRequestHandler
from typing import Any

import httpx
import pytest
from e2e_gateway import Gateway, kept_log, running_gateway
from e2e_upstream import delta_frame, frame, open_stream, send, send_message
from openai import APIStatusError

from gateway.events import Refused

Handler = BaseHTTPRequestHandler
TEXT = "Tell Ilse Varga that I called."
CANARIES = ("Ilse", "Varga")
HELLO = delta_frame({"content": "Hello "})
DONE = b"data: [DONE]\n\n"


def _body(stream: bool = True, **more: Any) -> dict[str, Any]:
    return {"model": "test-model", "input": TEXT, "stream": stream, **more}


def _events(response: httpx.Response) -> list[dict[str, Any]]:
    frames = response.text.strip().split("\n\n")
    return [json.loads(f.split("\ndata: ", 1)[1]) for f in frames]


def _sent(*frames: bytes) -> Any:
    return lambda handler, body: open_stream(handler, *frames)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("upstream", "told"), [(500, 502), (429, 429), (400, 400), (401, 502)])
def test_failures_before_the_answer(
    scripted: Gateway, upstream: int, told: int, stream: bool
) -> None:
    scripted.upstream.fail_with = upstream
    start = len(scripted.events)
    with pytest.raises(APIStatusError) as caught:
        scripted.client().responses.create(model="test-model", input=TEXT, stream=stream)  # type: ignore[call-overload]
    assert caught.value.status_code == told
    assert caught.value.type == "upstream_error"
    refused = [e for e in scripted.events[start:] if isinstance(e, Refused)]
    assert [e.status for e in refused] == [told]


MALFORMED: dict[str, Any] = {
    "no choices": {"choices": []},
    "choices: text": {"choices": "Ilse"},
    "no message": {"choices": [{"index": 0}]},
    "message: text": {"choices": [{"message": "Ilse Varga"}]},
    "content: list": {"choices": [{"message": {"content": [1]}}]},
    "finish: object": {"choices": [{"message": {"content": "x"}, "finish_reason": {"a": 1}}]},
    "finish: list": {"choices": [{"message": {"content": "x"}, "finish_reason": ["stop"]}]},
    "calls: text": {"choices": [{"message": {"content": "", "tool_calls": ["Ilse"]}}]},
    "no function": {"choices": [{"message": {"content": "", "tool_calls": [{"id": "c"}]}}]},
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_answers(scripted: Gateway, case: str) -> None:
    data = json.dumps(MALFORMED[case]).encode()
    scripted.upstream.script = lambda handler, body: send(handler, 200, data, "application/json")
    with kept_log() as log:
        response = scripted.post(_body(False), "malformed", "/responses")
    assert response.status_code == 502
    assert response.json()["error"]["code"] == "upstream_malformed"
    assert not any(c in response.text + "".join(log.lines) for c in CANARIES)
    assert log.serious() == []


MIDWAY = {
    "cut": (_sent(HELLO), "server_error"),
    "no JSON": (_sent(HELLO, b"data: Ilse Varga\n\n"), "server_error"),
    "an error": (_sent(HELLO, frame({"error": {"message": "Ilse"}})), "server_error"),
    "delta: text": (
        _sent(HELLO, frame({"choices": [{"index": 0, "delta": "Ilse"}]})),
        "server_error",
    ),
    "a call without a name": (
        _sent(HELLO, delta_frame({"tool_calls": [{"index": 0, "function": {}}]})),
        "server_error",
    ),
}


@pytest.mark.parametrize("case", MIDWAY)
def test_failures_in_mid_stream_are_response_failed(hasty: Gateway, case: str) -> None:
    script, code = MIDWAY[case]
    hasty.upstream.script = script
    start = len(hasty.events)
    with kept_log() as log:
        response = hasty.post(_body(), "midway", "/responses")
    events = _events(response)
    last = events[-1]
    assert response.status_code == 200
    assert (last["type"], last["response"]["status"]) == ("response.failed", "failed")
    assert last["response"]["error"]["code"] == code
    assert last["response"]["output"][0]["content"][0]["text"] == "Hello "
    assert [e["sequence_number"] for e in events] == list(range(len(events)))
    assert not any(c in response.text + "".join(log.lines) for c in CANARIES)
    assert log.serious() == []
    assert [e.status for e in hasty.events[start:] if isinstance(e, Refused)] == [502]
    found = hasty.http.get(f"{hasty.url}/responses/{last['response']['id']}")
    assert found.status_code == 404


def test_the_helper_tells_of_a_failed_stream(hasty: Gateway) -> None:
    hasty.upstream.script = _sent(HELLO)
    with hasty.client().responses.stream(model="test-model", input=TEXT) as stream:
        events = list(stream)
    assert events[-1].type == "response.failed"


def test_silence_and_trickles_end_with_the_deadline(hasty: Gateway) -> None:
    def silent(handler: Handler, body: dict[str, Any]) -> None:
        open_stream(handler, HELLO)
        time.sleep(1.2)

    def trickle(handler: Handler, body: dict[str, Any]) -> None:
        open_stream(handler)
        for _ in range(75):
            handler.wfile.write(delta_frame({"content": "a "}))
            handler.wfile.flush()
            time.sleep(0.1)

    for script in (silent, trickle):
        hasty.upstream.script = script
        last = _events(hasty.post(_body(), "midway", "/responses"))[-1]
        assert last["type"] == "response.failed"
        assert "in time" in last["response"]["error"]["message"]


def test_a_request_that_is_late_costs_nothing(
    hasty: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    detect = hasty.services.detector.detect

    def slow(texts: Any) -> Any:
        time.sleep(5.2)
        return detect(texts)

    monkeypatch.setattr(hasty.services.detector, "detect", slow)
    before = len(hasty.upstream.requests)
    body = _body(False, input="Tell Tadeo Brandt.")
    response = hasty.post(body, "late", "/responses")
    assert response.json()["error"]["code"] == "deadline_exceeded"
    monkeypatch.undo()
    assert len(hasty.upstream.requests) == before
    assert hasty.account("late")[1:] == (0, 0.0)


def test_a_client_that_goes_away_frees_the_upstream(scripted: Gateway) -> None:
    ended: list[bool] = []

    def script(handler: Handler, body: dict[str, Any]) -> None:
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
        with httpx.Client(headers={"authorization": f"Bearer {scripted.key}"}) as client:
            with client.stream("POST", f"{scripted.url}/responses", json=_body()) as response:
                first = next(response.iter_text())
        left = time.monotonic()
        while not ended and time.monotonic() - left < 4:
            time.sleep(0.05)
    assert ended, "the upstream was still written to"
    assert len(log.serious()) <= 1
    assert not any(c in "".join(log.lines) for c in CANARIES)
    id = json.loads(first.split("\n\n")[0].split("\ndata: ")[1])["response"]["id"]
    assert scripted.http.get(f"{scripted.url}/responses/{id}").status_code == 404


@pytest.mark.parametrize(
    ("finish", "reason"), [("length", "max_output_tokens"), ("content_filter", "content_filter")]
)
def test_answers_cut_short_are_incomplete(scripted: Gateway, finish: str, reason: str) -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    scripted.upstream.script = _sent(
        HELLO, delta_frame({}, finish), frame({"choices": [], "usage": usage}), DONE
    )
    client = scripted.client()
    events = list(client.responses.create(model="test-model", input=TEXT, stream=True))
    last = events[-1]
    assert last.type == "response.incomplete"
    assert last.response.incomplete_details is not None
    assert last.response.incomplete_details.reason == reason
    assert last.response.usage is not None and last.response.usage.output_tokens == 4
    assert last.response.output[0].status == "incomplete"  # type: ignore[union-attr]
    assert client.responses.retrieve(last.response.id) == last.response


def test_a_spent_budget_is_told_once(
    gateway: Gateway, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with running_gateway(
        tmp_path_factory.mktemp("poor-responses"),
        detector=gateway.services.detector,
        policy={"budget": {"session_epsilon": 0.5}},
    ) as poor:
        response = poor.post(_body(False), "poor", "/responses")
        assert (response.status_code, response.headers["x-should-retry"]) == (403, "false")
        assert response.json()["error"]["code"] == "privacy_budget_exceeded"
        assert poor.upstream.requests == []


def test_streams_of_other_shapes_pass(scripted: Gateway) -> None:
    """Several choices, a call without an id, an id told twice, an answer of nothing."""

    def script(handler: Handler, body: dict[str, Any]) -> None:
        head = {"index": 0, "function": {"name": "f", "arguments": '{"a"'}}
        rest = {"index": 0, "id": "late", "function": {"name": "f", "arguments": ": 1}"}}
        second = {"choices": [{"index": 1, "delta": {"content": "other"}}]}
        frames = [delta_frame({"tool_calls": [part]}) for part in (head, rest)]
        open_stream(handler, *frames, frame(second), delta_frame({}, "tool_calls"), DONE)

    scripted.upstream.script = script
    with scripted.client().responses.stream(model="test-model", input=TEXT) as stream:
        (call,) = stream.get_final_response().output
    assert call.arguments == '{"a": 1}' and call.call_id.startswith("call_")  # type: ignore[union-attr]

    scripted.upstream.script = lambda handler, body: send_message(handler, body, {"content": None})
    for stream_it in (False, True):
        response = scripted.post(_body(stream_it), "empty", "/responses")
        found = _events(response)[-1]["response"] if stream_it else response.json()
        assert found["output"][0]["content"][0]["text"] == ""
        assert found["status"] == "completed"


def test_an_unexpected_fault_leaves_no_traceback(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("cannot handle Ilse Varga")

    monkeypatch.setattr("gateway.api.responses.service.finished", broken)
    with kept_log() as log:
        streamed = gateway.post(_body(), "unexpected", "/responses")
        whole = gateway.post(_body(False), "unexpected", "/responses")
    last = _events(streamed)[-1]
    assert (last["type"], last["code"]) == ("error", "internal_error")
    assert whole.status_code == 500
    assert set(whole.json()["error"]) == {"message", "type", "param", "code"}
    assert len(log.serious()) == 2
    assert "cannot handle" not in streamed.text + whole.text + "".join(log.lines)
    assert not any(c in "".join(log.lines) for c in CANARIES)
