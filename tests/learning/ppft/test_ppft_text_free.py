"""No prompt token and no text can be sent by the client: all bytes are accounted for."""

import asyncio
from typing import Any

import httpx
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from ppft_tiny import DIMENSIONS, WORDS, WordEncoder
from safetensors.numpy import load

from connectors.ppft import ClientOptions, PpftClient
from privacy.ppft.noise import Noise
from privacy.ppft.prompt import Record, render
from privacy.ppft.rows import obfuscate
from privacy.ppft.tasks import Task
from privacy.ppft.wire import pack, unpack
from privacy.randomness import SeededRandomness

NOISE = Noise("laplace", 20.0)
CARD = {"name": "m", "encoder": "words", "dimensions": DIMENSIONS, "k": 2}
TEXTS = st.lists(
    st.one_of(st.sampled_from(WORDS), st.text("abcdeäöü汉0123456789", min_size=1, max_size=9)),
    min_size=1,
    max_size=12,
).map(" ".join)


def requests_for(text: str, seed: int = 0) -> list[httpx.Request]:
    """Return every request that asking once makes, as a server gets it."""
    seen: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        if request.method == "GET":
            return httpx.Response(200, json={"data": [CARD]})
        return httpx.Response(200, json={"text": "x", "finish": "stop", "tokens": 1})

    async def ask() -> None:
        async with httpx.AsyncClient(transport=httpx.MockTransport(handler)) as http:
            client = PpftClient(
                http,
                "http://server",
                "key",
                "m",
                WordEncoder,
                ClientOptions(k=2, noise=NOISE),
                SeededRandomness(seed),
            )
            await client.answer(await client.prepare(Record(Task.ANSWER, question=text)))

    asyncio.run(ask())
    return seen


@settings(max_examples=40, deadline=None)
@given(TEXTS)
def test_the_request_is_a_function_of_the_noised_rows_alone(text: str) -> None:
    listing, asking = requests_for(text)
    assert listing.content == b""
    sent = unpack(asking.content, dimensions=DIMENSIONS, k=2, most_slots=512)
    (states,) = WordEncoder().encode([render(Record(Task.ANSWER, question=text))])
    noised = obfuscate(states.states, 2, NOISE, SeededRandomness(0))
    # Rebuilt from the noised rows and public settings alone: not a byte is left over.
    public: Any = {"task": Task.ANSWER, "k": 2, "max_tokens": 128, "temperature": 0.0}
    rebuilt = type(sent)(
        rows=noised, stream=False, timestamp=sent.timestamp, nonce=sent.nonce, **public
    )
    assert pack(rebuilt) == asking.content


@settings(max_examples=40, deadline=None)
@given(TEXTS, TEXTS)
def test_two_texts_of_one_length_differ_in_rows_and_nonce_only(one: str, other: str) -> None:
    first, second = (requests_for(text) for text in (one, other))
    for a, b in zip(first, second, strict=True):
        heads = [{k: v for k, v in r.headers.items() if k != "content-length"} for r in (a, b)]
        assert heads[0] == heads[1] and a.url == b.url and a.method == b.method
    bodies = [requests[1].content for requests in (first, second)]
    parts = [load(body) for body in bodies]
    same = len(one.split()) == len(other.split())
    slots = [-(-len(text.split()) // 2) for text in (one, other)]
    assert [len(p["rows"]) for p in parts] == slots
    assert (len(bodies[0]) == len(bodies[1])) or not same
    for name in parts[0]:
        if name not in ("rows", "nonce", "timestamp"):
            assert np.array_equal(parts[0][name], parts[1][name])


@settings(max_examples=20, deadline=None)
@given(TEXTS)
def test_asking_the_same_twice_sends_other_rows(text: str) -> None:
    rows = [load(requests_for(text, seed)[1].content)["rows"] for seed in (1, 2)]
    assert rows[0].shape == rows[1].shape and not np.array_equal(rows[0], rows[1])


def test_no_word_is_found_in_the_bytes() -> None:
    text = "the patient Ilse Varga of Brunnholt Glaswerke has a fever"
    for request in requests_for(text):
        everything = request.content + str(request.url).encode() + str(request.headers).encode()
        for word in text.split():
            if len(word) > 3:
                assert word.encode() not in everything
                assert word.lower().encode("utf-16-le") not in everything
