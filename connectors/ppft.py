"""Client of the embedding-only backend: text stays in this process, noised rows leave.

Everything that decides what leaves is configured on this side: the encoder, the window k and the noise.
The server's description of its model is compared with that, never obeyed: a server that could
name ε could switch the noise off.
"""

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from typing import Any, Final

import httpx
import orjson
from httpx_sse import EventSource

from connectors.base import UpstreamError
from connectors.openai_compatible import check, json_object, translated
from privacy.ppft.accounting import Cost, charge, cost
from privacy.ppft.encoder import TokenEncoder, TokenStates
from privacy.ppft.noise import Noise
from privacy.ppft.prompt import Record, conversation, render
from privacy.ppft.rows import obfuscate, slots
from privacy.ppft.tasks import Task
from privacy.ppft.wire import MEDIA_TYPE, NONCE_BYTES, Payload, RowType, pack
from privacy.randomness import Randomness, SystemRandomness

_TRIES: Final = 3
_LONGEST_PAUSE: Final = 10.0
_LONGEST_TOKEN: Final = 16  # characters on an average, far above any text's


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """What this side fixes.

    Attributes:
        k: Pooling window; must be the model's.
        noise: Mechanism and ε.
        task: What requests ask for.
        row_type: Type of the rows on the wire.
        most_slots: Longer prompts are refused before anything leaves.
    """

    k: int = 4
    noise: Noise = Noise()
    task: Task = Task.ANSWER
    row_type: RowType = "int8"
    most_slots: int = 512


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request ready to leave: its bytes and what they cost."""

    payload: bytes = field(repr=False)
    cost: Cost


class PpftClient:
    """Encodes, noises, sends.

    Args:
        client: Shared HTTP client.
        base: The server's address, without a path.
        key: Its bearer key.
        model: Name of the model there.
        encoder: Returns the encoder; called at the first use, in a thread.
        options: What this side fixes.
        random: Source of noise; the operating system's unless a test says otherwise.
    """

    def __init__(
        self,
        client: httpx.AsyncClient,
        base: str,
        key: str,
        model: str,
        encoder: Callable[[], TokenEncoder],
        options: ClientOptions | None = None,
        random: Randomness | None = None,
    ) -> None:
        self.options = options or ClientOptions()
        self.model = model
        self._client = client
        self._base = base.rstrip("/")
        self._headers = {"authorization": f"Bearer {key}"}
        self._make = encoder
        self._random = random or SystemRandomness()
        self._encoder: TokenEncoder | None = None
        self._lock = asyncio.Lock()
        self._checked = False

    async def price(self, record: Record) -> Cost:
        """Return what sending a record will cost; draws and sends nothing.

        Raises:
            UpstreamError: It is empty or too long.
        """
        states = await self._states(record)
        return cost(slots(len(states.states), self.options.k), states.states.shape[1], self._noise)

    async def prepare(
        self, record: Record, tokens: int = 128, temperature: float = 0.0, stream: bool = False
    ) -> Prepared:
        """Encode and noise a record.

        Raises:
            UpstreamError: It is empty or too long.
        """
        states = (await self._states(record)).states
        rows = obfuscate(states, self.options.k, self._noise, self._random)
        payload = Payload(
            rows,
            record.task,
            self.options.k,
            tokens,
            temperature,
            stream,
            int(time.time() * 1000),
            secrets.token_bytes(NONCE_BYTES),
        )
        body = pack(payload, self.options.row_type)
        return Prepared(body, cost(len(rows), rows.shape[1], self._noise))

    async def answer(self, prepared: Prepared) -> dict[str, Any]:
        """Send; returns ``text``, ``finish`` and ``tokens``.  Raises UpstreamError.

        A busy server is asked again with the same bytes: noising anew would cost ε anew.
        """
        with translated():
            await self.check_model()
            for left in reversed(range(_TRIES)):
                response = await self._client.post(
                    self._url, content=prepared.payload, headers=self._sending
                )
                if response.status_code != 429 or not left:
                    break
                await asyncio.sleep(_pause(response))
            check(response)
            return _part(response.content)

    async def stream(self, prepared: Prepared) -> AsyncGenerator[dict[str, Any], None]:
        """Send; yields parts with ``text``, ``finish`` and ``tokens``.  Raises UpstreamError."""
        with translated():
            await self.check_model()
            for left in reversed(range(_TRIES)):
                async with self._client.stream(
                    "POST", self._url, content=prepared.payload, headers=self._sending
                ) as response:
                    if response.status_code == 429 and left:
                        await asyncio.sleep(_pause(response))
                        continue
                    check(response)
                    async for event in EventSource(response).aiter_sse():
                        if event.data.startswith("[DONE]"):
                            return
                        yield _part(event.data)
                    raise UpstreamError("malformed")

    async def check_model(self) -> None:
        """Compare the server's model with this side's encoder and window, once.

        Raises:
            UpstreamError: There is no such model, or it was made for other rows.
        """
        if self._checked:
            return
        with translated():
            response = await self._client.get(f"{self._base}/v1/ppft/models", headers=self._headers)
            check(response)
            listed = json_object(response.content).get("data")
        if not isinstance(listed, list) or not all(isinstance(m, dict) for m in listed):
            raise UpstreamError("malformed")
        found = next((m for m in listed if m.get("name") == self.model), None)
        encoder = await self._loaded()
        own = (encoder.name, encoder.dimensions, self.options.k)
        if found is None:
            raise _refusal("The PPFT server has no model of this name.", 404)
        if (found.get("encoder"), found.get("dimensions"), found.get("k")) != own:
            raise _refusal("The PPFT server's model was made for another encoder or k.", 409)
        self._checked = True

    @property
    def _noise(self) -> Noise:
        return self.options.noise

    @property
    def _url(self) -> str:
        return f"{self._base}/v1/ppft/models/{self.model}/generate"

    @property
    def _sending(self) -> dict[str, str]:
        return {**self._headers, "content-type": MEDIA_TYPE}

    async def _loaded(self) -> TokenEncoder:
        async with self._lock:
            if self._encoder is None:
                self._encoder = await asyncio.to_thread(self._make)
            return self._encoder

    async def _states(self, record: Record) -> TokenStates:
        encoder, text = await self._loaded(), render(record)
        if len(text) > _LONGEST_TOKEN * self.options.k * self.options.most_slots:
            raise self._bad_length()  # before minutes are spent on encoding it
        (states,) = await asyncio.to_thread(encoder.encode, [text])
        if not 0 < slots(len(states.states), self.options.k) <= self.options.most_slots:
            raise self._bad_length()
        return states

    def _bad_length(self) -> UpstreamError:
        tokens = self.options.k * self.options.most_slots
        return _refusal(f"A ppft/ model takes a conversation of 1 to {tokens} tokens.")


_REFUSED: Final = ("tools", "functions", "stop", "logprobs", "audio")


class PpftUpstream:
    """A PPFT model as a chat model.

    It is given the original text: what leaves is noised rows, so names need no substitutes.

    Attributes:
        sees_text: False; the provider of this upstream receives no text.
    """

    sees_text = False

    def __init__(self, client: PpftClient) -> None:
        self._client = client

    async def price(self, payload: bytes) -> Any:
        """Return the ledger row (`privacy.accounting.charges.Charge`) of a request, before it is sent.

        It belongs to the account ``privacy.ppft.accounting.ACCOUNT``.  Raises UpstreamError, also when
        the server can not be asked or has another model: then nothing would be sent.
        """
        record, _, _ = self._read(payload)
        await self._client.check_model()
        return charge(await self._client.price(record), self._client.options.noise)

    async def complete(self, payload: bytes) -> dict[str, Any]:
        record, tokens, temperature = self._read(payload)
        prepared = await self._client.prepare(record, tokens, temperature)
        found = await self._client.answer(prepared)
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": found["text"].strip()},
            "finish_reason": found["finish"],
            "logprobs": None,
        }
        return {
            **self._envelope("chat.completion", [choice], prepared.cost),
            "usage": _usage(prepared.cost, found["tokens"]),
        }

    async def stream(self, payload: bytes) -> AsyncGenerator[dict[str, Any], None]:
        record, tokens, temperature = self._read(payload)
        prepared = await self._client.prepare(record, tokens, temperature, stream=True)
        envelope = self._envelope("chat.completion.chunk", [], prepared.cost)
        opened, began, count, finish = False, False, 0, "stop"
        parts = self._client.stream(prepared)
        try:
            async for part in parts:
                if not opened:  # only now: a refusal is to be told before the answer has begun
                    first = {"role": "assistant", "content": ""}
                    yield {**envelope, "choices": [_delta(first, None)]}
                opened = True
                # The answer begins with the blank that follows the instruction.
                text = part["text"] if began else part["text"].lstrip()
                began = began or bool(text)
                count, finish = part["tokens"], part["finish"] or finish
                if text:
                    yield {**envelope, "choices": [_delta({"content": text}, None)]}
        finally:
            await parts.aclose()
        yield {**envelope, "choices": [_delta({}, finish)]}
        if (orjson.loads(payload).get("stream_options") or {}).get("include_usage"):
            yield {**envelope, "usage": _usage(prepared.cost, count)}

    async def close(self) -> None:
        """The HTTP client is shared: its owner closes it."""

    def _envelope(self, kind: str, choices: list[Any], spent: Cost) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{secrets.token_hex(12)}",
            "object": kind,
            "created": int(time.time()),
            "model": self._client.model,
            "choices": choices,
            "penname": {
                "ppft": {
                    "slots": spent.slots,
                    "epsilon_per_slot": spent.epsilon_per_slot,
                    "epsilon": spent.epsilon,
                    "delta": spent.delta,
                }
            },
        }

    def _read(self, payload: bytes) -> tuple[Record, int, float]:
        body = orjson.loads(payload)
        # What a prefix model can not honour is refused, not ignored.
        refused = [name for name in _REFUSED if body.get(name)]
        refused += ["n"] if (body.get("n") or 1) != 1 else []
        if body.get("response_format") not in (None, {"type": "text"}):
            refused.append("response_format")
        if refused:
            raise _refusal(f"A ppft/ model can not honour {', '.join(refused)}; leave it out.")
        tokens = body.get("max_completion_tokens") or body.get("max_tokens") or 128
        temperature = float(body.get("temperature") or 0.0)
        if not 1 <= tokens <= 1024 or not 0.0 <= temperature <= 2.0:
            raise _refusal(
                "A ppft/ model takes max_tokens from 1 to 1024, temperature from 0 to 2."
            )
        return record_of(body["messages"], self._client.options.task), int(tokens), temperature


def record_of(messages: list[dict[str, Any]], task: Task) -> Record:
    """Return a chat as a record: the last user message is the question, the others are the context.

    Raises:
        UpstreamError: No user message, or parts other than text.
    """
    try:
        return conversation([(str(m.get("role")), _text(m)) for m in messages], task)
    except ValueError:
        raise _refusal("A ppft/ model needs a user message with text.") from None


def _refusal(reason: str, status: int = 400) -> UpstreamError:
    return UpstreamError("rejected", status, reason=f"{reason} Nothing was sent.")


def _part(raw: bytes | str) -> dict[str, Any]:
    """Return an answer, or a part of one.  Raises UpstreamError when its fields are not as promised."""
    part = json_object(raw)
    finish = part.get("finish")
    fits = isinstance(part.get("text"), str) and isinstance(part.get("tokens"), int)
    if not fits or not (finish is None or isinstance(finish, str)):
        raise UpstreamError("malformed")
    return {"text": part["text"], "finish": finish, "tokens": part["tokens"]}


def _pause(response: httpx.Response) -> float:
    """Seconds to wait: what the server asked for, within reason; payloads live for a minute."""
    asked = response.headers.get("retry-after", "")
    return min(float(asked) if asked.isdigit() else 1.0, _LONGEST_PAUSE)


def _text(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    if any(part.get("type") not in ("text", "input_text") for part in content):
        raise _refusal("A ppft/ model reads text parts only.")
    return "\n".join(part.get("text") or "" for part in content)


def _usage(spent: Cost, tokens: int) -> dict[str, int]:
    return {
        "prompt_tokens": spent.slots,
        "completion_tokens": tokens,
        "total_tokens": spent.slots + tokens,
    }


def _delta(delta: dict[str, Any], finish: str | None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
