"""The server over real HTTP with a tiny model, and the client in front of it."""

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import orjson
import pytest
import torch
from ppft_tiny import DIMENSIONS, WordEncoder
from safetensors.numpy import load, save

from connectors.base import UpstreamError
from connectors.ppft import ClientOptions, PpftClient, PpftUpstream
from connectors.router import LiteLlmParams, ModelEntry, build_router
from learning.ppft.artefact import Card
from learning.ppft.decoder import load_decoder
from learning.ppft.generate import Sampling, answers
from learning.ppft.model import Example, Lora, PpftModel
from learning.ppft.server.app import Served, create_app
from learning.ppft.server.batcher import Batcher, Job, QueueFull
from learning.ppft.server.replay import ReplayError, ReplayGuard
from privacy.ppft.noise import Noise
from privacy.ppft.prompt import Record
from privacy.ppft.tasks import Task
from privacy.ppft.wire import MEDIA_TYPE, unpack

KEY = "a-key"
OPTIONS = ClientOptions(k=2, noise=Noise("laplace", 20.0))
PATH = "/v1/ppft/models/tiny/generate"
QUESTION = Record(Task.ANSWER, question="what is the weather")


@pytest.fixture(scope="module")
def model(decoder: Path) -> PpftModel:
    torch.manual_seed(5)
    made = PpftModel.create(load_decoder(decoder), DIMENSIONS, Lora(r=2))
    with torch.no_grad():
        for parameter in made.trainable().values():
            parameter.normal_(std=0.3)
    return made


@pytest.fixture(scope="module")
def batcher(model: PpftModel) -> Iterator[Batcher]:
    made = Batcher(model, batch=4, waiting=32)
    yield made
    made.close()


@pytest.fixture
def app(model: PpftModel, batcher: Batcher) -> Any:
    card = Card("words", DIMENSIONS, 2, model.decoder.name)
    return create_app({"tiny": Served(card, batcher, most_slots=8)}, (KEY, "another"))


@pytest.fixture
async def http(app: Any) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://ppft") as client:
        yield client


@pytest.fixture
def client(http: httpx.AsyncClient) -> PpftClient:
    return PpftClient(http, "http://ppft", KEY, "tiny", WordEncoder, OPTIONS)


async def send(http: httpx.AsyncClient, body: bytes, **headers: str) -> httpx.Response:
    given = {"authorization": f"Bearer {KEY}", "content-type": MEDIA_TYPE, **headers}
    return await http.post(PATH, content=body, headers=given)


