"""File batches: several files attached at once.

A batch is a mark on the files that it attached, so it needs no table of its own; a file that is
attached anew leaves its old batch.
"""

import secrets
import time
from collections.abc import Mapping
from typing import Any

from gateway.api.files.schema import Order, page
from gateway.api.files.service import bad_after, check_id, missing, or_404
from gateway.api.vector_stores.schema import CreateBatch, attached_object, batch_object
from gateway.api.vector_stores.service import VectorStoreService
from gateway.errors import bad_request
from store.documents import VectorStoreFile

_KIND = "file batch"
_ALL = 1_000_000


def create_batch(
    service: VectorStoreService, store_id: str, request: CreateBatch
) -> dict[str, Any]:
    """Attach files and start their ingestion.

    Raises:
        ApiError: 404 when the vector store or a file does not exist; nothing is attached then.
    """
    service.live(store_id)
    members = request.members()
    if len({member.file_id for member in members}) < len(members):
        raise bad_request("A file may stand only once in a batch.", "file_ids")
    service.check_files(members)
    batch_id, now = f"vsfb_{secrets.token_hex(12)}", time.time()
    rows = service.attach_all(store_id, members, {"batch": batch_id, "batch_created_at": now})
    return batch_object(batch_id, store_id, now, rows)


def retrieve_batch(service: VectorStoreService, store_id: str, batch_id: str) -> dict[str, Any]:
    """Return a batch.  Raises ApiError 404."""
    rows = _members(service, store_id, batch_id, "desc")
    return batch_object(batch_id, store_id, _created_at(rows[0].chunking), rows)


def cancel_batch(service: VectorStoreService, store_id: str, batch_id: str) -> dict[str, Any]:
    """Cancel what is still in progress.  Raises ApiError 404."""
    for row in _members(service, store_id, batch_id, "desc"):
        with or_404(_KIND, "batch_id"):
            service.services.documents.cancel(service.tenant_id, store_id, row.file_id)
    return retrieve_batch(service, store_id, batch_id)


def batch_files(
    service: VectorStoreService,
    store_id: str,
    batch_id: str,
    *,
    status: str | None,
    after: str | None,
    limit: int,
    order: Order,
) -> dict[str, Any]:
    """Return a page of the files of a batch.  Raises ApiError 404, or 400 for a bad cursor."""
    rows = _members(service, store_id, batch_id, order)
    if after is not None:
        ids = [row.file_id for row in rows]
        if after not in ids:
            raise bad_after()
        rows = rows[ids.index(after) + 1 :]
    rows = [row for row in rows if status is None or row.status == status]
    return page([attached_object(row) for row in rows[:limit]], len(rows) > limit)


def _members(
    service: VectorStoreService, store_id: str, batch_id: str, order: Order
) -> list[VectorStoreFile]:
    check_id(batch_id, _KIND, "batch_id")
    service.row(store_id)
    with or_404(_KIND, "batch_id"):
        rows = service.services.documents.files(
            service.tenant_id, store_id, limit=_ALL, order=order
        )
    found = [row for row in rows if row.chunking.get("batch") == batch_id]
    if not found:
        raise missing(_KIND, "batch_id")
    return found


def _created_at(chunking: Mapping[str, Any]) -> float:
    return float(chunking["batch_created_at"])
