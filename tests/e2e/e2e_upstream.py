"""A recording upstream: a real HTTP server that answers by quoting what it was sent."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Recording:
    """Every request that reached the upstream, as bytes: head and body."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []
        self.bodies: list[dict[str, Any]] = []
        self.fail_with = 0
        self.url = ""


def _answer(body: dict[str, Any]) -> str:
    content = body["messages"][-1]["content"]
    return f"You wrote: {content} Thank you."


def _chunks(text: str) -> Iterator[dict[str, Any]]:
    base = {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    yield {**base, "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}
    for start in range(0, len(text), 3):
        delta = {"content": text[start : start + 3]}
        yield {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


@contextmanager
def recording_upstream() -> Iterator[Recording]:
    seen = Recording()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            """Keep the test's output clean."""

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["content-length"]))
            seen.requests.append(f"{self.path}\n{self.headers}\n".encode() + raw)
            body = json.loads(raw)
            seen.bodies.append(body)
            if seen.fail_with:
                self._send(seen.fail_with, b'{"error": {"message": "no"}}', "application/json")
                return
            text = _answer(body)
            if body.get("stream"):
                frames = b"".join(
                    b"data: " + json.dumps(c).encode() + b"\n\n" for c in _chunks(text)
                )
                self._send(200, frames + b"data: [DONE]\n\n", "text/event-stream")
                return
            message = {"role": "assistant", "content": text, "refusal": None}
            choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
            whole = {
                "id": "c-1",
                "object": "chat.completion",
                "created": 1,
                "model": "m",
                "choices": [choice],
                "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
            }
            self._send(200, json.dumps(whole).encode(), "application/json")

        def _send(self, status: int, data: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    seen.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
