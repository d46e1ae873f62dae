"""Documents: files attached to vector stores, and their chunks."""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, delete, insert, select, tuple_, update
from sqlalchemy.orm import Session

from privacy.types import Span
from store.chunk_rows import (
    NewChunk,
    insert_chunks,
    lock_and_bump,
    no_vector_store,
    open_embedding,
    open_text,
    unit_rows,
)
from store.crypto import DataKey
from store.errors import NotFound
from store.files import open_name
from store.models import ChunkRow, FileRecord, VectorStoreFileRecord, VectorStoreRecord
from store.vector_stores import STATUSES, VectorStoreRow, VectorStores

__all__ = ["STATUSES", "Chunk", "DocumentStore", "NewChunk", "VectorStoreFile", "VectorStoreRow"]

_IN_LIMIT: Final = 500
_Attached = VectorStoreFileRecord


@dataclass(frozen=True)
class VectorStoreFile:
    """A file attached to a vector store; ``error_*`` only when the status is ``failed``."""

    vector_store_id: str
    file_id: str
    status: str
    attributes: Mapping[str, Any] = field(repr=False)
    chunking: Mapping[str, Any]
    error_code: str | None
    error_message: str | None
    usage_bytes: int
    created_at: float


@dataclass(frozen=True)
class Chunk:
    """A stored chunk with the name and attributes of the file that it comes from.

    Attributes:
        id: Never used again, even after deletion.
        embedding: Shape (dimensions,), unit length; shape (0,) when it was not asked for.
    """

    id: int
    vector_store_id: str
    file_id: str
    filename: str = field(repr=False)
    ordinal: int
    text: str = field(repr=False)
    spans: tuple[Span, ...] = field(repr=False)
    embedding: NDArray[np.float32] = field(repr=False, compare=False)
    attributes: Mapping[str, Any] = field(repr=False)


