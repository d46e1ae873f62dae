"""A recording upstream: a real HTTP server that answers by quoting what it was sent."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

from loopback import QuietHandler, send, serving


class Recording:
    """Every request that reached the upstream, as bytes: head and body.

    Attributes:
        script: Answers instead of the quotation: it gets the handler, to write to, and the body.
    """

    def __init__(self) -> None:
        self.requests: list[bytes] = []
        self.bodies: list[dict[str, Any]] = []
        self.fail_with = 0
        self.script: Script | None = None
        self.url = ""


Script = Callable[[BaseHTTPRequestHandler, dict[str, Any]], None]


def open_stream(handler: BaseHTTPRequestHandler, *frames: bytes) -> None:
    """Begin an event stream that ends with the connection."""
    handler.close_connection = True
    handler.send_response(200)
    handler.send_header("content-type", "text/event-stream")
    handler.end_headers()
    for frame in frames:
        handler.wfile.write(frame)
    handler.wfile.flush()


def frame(value: Any) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def delta_frame(delta: dict[str, Any], finish: str | None = None) -> bytes:
    """A frame with one choice."""
    return frame({**_BASE, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


def send_message(
    handler: BaseHTTPRequestHandler, body: dict[str, Any], message: dict[str, Any], cut: int = 3
) -> None:
    """Answer with ``message``: whole, or in deltas with ``cut`` characters of each text."""
    finish = "tool_calls" if message.get("tool_calls") else "stop"
    if not body.get("stream"):
        send(handler, 200, json.dumps(_completion(message, finish)).encode(), "application/json")
        return
    frames = [delta_frame({"role": "assistant", "content": None})]
    content = message.get("content") or ""
    frames += [delta_frame({"content": content[i : i + cut]}) for i in range(0, len(content), cut)]
    for index, call in enumerate(message.get("tool_calls") or ()):
        head = {**call, "index": index, "function": {**call["function"], "arguments": ""}}
        frames.append(delta_frame({"tool_calls": [head]}))
        text = call["function"]["arguments"]
        frames += [
            delta_frame({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
            for piece in (text[i : i + cut] for i in range(0, len(text), cut))
        ]
    frames += [delta_frame({}, finish), b"data: [DONE]\n\n"]
    send(handler, 200, b"".join(frames), "text/event-stream")


_BASE = {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}


def _completion(message: dict[str, Any], finish: str) -> dict[str, Any]:
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": None, "refusal": None, **message},
        "finish_reason": finish,
        "logprobs": None,
    }
    return {
        "id": "c-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [choice],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


def _answer(body: dict[str, Any]) -> str:
    content = body["messages"][-1].get("content")
    return f"You wrote: {content} Thank you."


@contextmanager
def recording_upstream() -> Iterator[Recording]:
    seen = Recording()

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            raw = self.body()
            seen.requests.append(f"{self.path}\n{self.headers}\n".encode() + raw)
            body = json.loads(raw)
            seen.bodies.append(body)
            if seen.script is not None:
                seen.script(self, body)
            elif seen.fail_with:
                send(self, seen.fail_with, b'{"error": {"message": "no"}}', "application/json")
            else:
                send_message(self, body, {"content": _answer(body)})

    with serving(Handler) as url:
        seen.url = f"{url}/v1"
        yield seen
