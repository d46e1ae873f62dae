"""The local model answers, streams and refuses, without blocking the event loop."""

import asyncio
from collections.abc import AsyncIterator

import orjson
import pytest

from connectors.base import UpstreamError
from connectors.local import LocalModel, latest_turn
from connectors.weights import chat_model_gguf

BODY = {
    "model": "local",
    "messages": [
        {
            "role": "user",
            "content": "Context: The payroll is run by Marta Novak.\n\nWho runs the payroll?",
        }
    ],
    "max_tokens": 24,
}


@pytest.fixture
async def model() -> AsyncIterator[LocalModel]:
    model = LocalModel(chat_model_gguf, "local")
    yield model
    await model.close()


async def test_it_copies_the_name_from_the_context(model: LocalModel) -> None:
    answer = await model.complete(orjson.dumps(BODY))
    assert "Marta Novak" in answer["choices"][0]["message"]["content"]
    assert answer["model"] == "local"


@pytest.mark.parametrize("asked", [{}, {"max_tokens": None}])
async def test_an_answer_without_a_limit_ends(
    model: LocalModel, monkeypatch: pytest.MonkeyPatch, asked: dict[str, None]
) -> None:
    monkeypatch.setattr("connectors.local._MOST_TOKENS", 3)
    body = {"messages": [{"role": "user", "content": "Count from one to a hundred."}]}
    answer = await model.complete(orjson.dumps({**body, **asked}))
    assert answer["usage"]["completion_tokens"] == 3
    assert answer["choices"][0]["finish_reason"] == "length"
    answer = await model.complete(orjson.dumps({**body, "max_completion_tokens": 5}))
    assert answer["usage"]["completion_tokens"] == 5


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"messages": [{"role": "user", "content": "Varga " * 3000}]}, "at most 4,096 tokens"),
        ({"n": 3}, "n above 2"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "x"}}}},
            "schema that is none",
        ),
    ],
)
async def test_a_refusal_is_the_clients_to_mend_and_says_how(
    model: LocalModel, more: dict[str, object], told: str
) -> None:
    body = orjson.dumps({**BODY, **more})
    with pytest.raises(UpstreamError, match=told) as whole:
        await model.complete(body)
    with pytest.raises(UpstreamError, match=told) as streamed:
        async for _ in model.stream(body):
            pass
    for error in (whole.value, streamed.value):
        assert (error.kind, error.status) == ("rejected", 400)
        assert "Varga" not in str(error)


async def test_the_loop_runs_while_it_generates(model: LocalModel) -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    ticker = asyncio.ensure_future(tick())
    text = ""
    async for chunk in model.stream(orjson.dumps({**BODY, "stream": True})):
        text += chunk["choices"][0]["delta"].get("content") or ""
    ticker.cancel()
    assert "Marta Novak" in text
    assert ticks > 50


async def test_an_abandoned_stream_stops(model: LocalModel) -> None:
    stream = model.stream(orjson.dumps({**BODY, "stream": True, "max_tokens": 500}))
    assert (await anext(stream))["object"] == "chat.completion.chunk"
    await stream.aclose()
    answer = await model.complete(orjson.dumps(BODY))
    assert answer["choices"][0]["finish_reason"] in ("stop", "length")


def test_only_the_latest_turn_is_shown() -> None:
    system = {"role": "system", "content": "s"}
    old = [{"role": "user", "content": "1"}, {"role": "assistant", "content": "2"}]
    new = {"role": "user", "content": "3"}
    assert latest_turn([system, *old, new]) == [system, new]
    assert latest_turn([*old, new]) == [{"role": "system", "content": ""}, new]