class DocumentStore(VectorStores):
    """Vector stores, the files attached to them, and the chunks of those.

    Texts, spans, embeddings, attributes and error messages are encrypted.  Every method raises
    NotFound when the tenant has no such vector store or attached file.
    """

    def attach(
        self,
        tenant_id: str,
        vector_store_id: str,
        file_id: str,
        attributes: Mapping[str, Any] | None = None,
        chunking: Mapping[str, Any] | None = None,
    ) -> VectorStoreFile:
        """Attach a file, with status ``in_progress``.

        Attaching it again starts over: what it was chunked into stays searchable until
        `add_chunks` replaces it.
        """
        now = time.time()
        row = VectorStoreFile(
            vector_store_id,
            file_id,
            "in_progress",
            dict(attributes or {}),
            dict(chunking or {}),
            None,
            None,
            0,
            now,
        )
        with self._db.write() as session:
            key = self._db.tenants.get(session, tenant_id)
            _lock_store(session, tenant_id, vector_store_id)
            owner = session.scalar(select(FileRecord.tenant_id).where(FileRecord.id == file_id))
            if owner != tenant_id:
                raise NotFound("There is no such file.")
            old = _find(session, key, tenant_id, vector_store_id, file_id)
            if old is not None:
                row = replace(row, usage_bytes=old.usage_bytes, created_at=old.created_at)
                _write(session, key, tenant_id, row)
                return row
            session.execute(
                insert(_Attached).values(
                    vector_store_id=vector_store_id,
                    file_id=file_id,
                    status=row.status,
                    sealed=_seal(key, tenant_id, row),
                    usage_bytes=0,
                    created_at=now,
                )
            )
        return row

    def file(self, tenant_id: str, vector_store_id: str, file_id: str) -> VectorStoreFile:
        """Return an attached file."""
        with self._db.read() as session:
            key = self._db.tenants.get(session, tenant_id)
            self._store(session, key, tenant_id, vector_store_id)
            return _must_find(session, key, tenant_id, vector_store_id, file_id)

    def files(
        self,
        tenant_id: str,
        vector_store_id: str,
        *,
        status: str | None = None,
        after: str | None = None,
        limit: int = 10_000,
        order: Literal["asc", "desc"] = "desc",
    ) -> list[VectorStoreFile]:
        """Return attached files by time of attachment, from the one after file id ``after``."""
        stamp = (_Attached.created_at, _Attached.file_id)
        query = select(_Attached).where(_Attached.vector_store_id == vector_store_id)
        if status is not None:
            query = query.where(_Attached.status == status)
        with self._db.read() as session:
            key = self._db.tenants.get(session, tenant_id)
            self._store(session, key, tenant_id, vector_store_id)
            if after is not None:
                last = _must_find(session, key, tenant_id, vector_store_id, after)
                here, edge = tuple_(*stamp), tuple_(last.created_at, last.file_id)
                query = query.where(here > edge if order == "asc" else here < edge)
            columns = [c.asc() if order == "asc" else c.desc() for c in stamp]
            rows = session.scalars(query.order_by(*columns).limit(limit)).all()
        return [_read(key, tenant_id, row) for row in rows]

    def set_attributes(
        self, tenant_id: str, vector_store_id: str, file_id: str, attributes: Mapping[str, Any]
    ) -> VectorStoreFile:
        """Replace the attributes of an attached file."""
        return self._change(tenant_id, vector_store_id, file_id, attributes=dict(attributes))

    def fail(
        self, tenant_id: str, vector_store_id: str, file_id: str, code: str, message: str
    ) -> VectorStoreFile:
        """Set the status ``failed``; ``message`` is shown to the client and stored encrypted."""
        return self._change(
            tenant_id,
            vector_store_id,
            file_id,
            status="failed",
            error_code=code,
            error_message=message,
        )

    def cancel(self, tenant_id: str, vector_store_id: str, file_id: str) -> VectorStoreFile:
        """Set the status ``cancelled`` unless ingestion has ended already."""
        return self._change(tenant_id, vector_store_id, file_id, cancelling=True)

    def _change(
        self,
        tenant_id: str,
        vector_store_id: str,
        file_id: str,
        *,
        cancelling: bool = False,
        **changes: Any,
    ) -> VectorStoreFile:
        with self._db.write() as session:
            key = self._db.tenants.get(session, tenant_id)
            _lock_store(session, tenant_id, vector_store_id)
            row = _must_find(session, key, tenant_id, vector_store_id, file_id)
            if cancelling and row.status == "in_progress":
                changes = {"status": "cancelled"}
            row = replace(row, **changes)
            _write(session, key, tenant_id, row)
        return row

    def detach(self, tenant_id: str, vector_store_id: str, file_id: str) -> bool:
        """Detach a file and delete its chunks (not the file); False when it was not attached."""
        with self._db.write() as session:
            self._db.tenants.get(session, tenant_id)
            lock_and_bump(session, tenant_id, vector_store_id, removes=True)
            gone = session.scalars(
                delete(_Attached)
                .where(_Attached.vector_store_id == vector_store_id, _Attached.file_id == file_id)
                .returning(_Attached.file_id)
            ).all()
        if gone:
            self._db.scrub()
        return bool(gone)

    def add_chunks(
        self, tenant_id: str, vector_store_id: str, file_id: str, chunks: Sequence[NewChunk]
    ) -> VectorStoreFile:
        """Store a file's chunks and set its status ``completed``, in one transaction.

        Chunks that the file had before are replaced.  A search sees all of the new ones or none.

        Raises:
            NotFound: The file was detached or deleted meanwhile, or its ingestion was cancelled;
                nothing was stored.
            ValueError: Embeddings of another length than the vector store's, or not finite.
        """
        where = (tenant_id, vector_store_id, file_id)
        with self._db.write() as session:
            key = self._db.tenants.get(session, tenant_id)
            version, dimensions = lock_and_bump(session, tenant_id, vector_store_id, removes=False)
            row = _must_find(session, key, *where)
            if row.status == "cancelled":
                raise NotFound("The ingestion of this file was cancelled.")
            values: dict[str, Any] = {"last_active_at": time.time()}
            if _delete_chunks(session, vector_store_id, file_id):
                values["removed_version"] = version
            if chunks:
                rows = unit_rows(chunks, dimensions)
                values["dimensions"] = rows.shape[1]
                insert_chunks(session, key, where, version, chunks, rows)
            session.execute(
                update(VectorStoreRecord)
                .where(VectorStoreRecord.id == vector_store_id)
                .values(**values)
            )
            usage = sum(len(chunk.text.encode("utf-8", "replace")) for chunk in chunks)
            row = replace(
                row, status="completed", usage_bytes=usage, error_code=None, error_message=None
            )
            _write(session, key, tenant_id, row)
        return row

    def chunks_of(
        self,
        tenant_id: str,
        vector_store_id: str,
        file_id: str | None = None,
        *,
        embeddings: bool = False,
    ) -> list[Chunk]:
        """Return the chunks of a vector store, or of one file in it, in order of the documents."""
        condition = ChunkRow.vector_store_id == vector_store_id
        if file_id is not None:
            condition &= ChunkRow.file_id == file_id
        with self._db.read() as session:
            key = self._db.tenants.get(session, tenant_id)
            self._store(session, key, tenant_id, vector_store_id)
            if file_id is not None:
                _must_find(session, key, tenant_id, vector_store_id, file_id)
            found = _chunks(session, key, tenant_id, condition, embeddings)
        return sorted(found, key=lambda chunk: (chunk.file_id, chunk.ordinal))

    def chunks(
        self, tenant_id: str, ids: Iterable[int], *, embeddings: bool = False
    ) -> list[Chunk]:
        """Return chunks in the order of ``ids``; ids that no longer exist are left out."""
        wanted = list(ids)
        found: dict[int, Chunk] = {}
        with self._db.read() as session:
            key = self._db.tenants.get(session, tenant_id)
            for start in range(0, len(wanted), _IN_LIMIT):
                condition = ChunkRow.id.in_(wanted[start : start + _IN_LIMIT])
                part = _chunks(session, key, tenant_id, condition, embeddings)
                found.update({chunk.id: chunk for chunk in part})
        return [found[each] for each in wanted if each in found]

    def pending(self) -> list[tuple[str, str, str]]:
        """Return (tenant, vector store, file) of everything ``in_progress``, oldest first.

        After a crash these are the ingestions to start again.
        """
        with self._db.read() as session:
            rows = session.execute(
                select(VectorStoreRecord.tenant_id, VectorStoreRecord.id, _Attached.file_id)
                .join(_Attached, _Attached.vector_store_id == VectorStoreRecord.id)
                .where(_Attached.status == "in_progress")
                .order_by(_Attached.created_at, _Attached.file_id)
            ).all()
        return [(tenant, store, file) for tenant, store, file in rows]


