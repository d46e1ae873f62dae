"""``POST /v1/chat/completions``."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import StreamingResponse

from gateway.api.chat.service import Stream, complete
from gateway.api.chat.tuned import answer_tuned
from gateway.auth import Principal, principal
from gateway.body import read_body
from gateway.json import JsonResponse
from gateway.pipeline import Pipeline
from gateway.request import parse_chat
from gateway.tuned import PREFIX
from gateway.work import in_worker

router = APIRouter(prefix="/v1")


@router.post("/chat/completions")
async def chat_completions(
    request: Request, who: Annotated[Principal, Depends(principal)]
) -> Response:
    """OpenAI's chat completions, streamed or whole."""
    services = request.app.state.services
    pipeline: Pipeline = request.app.state.pipeline
    body = parse_chat(await read_body(request, services.settings.max_body_bytes))
    if body["model"].startswith(PREFIX):
        return await answer_tuned(services, request.app.state.tuned, who.tenant_id, body)
    request_id = request.state.request_id
    prepared = await in_worker(
        services.workers, pipeline.prepare, who, body, request.headers, request_id
    )
    if not prepared.stream:
        return JsonResponse(await complete(pipeline, prepared), headers=dict(prepared.headers))
    stream = Stream(pipeline, prepared)
    await stream.start()
    return StreamingResponse(
        stream.events(),
        media_type="text/event-stream",
        headers={**prepared.headers, "cache-control": "no-store", "x-accel-buffering": "no"},
    )
