"""``POST /v1/chat/completions``."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import StreamingResponse

from gateway.api.chat.service import Stream, charged, complete
from gateway.api.chat.tuned import answer_tuned
from gateway.auth import Principal, principal
from gateway.body import read_body
from gateway.deadline import Deadline
from gateway.errors import ApiError
from gateway.events import Refused
from gateway.json import JsonResponse
from gateway.pipeline import Pipeline
from gateway.request import parse_chat
from gateway.services import Services
from gateway.tuned import is_tuned
from gateway.work import in_worker_until

router = APIRouter(prefix="/v1")


@router.post("/chat/completions")
async def chat_completions(
    request: Request, who: Annotated[Principal, Depends(principal)]
) -> Response:
    """OpenAI's chat completions, streamed or whole."""
    pipeline: Pipeline = request.app.state.pipeline
    try:
        return await _answer(request, who, pipeline)
    except ApiError as error:
        pipeline.events.emit(
            Refused(request.state.request_id, who.tenant_id, error.status, error.code)
        )
        raise


async def _answer(request: Request, who: Principal, pipeline: Pipeline) -> Response:
    services: Services = request.app.state.services
    body = parse_chat(await read_body(request, services.settings.max_body_bytes))
    if is_tuned(body["model"], pipeline.router):
        return await answer_tuned(services, request.app.state.tuned, who.tenant_id, body)
    request_id = request.state.request_id
    deadline = Deadline(services.settings.request_timeout)
    prepared = await in_worker_until(
        deadline,
        services.workers,
        pipeline.prepare,
        who,
        body,
        request.headers,
        request_id,
        deadline,
    )
    paid = await charged(services, prepared, deadline)
    if not prepared.stream:
        answer = await complete(pipeline, prepared, deadline)
        return JsonResponse(answer, headers={**prepared.headers, **paid})
    stream = Stream(pipeline, prepared, who.tenant_id, deadline)
    await stream.start()
    return StreamingResponse(
        stream.events(),
        media_type="text/event-stream",
        headers={
            **prepared.headers,
            **paid,
            "cache-control": "no-store",
            "x-accel-buffering": "no",
        },
    )
