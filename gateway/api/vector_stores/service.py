"""The work behind the vector store routes.  Everything blocks; call it in a worker thread."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel

from gateway.api.files.schema import Order, page
from gateway.api.files.service import bad_after, check_id, missing, or_404
from gateway.api.vector_stores.schema import (
    AttachFile,
    CreateVectorStore,
    ModifyFile,
    ModifyVectorStore,
    attached_object,
    is_expired,
    vector_store_object,
)
from gateway.errors import ApiError, bad_request
from gateway.ingest.pipeline import submit_ingestion
from gateway.services import Services
from store.documents import VectorStoreFile, VectorStoreRow
from store.errors import NotFound

_STORE = "vector store"
_FILE = "file in this vector store"
Row = TypeVar("Row")


class VectorStoreService:
    """Vector stores of one tenant."""

    def __init__(self, services: Services, tenant_id: str) -> None:
        self.services = services
        self.tenant_id = tenant_id
        self._documents = services.documents

    # Vector stores

    def create(self, request: CreateVectorStore) -> dict[str, Any]:
        """Make a vector store; its files are ingested in the background.

        Raises:
            ApiError: 404 when a file does not exist; nothing is made then.
        """
        members = [
            AttachFile(file_id=each, chunking_strategy=request.chunking_strategy)
            for each in dict.fromkeys(request.file_ids)
        ]
        self.check_files(members)
        settings = {
            "description": request.description,
            "expires_after": _plain(request.expires_after),
        }
        row = self._documents.create(self.tenant_id, request.name, request.metadata or {}, settings)
        self.attach_all(row.id, members)
        return self.retrieve(row.id)

    def retrieve(self, store_id: str) -> dict[str, Any]:
        """Return a vector store.  Raises ApiError 404."""
        return vector_store_object(self.row(store_id))

    def row(self, store_id: str) -> VectorStoreRow:
        """Return a vector store's row.  Raises ApiError 404."""
        with or_404(_STORE, "vector_store_id"):
            return self._documents.get(
                self.tenant_id, check_id(store_id, _STORE, "vector_store_id")
            )

    def live(self, store_id: str) -> VectorStoreRow:
        """Return a vector store that has not expired.  Raises ApiError 404 or 400."""
        row = self.row(store_id)
        if is_expired(row):
            raise bad_request("This vector store has expired.", "vector_store_id", "expired")
        return row

    def list(
        self, *, after: str | None, before: str | None, limit: int, order: Order
    ) -> dict[str, Any]:
        """Return a page of vector stores.  Raises ApiError 400 for an unknown cursor."""

        def fetch(cursor: str | None, count: int, direction: Order) -> Sequence[VectorStoreRow]:
            return self._documents.list(self.tenant_id, after=cursor, limit=count, order=direction)

        rows, more = paged(fetch, after, before, limit, order)
        return page([vector_store_object(row) for row in rows], more)

    def modify(self, store_id: str, request: ModifyVectorStore) -> dict[str, Any]:
        """Change what the request names.  Raises ApiError 404."""
        row = self.row(store_id)
        given = request.model_fields_set
        settings = None
        if "expires_after" in given:
            settings = {**row.settings, "expires_after": _plain(request.expires_after)}
        with or_404(_STORE, "vector_store_id"):
            changed = self._documents.update(
                self.tenant_id,
                store_id,
                name=(request.name or "") if "name" in given else None,
                metadata=(request.metadata or {}) if "metadata" in given else None,
                settings=settings,
            )
        return vector_store_object(changed)

    def delete(self, store_id: str) -> dict[str, Any]:
        """Delete a vector store with its chunks, not its files.  Raises ApiError 404."""
        check_id(store_id, _STORE, "vector_store_id")
        if not self._documents.delete(self.tenant_id, store_id):
            raise missing(_STORE, "vector_store_id")
        self.services.vectors.prune()
        return {"id": store_id, "object": "vector_store.deleted", "deleted": True}

    # Files of a vector store

    def attach(self, store_id: str, request: AttachFile) -> dict[str, Any]:
        """Attach a file and start its ingestion.  Raises ApiError 404 or 400."""
        self.live(store_id)
        self.check_files([request])
        (row,) = self.attach_all(store_id, [request])
        return attached_object(row)

    def check_files(self, members: Sequence[AttachFile]) -> None:
        """Raise ApiError 404 unless the tenant has all these files."""
        for member in members:
            with or_404("file", "file_id"):
                self.services.files.get(self.tenant_id, check_id(member.file_id, "file", "file_id"))

    def attach_all(
        self, store_id: str, members: Sequence[AttachFile], mark: Mapping[str, Any] | None = None
    ) -> Sequence[VectorStoreFile]:
        """Attach files, then start their ingestion; ``mark`` is kept with each of them."""
        rows = []
        for member in members:
            chunking = {**(_plain(member.chunking_strategy) or {"type": "auto"}), **(mark or {})}
            with or_404(_FILE, "file_id"):
                rows.append(
                    self._documents.attach(
                        self.tenant_id, store_id, member.file_id, member.attributes, chunking
                    )
                )
        for row in rows:
            submit_ingestion(self.tenant_id, row.file_id, store_id, self.services)
        return rows

    def file(self, store_id: str, file_id: str) -> dict[str, Any]:
        """Return an attached file.  Raises ApiError 404."""
        self.row(store_id)
        with or_404(_FILE, "file_id"):
            row = self._documents.file(
                self.tenant_id, store_id, check_id(file_id, _FILE, "file_id")
            )
        return attached_object(row)

    def files(
        self,
        store_id: str,
        *,
        status: str | None,
        after: str | None,
        before: str | None,
        limit: int,
        order: Order,
    ) -> dict[str, Any]:
        """Return a page of attached files.  Raises ApiError 404, or 400 for a bad cursor."""
        self.row(store_id)

        def fetch(cursor: str | None, count: int, direction: Order) -> Sequence[VectorStoreFile]:
            return self._documents.files(
                self.tenant_id,
                store_id,
                status=status,
                after=cursor,
                limit=count,
                order=direction,
            )

        rows, more = paged(fetch, after, before, limit, order)
        return page([attached_object(row) for row in rows], more)

    def modify_file(self, store_id: str, file_id: str, request: ModifyFile) -> dict[str, Any]:
        """Replace the attributes of an attached file.  Raises ApiError 404."""
        self.file(store_id, file_id)
        with or_404(_FILE, "file_id"):
            row = self._documents.set_attributes(
                self.tenant_id, store_id, file_id, request.attributes or {}
            )
        return attached_object(row)

    def detach(self, store_id: str, file_id: str) -> dict[str, Any]:
        """Detach a file; the file itself stays.  Raises ApiError 404."""
        self.row(store_id)
        with or_404(_STORE, "vector_store_id"):
            gone = self._documents.detach(
                self.tenant_id, store_id, check_id(file_id, _FILE, "file_id")
            )
        if not gone:
            raise missing(_FILE, "file_id")
        return {"id": file_id, "object": "vector_store.file.deleted", "deleted": True}

    def content(self, store_id: str, file_id: str) -> dict[str, Any]:
        """Return the chunks that a file became, in order.  Raises ApiError 404."""
        self.file(store_id, file_id)
        with or_404(_FILE, "file_id"):
            chunks = self._documents.chunks_of(self.tenant_id, store_id, file_id)
        return {
            "object": "vector_store.file_content.page",
            "data": [{"type": "text", "text": chunk.text} for chunk in chunks],
            "has_more": False,
            "next_page": None,
        }


def paged(
    fetch: Callable[[str | None, int, Order], Sequence[Row]],
    after: str | None,
    before: str | None,
    limit: int,
    order: Order,
) -> tuple[list[Row], bool]:
    """Return a page and whether more follows; ``before`` pages backwards in the same order.

    Raises:
        ApiError: 400 when both cursors are given or one is not in the list.
    """
    if after is not None and before is not None:
        raise bad_request("Give either after or before, not both.", "before")
    backwards = before is not None
    cursor = before if backwards else after
    name = "before" if backwards else "after"
    if cursor is not None:
        try:
            check_id(cursor, "object", name)
        except ApiError:
            raise bad_after(name) from None
    opposite: Order = "asc" if order == "desc" else "desc"
    try:
        rows = list(fetch(cursor, limit + 1, opposite if backwards else order))
    except NotFound:
        raise bad_after(name) from None
    kept = rows[:limit]
    return kept[::-1] if backwards else kept, len(rows) > limit


def _plain(model: BaseModel | None) -> dict[str, Any] | None:
    return None if model is None else model.model_dump()
