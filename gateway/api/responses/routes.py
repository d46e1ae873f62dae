"""``/v1/responses``."""

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import StreamingResponse

from gateway.api.chat.service import Stream, charged, complete
from gateway.api.chat.tuned import chunks_of, tuned_completion
from gateway.api.responses import stored
from gateway.api.responses.objects import page, shown
from gateway.api.responses.schema import check_include, parse_responses
from gateway.api.responses.service import Answering, Turn, read_turn
from gateway.auth import Principal, principal, services
from gateway.body import read_body
from gateway.deadline import Deadline
from gateway.errors import ApiError, bad_request
from gateway.events import Refused
from gateway.json import JsonResponse
from gateway.pipeline import Pipeline
from gateway.services import Services
from gateway.session_id import session_id_of
from gateway.tuned import is_tuned
from gateway.work import in_worker, in_worker_until

router = APIRouter(prefix="/v1/responses")

Who = Annotated[Principal, Depends(principal)]
App = Annotated[Services, Depends(services)]
Told = Callable[[ApiError], None]


@router.post("")
async def create_response(request: Request, who: Who, app: App) -> Response:
    """OpenAI's responses, streamed or whole."""
    pipeline: Pipeline = request.app.state.pipeline

    def refused(error: ApiError) -> None:
        pipeline.events.emit(
            Refused(request.state.request_id, who.tenant_id, error.status, error.code)
        )

    try:
        return await _answer(request, who, app, pipeline, refused)
    except ApiError as error:
        refused(error)
        raise


async def _answer(
    request: Request, who: Principal, app: Services, pipeline: Pipeline, refused: Told
) -> Response:
    parsed = parse_responses(await read_body(request, app.settings.max_body_bytes))
    deadline = Deadline(app.settings.request_timeout)
    turn = await in_worker_until(
        deadline, app.workers, read_turn, app, who.tenant_id, parsed, request.headers
    )
    if is_tuned(parsed.model, pipeline.router):
        return await _tuned(request, who, app, turn, deadline, refused)
    prepared = await in_worker_until(
        deadline,
        app.workers,
        pipeline.prepare,
        who,
        turn.chat,
        request.headers,
        request.state.request_id,
        deadline,
    )
    headers = {**prepared.headers, **await charged(app, prepared, deadline)}
    answering = Answering(
        app,
        who.tenant_id,
        prepared.session_id,
        prepared.session_created_at,
        turn,
        prepared.model.name,
        prepared.question,
    )
    if not prepared.stream:
        completion = await complete(pipeline, prepared, deadline)
        return JsonResponse(await answering.whole(completion), headers=headers)
    stream = Stream(pipeline, prepared, who.tenant_id, deadline)
    await stream.start()
    return _streamed(answering, stream.chunks(), headers, refused)


async def _tuned(
    request: Request,
    who: Principal,
    app: Services,
    turn: Turn,
    deadline: Deadline,
    refused: Told,
) -> Response:
    """Answer with a tuned model: nothing leaves; a session is needed only to keep the response."""
    wanted = turn.request.text.format if turn.request.text else None
    for name, given in (
        ("tools", turn.request.tools),
        ("text.format", wanted is not None and wanted.type != "text"),
    ):
        if given:
            raise bad_request(
                f"{name} is not supported by fine-tuned models.", name, "unsupported_parameter"
            )
    tuned = request.app.state.tuned
    session, created_at = await in_worker(app.workers, _session, request, who, app, turn)
    answering = Answering(app, who.tenant_id, session, created_at, turn, turn.request.model)
    completion = await tuned_completion(app, tuned, who.tenant_id, turn.chat, deadline)
    headers = {"x-penname-session": session}
    if not turn.request.stream:
        return JsonResponse(await answering.whole(completion), headers=headers)

    async def chunks() -> AsyncGenerator[dict[str, Any], None]:
        for chunk in chunks_of(completion, with_usage=True):
            yield chunk

    return _streamed(answering, chunks(), headers, refused)


def _session(request: Request, who: Principal, app: Services, turn: Turn) -> tuple[str, float]:
    """Return the session's id and when it was created; it is opened only to keep the response."""
    request.app.state.tuned.get(who.tenant_id, turn.request.model)  # else nothing is opened
    hasher = app.tenants.entity_hasher(who.tenant_id)
    session_id = session_id_of(request.headers, turn.chat, who.key_id, hasher)
    if not turn.request.stored:
        return session_id, 0.0
    policy = request.app.state.pipeline.policy.name
    return session_id, app.sessions.open(who.tenant_id, session_id, policy).created_at


def _streamed(
    answering: Answering,
    chunks: AsyncGenerator[dict[str, Any], None],
    headers: Mapping[str, str],
    refused: Told,
) -> Response:
    async def frames() -> AsyncIterator[bytes]:
        # A client that goes away ends the upstream's stream, too.
        async with (
            contextlib.aclosing(chunks),
            contextlib.aclosing(answering.events(chunks, refused)) as own,
        ):
            async for frame in own:
                yield frame

    return StreamingResponse(
        frames(),
        media_type="text/event-stream",
        headers={**headers, "cache-control": "no-store", "x-accel-buffering": "no"},
    )


def _included(request: Request) -> frozenset[str]:
    query = request.query_params
    return check_include([*query.getlist("include[]"), *query.getlist("include")])


@router.get("/{response_id}")
def retrieve_response(
    request: Request, response_id: str, who: Who, app: App, stream: bool = False
) -> Response:
    """Return a stored response."""
    if stream:
        raise bad_request("Only responses in the background can be streamed again.", "stream")
    include = _included(request)
    return JsonResponse(shown(stored.get_response(app, who.tenant_id, response_id), include))


@router.delete("/{response_id}")
def delete_response(response_id: str, who: Who, app: App) -> Response:
    """Delete a stored response."""
    return JsonResponse(stored.delete_response(app, who.tenant_id, response_id))


@router.get("/{response_id}/input_items")
def list_input_items(
    request: Request,
    response_id: str,
    who: Who,
    app: App,
    after: Annotated[str | None, Query(max_length=128)] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    order: Literal["asc", "desc"] = "desc",
) -> Response:
    """Return what a response was given, earlier turns included."""
    include = _included(request)
    items = stored.input_items(app, who.tenant_id, response_id, order, after)
    return JsonResponse(page(shown({"output": items}, include)["output"], limit))


@router.post("/{response_id}/cancel")
def cancel_response(response_id: str, who: Who, app: App) -> Response:
    """Refuse: nothing runs in the background here."""
    stored.get_response(app, who.tenant_id, response_id)
    raise bad_request("Only responses in the background can be cancelled.", "response_id")