def code(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


async def test_an_answer_is_the_models_own(client: PpftClient, model: PpftModel) -> None:
    prepared = await client.prepare(QUESTION, tokens=9)
    rows = unpack(prepared.payload, dimensions=DIMENSIONS, k=2, most_slots=8).rows
    found = await client.answer(prepared)
    assert found["text"].strip() == answers(model, [Example(rows, Task.ANSWER)], 9)[0]
    assert found["finish"] in ("stop", "length") and found["tokens"] <= 9
    assert prepared.cost.slots == 2 and prepared.cost.epsilon == 80.0
    assert (await client.price(QUESTION)) == prepared.cost


async def test_a_streamed_answer_is_the_same(client: PpftClient) -> None:
    whole = await client.prepare(QUESTION, tokens=12)
    rows = load(whole.payload)
    again = dict(rows, stream=np.array([1], np.uint8), nonce=np.arange(16, dtype=np.uint8))
    body = bytes(save({name: again[name] for name in sorted(again)}))
    parts = [part async for part in client.stream(type(whole)(body, whole.cost))]
    answer = await client.answer(whole)
    assert "".join(part["text"] for part in parts) == answer["text"]
    assert [part["finish"] for part in parts[:-1]] == [None] * (len(parts) - 1)
    assert parts[-1]["finish"] == answer["finish"]


async def test_many_at_once_get_their_own_answers(client: PpftClient, model: PpftModel) -> None:
    texts = ["rain", "the sun is warm", "cold and dull", "what a great film", "flu and fever"] * 3
    prepared = [await client.prepare(Record(Task.TOPIC, question=t), 7) for t in texts]
    found = await asyncio.gather(*(client.answer(one) for one in prepared))
    for one, answer in zip(prepared, found, strict=True):
        rows = unpack(one.payload, dimensions=DIMENSIONS, k=2, most_slots=8).rows
        assert answer["text"].strip() == answers(model, [Example(rows, Task.TOPIC)], 7)[0]


async def test_nothing_is_answered_without_a_key(http: httpx.AsyncClient) -> None:
    for header in ("", "Bearer ", "Bearer wrong", f"Basic {KEY}"):
        assert code(await send(http, b"", authorization=header)) == (401, "invalid_api_key")
    assert (await http.get("/v1/ppft/models")).status_code == 401
    assert (await http.get("/healthz")).json() == {"status": "ok"}
    with pytest.raises(ValueError, match="at least one key"):
        create_app({}, ())


async def test_text_is_refused_in_every_form(client: PpftClient, http: httpx.AsyncClient) -> None:
    chat = json.dumps({"messages": [{"role": "user", "content": "hello"}]}).encode()
    assert code(await send(http, chat)) == (400, "not_tensors")
    for kind in ("application/json", "text/plain", f"{MEDIA_TYPE}; prompt=hello"):
        found = await send(http, chat, **{"content-type": kind})
        assert code(found) == (415, "unsupported_media_type")
    body = (await client.prepare(QUESTION)).payload
    found = await http.post(
        f"{PATH}?prompt=hello",
        content=body,
        headers={"authorization": f"Bearer {KEY}", "content-type": MEDIA_TYPE},
    )
    assert code(found) == (415, "unsupported_media_type")
    for path in ("/v1/chat/completions", "/docs", "/openapi.json"):
        assert code(await http.post(path, content=chat)) == (404, "not_found")


async def test_bad_requests_are_told_apart(client: PpftClient, http: httpx.AsyncClient) -> None:
    body = (await client.prepare(QUESTION)).payload
    parts = load(body)

    async def with_rows(rows: Any) -> tuple[int, str]:
        changed = {**parts, "rows": rows}
        return code(await send(http, bytes(save({n: changed[n] for n in sorted(changed)}))))

    assert code(await send(http, body[:-5])) == (400, "damaged_body")
    assert await with_rows(np.full((2, DIMENSIONS + 1), 127, np.int8)) == (400, "wrong_dimension")
    assert await with_rows(np.full((2, DIMENSIONS), np.nan, np.float16)) == (400, "not_finite")
    assert await with_rows(np.full((9, DIMENSIONS), 127, np.int8)) == (400, "too_many_slots")
    assert code(await send(http, bytes(100_000))) == (413, "body_too_large")
    unknown = await http.post(
        "/v1/ppft/models/other/generate", content=body, headers={"authorization": f"Bearer {KEY}"}
    )
    assert code(unknown) == (404, "model_not_found")


async def test_a_payload_is_accepted_once(client: PpftClient, http: httpx.AsyncClient) -> None:
    body = (await client.prepare(QUESTION, tokens=2)).payload
    assert (await send(http, body)).status_code == 200
    assert code(await send(http, body)) == (409, "replayed")
    old = load(body)
    old["timestamp"] -= 120_000
    stale = bytes(save({name: old[name] for name in sorted(old)}))
    assert code(await send(http, stale)) == (400, "stale_timestamp")


def test_nonces_are_forgotten_when_their_time_is_over() -> None:
    now = [1000.0]
    guard = ReplayGuard(window=10.0, most=2, clock=lambda: now[0])
    guard.accept(b"a", 1_009_000)  # ahead of the clock, within the window
    guard.accept(b"b", 1_000_000)
    with pytest.raises(ReplayError, match="too many"):
        guard.accept(b"c", 1_000_000)
    now[0] = 1018.9
    with pytest.raises(ReplayError, match="sent before"):
        guard.accept(b"a", 1_009_000)
    now[0] = 1021.0
    with pytest.raises(ReplayError, match="not current"):
        guard.accept(b"a", 1_009_000)
    guard.accept(b"c", 1_021_000)


async def test_a_full_queue_says_when_to_come_back(
    model: PpftModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, entered = threading.Event(), threading.Event()

    def hold(step: Any) -> None:
        entered.set()
        gate.wait(20)

    slow = Batcher(model, batch=1, waiting=1)
    example = Example(np.ones((1, DIMENSIONS), np.float32), Task.ANSWER)
    try:
        slow.submit(Job(example, Sampling(1), hold))
        assert await asyncio.to_thread(entered.wait, 20)
        slow.submit(Job(example, Sampling(1), lambda step: None))
        with pytest.raises(QueueFull):
            slow.submit(Job(example, Sampling(1), lambda step: None))
        card = Card("words", DIMENSIONS, 2, "tiny")
        full = create_app({"tiny": Served(card, slow)}, (KEY,))
        async with httpx.AsyncClient(transport=httpx.ASGITransport(full)) as other:
            monkeypatch.setattr("connectors.ppft._LONGEST_PAUSE", 0.01)
            busy = PpftClient(other, "http://ppft", KEY, "tiny", WordEncoder, OPTIONS)
            prepared = await busy.prepare(QUESTION)
            with pytest.raises(UpstreamError) as caught:
                await busy.answer(prepared)
            with pytest.raises(UpstreamError, match="429"):
                _ = [part async for part in busy.stream(prepared)]
            gate.set()
            monkeypatch.setattr("connectors.ppft._LONGEST_PAUSE", 1.0)
            # Turned away, not replayed: the very same bytes are answered once there is a place.
            assert "text" in await busy.answer(prepared)
        assert caught.value.kind == "rate_limited" and int(caught.value.retry_after or 0) >= 1
    finally:
        gate.set()
        slow.close()


async def test_a_failing_model_is_reported_and_the_server_lives(
    model: PpftModel, monkeypatch: pytest.MonkeyPatch, client: PpftClient
) -> None:
    real = model.batch
    monkeypatch.setattr(model, "batch", lambda *a, **k: 1 / 0)
    with pytest.raises(UpstreamError, match="503"):
        await client.answer(await client.prepare(QUESTION))
    with pytest.raises(UpstreamError, match="failed"):
        async for _ in client.stream(await client.prepare(QUESTION, stream=True)):
            pass
    monkeypatch.setattr(model, "batch", real)
    assert "text" in await client.answer(await client.prepare(QUESTION, tokens=2))


def test_an_answer_nobody_reads_stops(model: PpftModel) -> None:
    batcher = Batcher(model, batch=1)
    steps: list[Any] = []
    done = threading.Event()
    example = Example(np.ones((1, DIMENSIONS), np.float32), Task.ANSWER)

    def first(step: Any) -> None:
        steps.append(step)
        job.gone.set()
        if step.finish:
            done.set()

    job = Job(example, Sampling(400), first)
    batcher.submit(job)
    assert done.wait(20)
    batcher.close()
    assert steps[-1].finish in ("cancelled", "stop") and len(steps) <= 3


async def test_the_server_never_chooses_the_noise(http: httpx.AsyncClient) -> None:
    """A server that announces another ε, encoder or window changes nothing, or is refused."""
    seen: list[bytes] = []
    described = {
        "name": "tiny",
        "encoder": "words",
        "dimensions": DIMENSIONS,
        "k": 2,
        "epsilon": 1e9,
    }

    def handler(request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            return httpx.Response(200, json={"data": [described]})
        seen.append(request.content)
        return httpx.Response(200, json={"text": "x", "finish": "stop", "tokens": 1})

    async with httpx.AsyncClient(transport=httpx.MockTransport(handler)) as other:
        client = PpftClient(other, "http://x", KEY, "tiny", WordEncoder, OPTIONS)
        await client.answer(await client.prepare(QUESTION))
        rows = unpack(seen[0], dimensions=DIMENSIONS, k=2, most_slots=8).rows
        (states,) = WordEncoder().encode([QUESTION.question])
        clean = states.states.reshape(2, 2, -1).mean(axis=1)
        cosine = (rows * clean).sum(axis=1) / np.linalg.norm(clean, axis=1)
        assert (cosine < 0.99).all()
        for change in ({"k": 1}, {"encoder": "other"}, {"dimensions": 4}, {"name": "else"}):
            described.update(
                {"k": 2, "encoder": "words", "dimensions": 16, "name": "tiny", **change}
            )
            picky = PpftClient(other, "http://x", KEY, "tiny", WordEncoder, OPTIONS)
            with pytest.raises(UpstreamError, match="rejected"):
                await picky.answer(await picky.prepare(QUESTION))
        assert len(seen) == 1


CHAT = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "the patient is cold"},
        {"role": "user", "content": [{"type": "text", "text": "what is it"}]},
    ],
    "max_tokens": 6,
}


