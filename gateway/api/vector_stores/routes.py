"""HTTP of ``/v1/vector_stores``."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Depends, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from gateway.api.files.schema import Order
from gateway.api.vector_stores import batches, search
from gateway.api.vector_stores.body import read_model
from gateway.api.vector_stores.schema import (
    AttachFile,
    CreateBatch,
    CreateVectorStore,
    ModifyFile,
    ModifyVectorStore,
    Search,
)
from gateway.api.vector_stores.service import VectorStoreService
from gateway.auth import Principal, principal, services
from gateway.json import JsonResponse
from gateway.services import Services

router = APIRouter(prefix="/v1/vector_stores", tags=["vector stores"])

_POLL_MS: Final = "250"


def _service(
    who: Annotated[Principal, Depends(principal)], app: Annotated[Services, Depends(services)]
) -> VectorStoreService:
    return VectorStoreService(app, who.tenant_id)


Service = Annotated[VectorStoreService, Depends(_service)]
Limit = Annotated[int, Query(ge=1, le=100)]
Status = Literal["in_progress", "completed", "failed", "cancelled"] | None


def _answer(content: Mapping[str, Any]) -> Response:
    """Return JSON; what is in progress says when to ask again, as the SDK's pollers expect."""
    headers = {"openai-poll-after-ms": _POLL_MS} if content.get("status") == "in_progress" else {}
    return JsonResponse(dict(content), headers=headers)


def _limit(service: VectorStoreService) -> int:
    return service.services.settings.max_body_bytes


@router.post("")
async def create(request: Request, service: Service) -> Response:
    """Make a vector store."""
    body = await read_model(request, CreateVectorStore, _limit(service))
    return _answer(await run_in_threadpool(service.create, body))


@router.get("")
def list_stores(
    service: Service,
    after: str | None = None,
    before: str | None = None,
    limit: Limit = 20,
    order: Order = "desc",
) -> Response:
    """List the tenant's vector stores."""
    return _answer(service.list(after=after, before=before, limit=limit, order=order))


@router.get("/{store_id}")
def retrieve(store_id: str, service: Service) -> Response:
    """Return a vector store."""
    return _answer(service.retrieve(store_id))


@router.post("/{store_id}")
async def modify(store_id: str, request: Request, service: Service) -> Response:
    """Change name, metadata or expiry."""
    body = await read_model(request, ModifyVectorStore, _limit(service))
    return _answer(await run_in_threadpool(service.modify, store_id, body))


@router.delete("/{store_id}")
def delete(store_id: str, service: Service) -> Response:
    """Delete a vector store; its files stay."""
    return _answer(service.delete(store_id))


@router.post("/{store_id}/search")
async def search_store(store_id: str, request: Request, service: Service) -> Response:
    """Search chunks."""
    body = await read_model(request, Search, _limit(service))
    return _answer(await run_in_threadpool(search.search, service, store_id, body))


@router.post("/{store_id}/files")
async def attach(store_id: str, request: Request, service: Service) -> Response:
    """Attach a file."""
    body = await read_model(request, AttachFile, _limit(service))
    return _answer(await run_in_threadpool(service.attach, store_id, body))


@router.get("/{store_id}/files")
def list_files(
    store_id: str,
    service: Service,
    status: Annotated[Status, Query(alias="filter")] = None,
    after: str | None = None,
    before: str | None = None,
    limit: Limit = 20,
    order: Order = "desc",
) -> Response:
    """List attached files."""
    found = service.files(
        store_id, status=status, after=after, before=before, limit=limit, order=order
    )
    return _answer(found)


@router.get("/{store_id}/files/{file_id}")
def retrieve_file(store_id: str, file_id: str, service: Service) -> Response:
    """Return an attached file."""
    return _answer(service.file(store_id, file_id))


@router.post("/{store_id}/files/{file_id}")
async def modify_file(store_id: str, file_id: str, request: Request, service: Service) -> Response:
    """Replace the attributes of an attached file."""
    body = await read_model(request, ModifyFile, _limit(service))
    return _answer(await run_in_threadpool(service.modify_file, store_id, file_id, body))


@router.delete("/{store_id}/files/{file_id}")
def detach(store_id: str, file_id: str, service: Service) -> Response:
    """Detach a file; the file itself stays."""
    return _answer(service.detach(store_id, file_id))


@router.get("/{store_id}/files/{file_id}/content")
def file_content(store_id: str, file_id: str, service: Service) -> Response:
    """Return the text of an attached file, chunk by chunk."""
    return _answer(service.content(store_id, file_id))


@router.post("/{store_id}/file_batches")
async def create_batch(store_id: str, request: Request, service: Service) -> Response:
    """Attach several files."""
    body = await read_model(request, CreateBatch, _limit(service))
    return _answer(await run_in_threadpool(batches.create_batch, service, store_id, body))


@router.get("/{store_id}/file_batches/{batch_id}")
def retrieve_batch(store_id: str, batch_id: str, service: Service) -> Response:
    """Return a batch."""
    return _answer(batches.retrieve_batch(service, store_id, batch_id))


@router.post("/{store_id}/file_batches/{batch_id}/cancel")
def cancel_batch(store_id: str, batch_id: str, service: Service) -> Response:
    """Cancel what is still in progress."""
    return _answer(batches.cancel_batch(service, store_id, batch_id))


@router.get("/{store_id}/file_batches/{batch_id}/files")
def batch_files(
    store_id: str,
    batch_id: str,
    service: Service,
    status: Annotated[Status, Query(alias="filter")] = None,
    after: str | None = None,
    limit: Limit = 20,
    order: Order = "desc",
) -> Response:
    """List the files of a batch."""
    found = batches.batch_files(
        service, store_id, batch_id, status=status, after=after, limit=limit, order=order
    )
    return _answer(found)
