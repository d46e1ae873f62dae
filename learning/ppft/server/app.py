"""The HTTP side of the server: tensors in, text out.

``POST /v1/ppft/models/{name}/generate`` takes `privacy.ppft.wire` payloads only; ``GET /v1/ppft/models``
says what each model needs; ``GET /healthz`` needs no key.  Errors have OpenAI's shape.
"""

import asyncio
import hashlib
import hmac
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson
from fastapi import FastAPI, Request, Response
from starlette.responses import StreamingResponse

from learning.ppft.artefact import Card
from learning.ppft.generate import Sampling, Step
from learning.ppft.model import Example
from learning.ppft.server.batcher import Batcher, Job, QueueFull
from learning.ppft.server.replay import ReplayError, ReplayGuard
from privacy.ppft.tasks import Task
from privacy.ppft.wire import MEDIA_TYPE, VERSION, Payload, WireError, size_limit, unpack

_STATUS: Final = {"replayed": 409, "stale_timestamp": 400, "too_many_requests": 429}


@dataclass(frozen=True, slots=True)
class Served:
    """A model and what it accepts."""

    card: Card
    batcher: Batcher
    most_slots: int = 512


class Refused(Exception):
    """An answer that is an error."""

    def __init__(
        self, status: int, code: str, message: str, retry_after: int | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.retry_after = status, code, retry_after


def create_app(
    models: Mapping[str, Served], keys: tuple[str, ...], guard: ReplayGuard | None = None
) -> FastAPI:
    """Build the application.

    Args:
        models: By public name.
        keys: Accepted bearer keys.
        guard: Remembers nonces; shared by all models.

    Raises:
        ValueError: No key is given; the server is never open.
    """
    if not keys or not all(keys):
        raise ValueError("the PPFT server needs at least one key")
    seen = guard or ReplayGuard()
    digests = [hashlib.sha256(key.encode()).digest() for key in keys]
    app = FastAPI(title="Penname PPFT", docs_url=None, redoc_url=None, openapi_url=None)

    def allow(request: Request) -> None:
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        digest = hashlib.sha256(key.strip().encode()).digest()
        known = [hmac.compare_digest(digest, other) for other in digests]
        if scheme.lower() != "bearer" or not any(known):
            raise Refused(401, "invalid_api_key", "a valid bearer key is needed")

    @app.exception_handler(Refused)
    async def refused(request: Request, error: Refused) -> Response:
        return _error(error)

    @app.get("/healthz")
    async def healthz() -> Response:
        return _json({"status": "ok"})

    @app.get("/v1/ppft/models")
    async def list_models(request: Request) -> Response:
        allow(request)
        return _json({"data": [_described(name, served) for name, served in models.items()]})

    @app.post("/v1/ppft/models/{name}/generate")
    async def generate(name: str, request: Request) -> Response:
        allow(request)
        served = models.get(name)
        if served is None:
            raise Refused(404, "model_not_found", "there is no model of this name")
        payload = await _payload(request, served, seen)
        events: asyncio.Queue[Step | None] = asyncio.Queue()
        try:
            job = _submit(served, payload, events)
        except Refused:
            seen.forget(payload.nonce)  # the same bytes may come again: noising anew would cost ε
            raise
        if payload.stream:
            return StreamingResponse(_events(events, job), media_type="text/event-stream")
        return _json(await _whole(events, job))

    @app.api_route("/{path:path}", methods=["GET", "POST", "PUT", "DELETE", "PATCH"])
    async def nothing(path: str) -> Response:
        raise Refused(404, "not_found", "there is nothing at this address")

    return app


async def _payload(request: Request, served: Served, seen: ReplayGuard) -> Payload:
    if request.headers.get("content-type", "") != MEDIA_TYPE or request.url.query:
        raise Refused(
            415, "unsupported_media_type", f"only {MEDIA_TYPE} is accepted: tensors, never text"
        )
    card = served.card
    limit = size_limit(card.dimensions, served.most_slots)
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > limit:
            raise Refused(413, "body_too_large", f"at most {served.most_slots} rows are accepted")
        parts.append(part)
    try:
        payload = unpack(
            b"".join(parts), dimensions=card.dimensions, k=card.k, most_slots=served.most_slots
        )
        seen.accept(payload.nonce, payload.timestamp)
    except WireError as error:
        raise Refused(400, error.code, str(error)) from None
    except ReplayError as error:
        retry = 60 if error.code == "too_many_requests" else None
        raise Refused(_STATUS[error.code], error.code, str(error), retry) from None
    return payload


def _submit(served: Served, payload: Payload, events: "asyncio.Queue[Step | None]") -> Job:
    loop = asyncio.get_running_loop()

    def emit(step: Step | None) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(events.put_nowait, step)

    job = Job(
        Example(payload.rows, payload.task), Sampling(payload.max_tokens, payload.temperature), emit
    )
    try:
        served.batcher.submit(job)
    except QueueFull as full:
        raise Refused(429, "queue_full", "the server is busy", full.retry_after) from None
    return job


async def _whole(events: "asyncio.Queue[Step | None]", job: Job) -> dict[str, Any]:
    text = ""
    try:
        while True:
            step = await events.get()
            if step is None:
                raise Refused(503, "model_failed", "the model failed; try again", 1)
            text += step.text
            if step.finish is not None:
                return {"text": text, "finish": step.finish, "tokens": step.tokens}
    finally:
        job.gone.set()


async def _events(events: "asyncio.Queue[Step | None]", job: Job) -> AsyncIterator[bytes]:
    try:
        while True:
            step = await events.get()
            if step is None:
                yield _event({"error": {"code": "model_failed"}})
                return
            if step.text or step.finish is not None:
                yield _event({"text": step.text, "finish": step.finish, "tokens": step.tokens})
            if step.finish is not None:
                yield b"data: [DONE]\n\n"
                return
    finally:
        job.gone.set()


def _described(name: str, served: Served) -> dict[str, Any]:
    card = served.card
    return {
        "name": name,
        "schema": VERSION,
        "encoder": card.encoder,
        "dimensions": card.dimensions,
        "k": card.k,
        "most_slots": served.most_slots,
        "stage": card.stage,
        "mechanism": card.mechanism,
        "epsilon": card.epsilon,
        "tasks": [task.name.lower() for task in Task],
    }


def _event(value: dict[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(value) + b"\n\n"


def _json(value: dict[str, Any]) -> Response:
    return Response(orjson.dumps(value), media_type="application/json")


def _error(error: Refused) -> Response:
    kind = "server_error" if error.status >= 500 else "invalid_request_error"
    body = {"error": {"message": str(error), "type": kind, "code": error.code, "param": None}}
    headers = {} if error.retry_after is None else {"retry-after": str(error.retry_after)}
    return Response(orjson.dumps(body), error.status, headers, media_type="application/json")