async def test_a_chat_request_comes_back_in_openais_shapes(client: PpftClient) -> None:
    upstream = PpftUpstream(client)
    assert upstream.sees_text is False
    whole = await upstream.complete(orjson.dumps(CHAT))
    assert whole["object"] == "chat.completion" and whole["model"] == "tiny"
    choice = whole["choices"][0]
    assert choice["message"]["role"] == "assistant" and choice["finish_reason"] in (
        "stop",
        "length",
    )
    # Four words of context and three of question at two a row: four rows.
    assert whole["usage"]["prompt_tokens"] == 4
    assert whole["penname"]["ppft"] == {
        "slots": 4,
        "epsilon_per_slot": 40.0,
        "epsilon": 160.0,
        "delta": 0.0,
    }
    charged = await upstream.price(orjson.dumps(CHAT))
    assert (charged.epsilon, charged.metric) == (160.0, "euclidean")
    streamed = {**CHAT, "stream": True, "stream_options": {"include_usage": True}}
    chunks = [chunk async for chunk in upstream.stream(orjson.dumps(streamed))]
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    assert chunks[-2]["choices"][0]["finish_reason"] in ("stop", "length")
    assert chunks[-1]["usage"]["prompt_tokens"] == 4 and chunks[-1]["choices"] == []
    assert len({chunk["id"] for chunk in chunks}) == 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"tools": [{"type": "function"}]}, "can not honour tools"),
        ({"n": 2, "stop": ["x"]}, "can not honour stop, n"),
        ({"max_tokens": 100_000}, "max_tokens from 1 to 1024"),
        ({"messages": [{"role": "system", "content": "x"}]}, "user message"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "text parts only"),
        ({"messages": [{"role": "user", "content": ""}]}, "1 to 1024 tokens"),
        ({"messages": [{"role": "user", "content": "word " * 2000}]}, "1 to 1024 tokens"),
    ],
)
async def test_what_cannot_be_honoured_is_refused_with_the_reason(
    client: PpftClient, change: Any, reason: str
) -> None:
    with pytest.raises(UpstreamError, match=f"rejected.*{reason}"):
        await PpftUpstream(client).complete(orjson.dumps({**CHAT, **change}))


