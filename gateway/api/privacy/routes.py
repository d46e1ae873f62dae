"""``/v1/privacy/sessions``: what a session has spent, and forgetting it."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request

from gateway.api.privacy.service import describe, list_page
from gateway.auth import Principal, principal
from gateway.errors import not_found, unavailable
from gateway.json import JsonResponse
from gateway.pipeline import Pipeline
from gateway.services import Services
from gateway.work import in_worker
from store.errors import NotFound, StoreError

router = APIRouter(prefix="/v1/privacy")


@router.get("/sessions")
async def list_sessions(
    request: Request,
    who: Annotated[Principal, Depends(principal)],
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    after: Annotated[str | None, Query(max_length=128)] = None,
) -> JsonResponse:
    """The tenant's sessions, last used first; ``after`` is the last id of the page before."""
    services: Services = request.app.state.services
    try:
        page = await in_worker(services.workers, list_page, services, who.tenant_id, limit, after)
    except NotFound:
        raise not_found("There is no such session.", "session_not_found", "after") from None
    except StoreError as error:
        raise unavailable(f"The store cannot serve: {error}") from None
    return JsonResponse(page)


@router.get("/sessions/{session_id}")
async def get_session(
    request: Request, session_id: str, who: Annotated[Principal, Depends(principal)]
) -> JsonResponse:
    """Ledger totals, pool levels and budget of one session; no originals."""
    services: Services = request.app.state.services
    pipeline: Pipeline = request.app.state.pipeline
    try:
        found = await in_worker(
            services.workers, describe, services, pipeline, who.tenant_id, session_id
        )
    except StoreError as error:
        raise unavailable(f"The store cannot serve: {error}") from None
    if found is None:
        raise not_found("There is no such session.", "session_not_found", "session_id")
    return JsonResponse(found)


@router.delete("/sessions/{session_id}")
async def forget_session(
    request: Request, session_id: str, who: Annotated[Principal, Depends(principal)]
) -> JsonResponse:
    """Forget a session: its key is destroyed, its ledger rows stay."""
    services: Services = request.app.state.services
    pipeline: Pipeline = request.app.state.pipeline
    try:
        gone = await in_worker(
            services.workers, services.sessions.forget, who.tenant_id, session_id
        )
    except StoreError as error:
        raise unavailable(f"The store cannot serve: {error}") from None
    if not gone:
        raise not_found("There is no such session.", "session_not_found", "session_id")
    pipeline.forget(who.tenant_id, session_id)
    return JsonResponse({"id": session_id, "object": "privacy.session", "deleted": True})
