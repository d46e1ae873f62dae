"""HTTP of ``/v1/files``."""

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Depends, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from gateway.api.files import service
from gateway.api.files.schema import Listed, Order, file_object
from gateway.api.files.upload import read_upload
from gateway.auth import Principal, principal, services
from gateway.json import JsonResponse
from gateway.services import Services

router = APIRouter(prefix="/v1/files", tags=["files"])

Who = Annotated[Principal, Depends(principal)]
App = Annotated[Services, Depends(services)]


@router.post("")
async def create_file(request: Request, who: Who, app: App) -> Response:
    """Upload a file (multipart: ``file``, ``purpose``)."""
    upload = await read_upload(request, app.settings.max_upload_bytes)
    return JsonResponse(await run_in_threadpool(service.create_file, app, who.tenant_id, upload))


@router.get("")
def list_files(
    who: Who,
    app: App,
    purpose: Listed | None = None,
    after: str | None = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 10_000,
    order: Order = "desc",
) -> Response:
    """List the tenant's files."""
    return JsonResponse(
        service.list_files(
            app, who.tenant_id, purpose=purpose, after=after, limit=limit, order=order
        )
    )


@router.get("/{file_id}")
def retrieve_file(file_id: str, who: Who, app: App) -> Response:
    """Return a file's facts."""
    return JsonResponse(file_object(service.get_file(app, who.tenant_id, file_id)))


@router.get("/{file_id}/content")
def file_content(file_id: str, who: Who, app: App) -> Response:
    """Return a file's content, byte for byte."""
    row, content = service.file_content(app, who.tenant_id, file_id)
    return Response(
        content,
        media_type="application/octet-stream",
        headers={
            # An upload is never rendered as a page of this origin.
            "content-disposition": f"attachment; filename*=UTF-8''{_quoted(row.filename)}",
            "x-content-type-options": "nosniff",
            "cache-control": "no-store",
        },
    )


@router.delete("/{file_id}")
def delete_file(file_id: str, who: Who, app: App) -> Response:
    """Delete a file and what was made of it."""
    return JsonResponse(service.delete_file(app, who.tenant_id, file_id))


def _quoted(name: str) -> str:
    return quote(name.encode("utf-8", "replace"), safe="")