async def test_the_router_builds_the_client_from_the_model_list() -> None:
    def entry(**params: Any) -> ModelEntry:
        given = {"model": "ppft/tiny", "api_base": "http://ppft", "api_key": KEY, **params}
        return ModelEntry(model_name="ppft/tiny", litellm_params=LiteLlmParams(**given))

    async with httpx.AsyncClient() as http:
        router = build_router([entry(k=8, epsilon=150.0, task="topic")], http, timeout=1.0)
        model = router.get("ppft/tiny")
        assert model is not None and model.provider == "ppft" and not model.upstream.sees_text
        for params, word in (
            ({"epsilon": 0}, "epsilon"),
            ({"k": 0}, "k"),
            ({"task": "poem"}, "unknown task"),
            ({"epsilom": 3}, "epsilom"),
            ({"mechanism": "none"}, "mechanism"),
            ({"api_base": None}, "api_base"),
            ({"model": "ppft/"}, "ppft/NAME"),
        ):
            with pytest.raises(ValueError, match=word):
                build_router([entry(**params)], http, timeout=1.0)


def test_the_clock_of_the_payload_is_this_clock(client: PpftClient) -> None:
    body = asyncio.run(client.prepare(QUESTION)).payload
    sent = unpack(body, dimensions=DIMENSIONS, k=2, most_slots=8)
    assert abs(sent.timestamp / 1000 - time.time()) < 30
