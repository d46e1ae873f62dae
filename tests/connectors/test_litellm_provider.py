"""The litellm adapter: in a process of its own, since the import is heavy and the rest never does it."""

import importlib.metadata
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from loopback import QuietHandler, send, serving

from connectors.router import ConfigurationError, LiteLlmParams, ModelEntry, build_router

SCRIPT = """
import asyncio, json, socket, sys
allowed = ("127.0.0.1", "::1", "localhost")
calls = []
real = socket.getaddrinfo
def watched(host, *rest, **named):
    calls.append(host)
    if host not in allowed:
        raise OSError("no network in this test")
    return real(host, *rest, **named)
socket.getaddrinfo = watched
from connectors.base import UpstreamError
from connectors.litellm_provider import LiteLlm

async def main(base):
    model = LiteLlm({"model": "hosted_vllm/m", "api_base": base, "api_key": "k"}, timeout=20)
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hello"}],
                       "temperature": 0.5}).encode()
    done = await model.complete(body)
    stream = [c async for c in model.stream(body)]
    failure = None
    bad = LiteLlm({"model": "hosted_vllm/fail", "api_base": base, "api_key": "k"}, timeout=20)
    try:
        await bad.complete(body)
    except UpstreamError as error:
        failure = [error.kind, error.status, str(error)]
    import litellm
    print(json.dumps({
        "content": done["choices"][0]["message"]["content"], "object": done["object"],
        "streamed": "".join(c["choices"][0]["delta"].get("content") or "" for c in stream if c["choices"]),
        "failure": failure, "telemetry": litellm.telemetry,
        "hosts": sorted({h for h in calls if h not in allowed})}))

asyncio.run(main(sys.argv[1]))
"""


@contextmanager
def provider() -> Iterator[tuple[str, list[bytes]]]:
    seen: list[bytes] = []

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            raw = self.body()
            seen.append(raw)
            body = json.loads(raw)
            base = {"id": "c", "created": 1, "model": "m"}
            if body["model"] == "fail":
                send(self, 429, b'{"error": {"message": "slow down, Hello"}}', "application/json")
            elif body.get("stream"):
                deltas: list[dict[str, Any]] = [{"role": "assistant", "content": "Good "}]
                deltas += [{"content": "day"}, {}]
                frames = b""
                for delta in deltas:
                    choice = {
                        "index": 0,
                        "delta": delta,
                        "finish_reason": None if delta else "stop",
                    }
                    chunk = {**base, "object": "chat.completion.chunk", "choices": [choice]}
                    frames += b"data: " + json.dumps(chunk).encode() + b"\n\n"
                send(self, 200, frames + b"data: [DONE]\n\n", "text/event-stream")
            else:
                message = {"role": "assistant", "content": "Good day"}
                choice = {"index": 0, "message": message, "finish_reason": "stop"}
                usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
                whole = {**base, "object": "chat.completion", "choices": [choice], "usage": usage}
                send(self, 200, json.dumps(whole).encode(), "application/json")

    with serving(Handler) as url:
        yield f"{url}/v1", seen


@pytest.mark.timeout(240)
def test_a_provider_is_reached_through_litellm_and_nobody_else() -> None:
    with provider() as (url, seen):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", SCRIPT, url],
            capture_output=True,
            text=True,
            timeout=220,
        )
    assert done.returncode == 0, done.stderr[-2000:]
    result = json.loads(done.stdout.strip().splitlines()[-1])
    assert result["content"] == result["streamed"] == "Good day"
    assert result["object"] == "chat.completion"
    assert result["failure"] == ["rate_limited", 429, "rate_limited (HTTP 429)"]
    assert result["telemetry"] is False
    assert result["hosts"] == []
    bodies = [json.loads(raw) for raw in seen]
    assert [b["model"] for b in bodies] == ["m", "m", "fail"]
    assert all(b["messages"] == [{"role": "user", "content": "Hello"}] for b in bodies)
    assert bodies[0]["temperature"] == 0.5
    assert set(bodies[0]) <= {"model", "messages", "temperature", "stream"}


@pytest.mark.parametrize("installed", ["1.82.7", "1.82.8", "1.107.3", None])
async def test_a_missing_or_bad_litellm_is_refused_at_start(
    installed: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(_name: str) -> str:
        if installed is None:
            raise importlib.metadata.PackageNotFoundError
        return installed

    monkeypatch.setattr("connectors.litellm_provider.version", version)
    params = LiteLlmParams(model="anthropic/x", api_base=None, api_key="k")
    entry = ModelEntry(model_name="claude", litellm_params=params)
    async with httpx.AsyncClient() as client:
        with pytest.raises(ConfigurationError, match=r"-e '\.\[litellm\]'"):
            build_router([entry], client, timeout=5)
