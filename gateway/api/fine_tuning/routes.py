"""HTTP of ``/v1/fine_tuning/jobs``."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Annotated, Final

import orjson
from fastapi import APIRouter, Depends, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from gateway.api.fine_tuning import service
from gateway.api.fine_tuning.schema import event_object, job_object
from gateway.auth import Principal, principal, services
from gateway.body import read_body
from gateway.errors import ApiError, unavailable
from gateway.json import JsonResponse
from gateway.services import Services
from store.errors import StoreError

router = APIRouter(prefix="/v1/fine_tuning/jobs", tags=["fine-tuning"])

Who = Annotated[Principal, Depends(principal)]
App = Annotated[Services, Depends(services)]
Limit = Annotated[int, Query(ge=1, le=100)]
_LOOK_SECONDS: Final = 0.5


@router.post("")
async def create_job(request: Request, who: Who, app: App) -> Response:
    """Create a job.  A retry with the same ``Idempotency-Key`` returns the job made before."""
    body = service.parse_create(await read_body(request, app.settings.max_body_bytes))
    key = request.headers.get("idempotency-key") or None
    return JsonResponse(await run_in_threadpool(service.create_job, app, who.tenant_id, body, key))


@router.get("")
def list_jobs(
    request: Request, who: Who, app: App, after: str | None = None, limit: Limit = 20
) -> Response:
    """List jobs, newest first."""
    metadata = {
        name.removeprefix("metadata[").removesuffix("]"): value
        for name, value in request.query_params.items()
        if name.startswith("metadata[")
    }
    return JsonResponse(
        service.list_jobs(app, who.tenant_id, after=after, limit=limit, metadata=metadata)
    )


@router.get("/{job_id}")
def retrieve_job(job_id: str, who: Who, app: App) -> Response:
    """Return a job."""
    return JsonResponse(job_object(service.get_job(app, who.tenant_id, job_id)))


@router.post("/{job_id}/cancel")
def cancel_job(job_id: str, who: Who, app: App) -> Response:
    """Cancel a job; what runs ends within seconds."""
    return JsonResponse(service.want(app, who.tenant_id, job_id, "cancel"))


@router.post("/{job_id}/pause")
def pause_job(job_id: str, who: Who, app: App) -> Response:
    """Pause a job after a checkpoint."""
    return JsonResponse(service.want(app, who.tenant_id, job_id, "pause"))


@router.post("/{job_id}/resume")
def resume_job(job_id: str, who: Who, app: App) -> Response:
    """Queue a paused job again."""
    return JsonResponse(service.resume(app, who.tenant_id, job_id))


@router.get("/{job_id}/events")
async def job_events(
    job_id: str,
    who: Who,
    app: App,
    after: str | None = None,
    limit: Limit = 20,
    stream: bool = False,
) -> Response:
    """List events, newest first; with ``stream=true`` send them as they come, until the end."""
    if stream:
        await run_in_threadpool(service.get_job, app, who.tenant_id, job_id)
        return StreamingResponse(
            _follow(app, who.tenant_id, job_id),
            media_type="text/event-stream",
            headers={"cache-control": "no-store", "x-accel-buffering": "no"},
        )
    return JsonResponse(
        await run_in_threadpool(
            lambda: service.list_events(app, who.tenant_id, job_id, after=after, limit=limit)
        )
    )


@router.get("/{job_id}/checkpoints")
def job_checkpoints(
    job_id: str, who: Who, app: App, after: str | None = None, limit: Limit = 10
) -> Response:
    """List checkpoints, newest first."""
    return JsonResponse(
        service.list_checkpoints(app, who.tenant_id, job_id, after=after, limit=limit)
    )


async def _follow(app: Services, tenant_id: str, job_id: str) -> AsyncGenerator[bytes, None]:
    last = 0
    while True:
        try:
            events, ended = await run_in_threadpool(
                service.new_events, app, tenant_id, job_id, last
            )
        except (ApiError, StoreError) as error:  # the answer has begun, so it is told in a frame
            if isinstance(error, StoreError):
                error = unavailable(f"The store cannot serve: {error}", "store_unavailable")
            yield b"data: " + orjson.dumps(error.body()) + b"\n\n"
            return
        for event in events:
            last = event.number
            yield b"data: " + orjson.dumps(event_object(event)) + b"\n\n"
        if ended and not events:
            yield b"data: [DONE]\n\n"
            return
        if not events:
            await asyncio.sleep(_LOOK_SECONDS)
