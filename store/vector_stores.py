"""Vector stores without their contents."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from sqlalchemy import delete, func, insert, select, tuple_, update
from sqlalchemy.orm import Session

from store.chunk_rows import no_vector_store
from store.crypto import DataKey
from store.models import VectorStoreFileRecord, VectorStoreRecord, new_id

if TYPE_CHECKING:
    from store.database import Database

STATUSES: Final = ("in_progress", "completed", "cancelled", "failed")
_builtin_list = list


@dataclass(frozen=True)
class VectorStoreRow:
    """A vector store; times in seconds since the epoch.

    Attributes:
        metadata: The client's own key-value pairs.
        settings: Whatever else the API keeps of it (expiry and the like), as JSON.
        file_counts: Attached files by status.
        usage_bytes: Bytes of chunk texts.
        version: Grows with every change of its chunks.
    """

    id: str
    tenant_id: str
    name: str = field(repr=False)
    metadata: Mapping[str, Any] = field(repr=False)
    settings: Mapping[str, Any] = field(repr=False)
    created_at: float
    last_active_at: float
    version: int
    file_counts: Mapping[str, int]
    usage_bytes: int


class VectorStores:
    """Vector stores of all tenants; names, metadata and settings are encrypted.

    Every method raises NotFound when the tenant has no such vector store.
    """

    def __init__(self, db: "Database") -> None:
        self._db = db

    def create(
        self,
        tenant_id: str,
        name: str = "",
        metadata: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> VectorStoreRow:
        """Make an empty vector store."""
        vector_store_id, now = new_id("vs_"), time.time()
        with self._db.write() as session:
            key = self._db.tenants.get(session, tenant_id)
            session.execute(
                insert(VectorStoreRecord).values(
                    id=vector_store_id,
                    tenant_id=tenant_id,
                    sealed=_seal_store(
                        key, tenant_id, vector_store_id, name, metadata or {}, settings or {}
                    ),
                    version=1,
                    removed_version=1,
                    created_at=now,
                    last_active_at=now,
                )
            )
            return self._stores(session, key, tenant_id, [vector_store_id])[0]

    def get(self, tenant_id: str, vector_store_id: str) -> VectorStoreRow:
        """Return a vector store."""
        with self._db.read() as session:
            key = self._db.tenants.get(session, tenant_id)
            return self._store(session, key, tenant_id, vector_store_id)

    def list(
        self,
        tenant_id: str,
        *,
        after: str | None = None,
        limit: int = 10_000,
        order: Literal["asc", "desc"] = "desc",
    ) -> _builtin_list[VectorStoreRow]:
        """Return vector stores by time of creation, from the one after id ``after``."""
        stamp = (VectorStoreRecord.created_at, VectorStoreRecord.id)
        query = select(VectorStoreRecord.id).where(VectorStoreRecord.tenant_id == tenant_id)
        with self._db.read() as session:
            key = self._db.tenants.get(session, tenant_id)
            if after is not None:
                last = self._store(session, key, tenant_id, after)
                here, edge = tuple_(*stamp), tuple_(last.created_at, last.id)
                query = query.where(here > edge if order == "asc" else here < edge)
            columns = [c.asc() if order == "asc" else c.desc() for c in stamp]
            ids = session.scalars(query.order_by(*columns).limit(limit)).all()
            return self._stores(session, key, tenant_id, ids)

    def update(
        self,
        tenant_id: str,
        vector_store_id: str,
        *,
        name: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> VectorStoreRow:
        """Replace what is given, keep the rest."""
        with self._db.write() as session:
            key = self._db.tenants.get(session, tenant_id)
            old = self._store(session, key, tenant_id, vector_store_id)
            sealed = _seal_store(
                key,
                tenant_id,
                vector_store_id,
                old.name if name is None else name,
                old.metadata if metadata is None else metadata,
                old.settings if settings is None else settings,
            )
            session.execute(
                update(VectorStoreRecord)
                .where(VectorStoreRecord.id == vector_store_id)
                .values(sealed=sealed, last_active_at=time.time())
            )
            return self._store(session, key, tenant_id, vector_store_id)

    def delete(self, tenant_id: str, vector_store_id: str) -> bool:
        """Delete a vector store and its chunks (not its files); False when there was none."""
        with self._db.write() as session:
            self._db.tenants.get(session, tenant_id)
            gone = session.scalars(
                delete(VectorStoreRecord)
                .where(
                    VectorStoreRecord.id == vector_store_id,
                    VectorStoreRecord.tenant_id == tenant_id,
                )
                .returning(VectorStoreRecord.id)
            ).all()
        if gone:
            self._db.scrub()
        return bool(gone)

    def touch(self, tenant_id: str, vector_store_id: str) -> None:
        """Note that the vector store was used now."""
        with self._db.write() as session:
            session.execute(
                update(VectorStoreRecord)
                .where(
                    VectorStoreRecord.id == vector_store_id,
                    VectorStoreRecord.tenant_id == tenant_id,
                )
                .values(last_active_at=time.time())
            )

    def _store(
        self, session: Session, key: DataKey, tenant_id: str, vector_store_id: str
    ) -> VectorStoreRow:
        found = self._stores(session, key, tenant_id, [vector_store_id])
        if not found:
            raise no_vector_store()
        return found[0]

    def _stores(
        self, session: Session, key: DataKey, tenant_id: str, ids: Sequence[str]
    ) -> _builtin_list[VectorStoreRow]:
        """Return the rows of ``ids`` that exist, in that order."""
        rows = session.scalars(
            select(VectorStoreRecord).where(
                VectorStoreRecord.id.in_(ids), VectorStoreRecord.tenant_id == tenant_id
            )
        ).all()
        counts = _counts(session, ids)
        found = {row.id: _read_store(key, row, counts.get(row.id, {})) for row in rows}
        return [found[each] for each in ids if each in found]


def _counts(session: Session, ids: Sequence[str]) -> dict[str, dict[str, tuple[int, int]]]:
    """Return, per vector store and status, (attached files, bytes of their texts)."""
    attached = VectorStoreFileRecord
    counts: dict[str, dict[str, tuple[int, int]]] = {}
    for vector_store_id, status, files, usage in session.execute(
        select(
            attached.vector_store_id,
            attached.status,
            func.count(),
            func.coalesce(func.sum(attached.usage_bytes), 0),
        )
        .where(attached.vector_store_id.in_(ids))
        .group_by(attached.vector_store_id, attached.status)
    ):
        counts.setdefault(vector_store_id, {})[status] = (int(files), int(usage))
    return counts


def _read_store(
    key: DataKey, row: VectorStoreRecord, counts: Mapping[str, tuple[int, int]]
) -> VectorStoreRow:
    name, metadata, settings = json.loads(key.open(row.sealed, *_place(row.tenant_id, row.id)))
    return VectorStoreRow(
        id=row.id,
        tenant_id=row.tenant_id,
        name=name,
        metadata=metadata,
        settings=settings,
        created_at=row.created_at,
        last_active_at=row.last_active_at,
        version=row.version,
        file_counts={status: counts.get(status, (0, 0))[0] for status in STATUSES},
        usage_bytes=sum(usage for _, usage in counts.values()),
    )


def _seal_store(
    key: DataKey,
    tenant_id: str,
    vector_store_id: str,
    name: str,
    metadata: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> bytes:
    plain = json.dumps([name, dict(metadata), dict(settings)]).encode()
    return key.seal(plain, *_place(tenant_id, vector_store_id))


def _place(tenant_id: str, vector_store_id: str) -> tuple[str, str, str]:
    return tenant_id, "vector_stores", vector_store_id
