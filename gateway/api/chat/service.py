"""The work of a chat completion: prepare, forward, restore."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator
from typing import Any

import orjson

from connectors.base import UpstreamError
from gateway.deadline import Deadline
from gateway.errors import ApiError, upstream_failed
from gateway.events import Answered, Refused
from gateway.pipeline import Pipeline, Prepared
from gateway.respond import ChunkRestorer, restore_completion, restored_stream
from gateway.services import Services
from gateway.text_free import pay

_log = logging.getLogger(__name__)

_SAID = {
    "unreachable": (502, "The provider can not be reached."),
    "timeout": (504, "The provider did not answer in time."),
    "rate_limited": (429, "The provider's rate limit is reached."),
    "rejected": (502, "The provider rejected the request."),
    "failed": (502, "The provider failed."),
    "malformed": (502, "The provider's answer is not what OpenAI's interface promises."),
}


def api_error(error: UpstreamError) -> ApiError:
    """Translate an upstream's failure; its own words stay behind, since they may quote."""
    status, message = _SAID[error.kind]
    if error.kind == "rejected" and error.status in (400, 404, 413, 422):
        # The client's request, not the gateway, is what the provider refused.
        status = 400
    detail = f" (HTTP {error.status})" if error.status else ""
    if error.kind == "rejected" and error.status in (401, 403):
        detail += "; check api_key in model_list"
    headers = {"retry-after": error.retry_after} if error.retry_after else {}
    told = error.reason or message + detail
    return upstream_failed(status, told, f"upstream_{error.kind}", headers)


async def charged(services: Services, prepared: Prepared, deadline: Deadline) -> dict[str, str]:
    """Charge what is not charged yet; returns headers that say so.  Raises ApiError."""
    try:
        return await pay(
            services,
            prepared.model,
            prepared.payload,
            prepared.tenant_id,
            prepared.session_id,
            prepared.request_id,
            deadline,
        )
    except UpstreamError as error:
        raise api_error(error) from None


async def complete(pipeline: Pipeline, prepared: Prepared, deadline: Deadline) -> dict[str, Any]:
    """Return the restored ``chat.completion``.  Raises ApiError when the upstream fails."""
    try:
        async with asyncio.timeout(deadline.remaining()):
            answer = await prepared.model.upstream.complete(prepared.payload)
        restored = restore_completion(
            answer, prepared.restorer, prepared.model.name, prepared.functions
        )
    except UpstreamError as error:
        raise api_error(error) from None
    except TimeoutError:
        raise api_error(UpstreamError("timeout")) from None
    pipeline.events.emit(
        Answered(prepared.request_id, prepared.session_id, _contents(answer), _contents(restored))
    )
    return restored


def _contents(completion: dict[str, Any]) -> tuple[str, ...]:
    messages = [choice.get("message") for choice in completion["choices"]]
    contents = [m.get("content") if isinstance(m, dict) else None for m in messages]
    return tuple(c if isinstance(c, str) else "" for c in contents)


class Stream:
    """One streamed answer, as server-sent events."""

    def __init__(
        self, pipeline: Pipeline, prepared: Prepared, tenant_id: str, deadline: Deadline
    ) -> None:
        self._tenant_id = tenant_id
        self._deadline = deadline
        self._pipeline = pipeline
        self._prepared = prepared
        self._restorer = ChunkRestorer(prepared.restorer, prepared.model.name, prepared.functions)
        self._chunks = restored_stream(
            prepared.model.upstream.stream(prepared.payload), self._restorer
        )
        self._first: dict[str, Any] | None = None

    async def start(self) -> None:
        """Wait for the first chunk, so that an early failure still gets its own status.

        Raises:
            ApiError: the upstream failed before its first chunk.
        """
        try:
            self._first = await self._next()
        except UpstreamError as error:
            raise api_error(error) from None

    async def _next(self) -> dict[str, Any] | None:
        try:
            async with asyncio.timeout(self._deadline.remaining()):
                return await anext(self._chunks, None)
        except TimeoutError:
            raise UpstreamError("timeout") from None

    async def chunks(self) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the restored chunks.  Raises ApiError when the upstream fails in the middle."""
        async with contextlib.aclosing(self._chunks):
            told: ApiError | None = None
            try:
                chunk = self._first
                while chunk is not None:
                    yield chunk
                    chunk = await self._next()
            except UpstreamError as error:
                told = api_error(error)
        self._report()
        if told is not None:
            raise told

    async def events(self) -> AsyncGenerator[bytes, None]:
        """Yield the frames; a failure in mid-stream becomes an error frame."""
        async with contextlib.aclosing(self.chunks()) as chunks:
            try:
                async for chunk in chunks:
                    yield _frame(chunk)
                yield b"data: [DONE]\n\n"
            except ApiError as error:
                self._refused(error)
                yield _frame(error.body())

    def _refused(self, error: ApiError) -> None:
        self._pipeline.events.emit(
            Refused(self._prepared.request_id, self._tenant_id, error.status, error.code)
        )

    def _report(self) -> None:
        transcript = self._restorer.transcript
        indices = sorted(transcript.received)
        self._pipeline.events.emit(
            Answered(
                self._prepared.request_id,
                self._prepared.session_id,
                tuple(transcript.received[i] for i in indices),
                tuple(transcript.restored[i] for i in indices),
            )
        )


def _frame(value: dict[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(value) + b"\n\n"