def _lock_store(session: Session, tenant_id: str, vector_store_id: str) -> None:
    found = session.scalar(
        select(VectorStoreRecord.id)
        .where(VectorStoreRecord.id == vector_store_id, VectorStoreRecord.tenant_id == tenant_id)
        .with_for_update()
    )
    if found is None:
        raise no_vector_store()


def _delete_chunks(session: Session, vector_store_id: str, file_id: str) -> bool:
    here = (ChunkRow.vector_store_id == vector_store_id, ChunkRow.file_id == file_id)
    if session.scalar(select(ChunkRow.id).where(*here).limit(1)) is None:
        return False
    session.execute(delete(ChunkRow).where(*here))
    return True


def _chunks(
    session: Session,
    key: DataKey,
    tenant_id: str,
    condition: ColumnElement[bool],
    embeddings: bool,
) -> list[Chunk]:
    rows = session.execute(
        select(ChunkRow, FileRecord.sealed_name, _Attached)
        .join(
            _Attached,
            (_Attached.vector_store_id == ChunkRow.vector_store_id)
            & (_Attached.file_id == ChunkRow.file_id),
        )
        .join(FileRecord, FileRecord.id == ChunkRow.file_id)
        .where(condition, FileRecord.tenant_id == tenant_id)
    )
    facts: dict[tuple[str, str], tuple[str, Mapping[str, Any]]] = {}
    chunks = []
    for row, sealed_name, attached in rows:
        where = (tenant_id, row.vector_store_id, row.file_id)
        if where[1:] not in facts:
            name = open_name(key, tenant_id, row.file_id, sealed_name)
            facts[where[1:]] = (name, _read(key, tenant_id, attached).attributes)
        name, attributes = facts[where[1:]]
        text, spans = open_text(key, where, row.ordinal, row.sealed_text)
        vector = np.zeros(0, np.float32)
        if embeddings:
            vector = open_embedding(key, where, row.ordinal, row.sealed_embedding)
        chunks.append(Chunk(row.id, *where[1:], name, row.ordinal, text, spans, vector, attributes))
    return chunks


def _find(
    session: Session, key: DataKey, tenant_id: str, vector_store_id: str, file_id: str
) -> VectorStoreFile | None:
    row = session.scalar(
        select(_Attached).where(
            _Attached.vector_store_id == vector_store_id, _Attached.file_id == file_id
        )
    )
    return None if row is None else _read(key, tenant_id, row)


def _must_find(
    session: Session, key: DataKey, tenant_id: str, vector_store_id: str, file_id: str
) -> VectorStoreFile:
    found = _find(session, key, tenant_id, vector_store_id, file_id)
    if found is None:
        raise NotFound("This file is not attached to the vector store.")
    return found


def _write(session: Session, key: DataKey, tenant_id: str, row: VectorStoreFile) -> None:
    session.execute(
        update(_Attached)
        .where(_Attached.vector_store_id == row.vector_store_id, _Attached.file_id == row.file_id)
        .values(status=row.status, usage_bytes=row.usage_bytes, sealed=_seal(key, tenant_id, row))
    )


def _seal(key: DataKey, tenant_id: str, row: VectorStoreFile) -> bytes:
    facts = [dict(row.attributes), dict(row.chunking), row.error_code, row.error_message]
    return key.seal(
        json.dumps(facts).encode(),
        *_place(tenant_id, row.vector_store_id, row.file_id),
    )


def _read(key: DataKey, tenant_id: str, row: VectorStoreFileRecord) -> VectorStoreFile:
    plain = key.open(row.sealed, *_place(tenant_id, row.vector_store_id, row.file_id))
    attributes, chunking, error_code, error_message = json.loads(plain)
    return VectorStoreFile(
        row.vector_store_id,
        row.file_id,
        row.status,
        attributes,
        chunking,
        error_code,
        error_message,
        row.usage_bytes,
        row.created_at,
    )


def _place(tenant_id: str, vector_store_id: str, file_id: str) -> tuple[str, ...]:
    return tenant_id, "vector_store_files", vector_store_id, file_id
