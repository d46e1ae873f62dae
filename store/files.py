"""Uploaded files: name and content are encrypted, the content in pieces of 1 MiB."""

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from sqlalchemy import Row, Select, delete, insert, select, tuple_
from sqlalchemy.orm import Session

from store.chunk_rows import lock_and_bump
from store.crypto import DataKey
from store.errors import NotFound, SealBroken
from store.models import FilePartRow, FileRecord, VectorStoreFileRecord, new_id

if TYPE_CHECKING:
    from store.database import Database

PART_BYTES: Final = 1 << 20
_builtin_list = list


@dataclass(frozen=True)
class FileRow:
    """A file without its content; ``size`` in bytes, ``created_at`` in seconds since the epoch."""

    id: str
    tenant_id: str
    filename: str = field(repr=False)
    purpose: str
    size: int
    created_at: float


class FileStore:
    """Files of all tenants."""

    def __init__(self, db: "Database") -> None:
        self._db = db

    def create(self, tenant_id: str, filename: str, purpose: str, content: bytes) -> FileRow:
        """Store a file in one transaction.

        Args:
            filename: Stored encrypted.
            purpose: At most 40 characters, stored in the clear.

        Raises:
            UnknownTenant: There is no such tenant.
            StoreUnavailable: Disk full and the like; nothing was stored.
        """
        row = FileRow(new_id("file-"), tenant_id, filename, purpose[:40], len(content), time.time())
        with self._db.write() as session:
            key = self._db.tenants.get(session, tenant_id)
            session.execute(
                insert(FileRecord).values(
                    id=row.id,
                    tenant_id=tenant_id,
                    sealed_name=key.seal(
                        filename.encode("utf-8", "surrogatepass"), *_name_place(tenant_id, row.id)
                    ),
                    purpose=row.purpose,
                    size=row.size,
                    created_at=row.created_at,
                )
            )
            _insert_parts(session, key, row, content)
        return row

    def get(self, tenant_id: str, file_id: str) -> FileRow:
        """Return a file's row.  Raises NotFound when the tenant has no such file."""
        with self._db.read() as session:
            key = self._db.tenants.get(session, tenant_id)
            return _find(session, key, tenant_id, file_id)

    def list(
        self,
        tenant_id: str,
        *,
        purpose: str | None = None,
        after: str | None = None,
        limit: int = 10_000,
        order: Literal["asc", "desc"] = "desc",
    ) -> _builtin_list[FileRow]:
        """Return the tenant's files by time of creation, from the one after file ``after``.

        Raises NotFound when ``after`` is no file of the tenant.
        """
        stamp = (FileRecord.created_at, FileRecord.id)
        query = _rows().where(FileRecord.tenant_id == tenant_id)
        if purpose is not None:
            query = query.where(FileRecord.purpose == purpose)
        with self._db.read() as session:
            key = self._db.tenants.get(session, tenant_id)
            if after is not None:
                last = _find(session, key, tenant_id, after)
                here = tuple_(*stamp)
                edge = tuple_(last.created_at, last.id)
                query = query.where(here > edge if order == "asc" else here < edge)
            columns = [c.asc() if order == "asc" else c.desc() for c in stamp]
            found = session.execute(query.order_by(*columns).limit(limit)).all()
        return [_read(key, tenant_id, row) for row in found]

    def content(self, tenant_id: str, file_id: str) -> bytes:
        """Return the content.

        Raises:
            NotFound: The tenant has no such file.
            SealBroken: A piece is damaged or missing.
        """
        with self._db.read() as session:
            key = self._db.tenants.get(session, tenant_id)
            row = _find(session, key, tenant_id, file_id)
            parts = session.execute(
                select(FilePartRow.ordinal, FilePartRow.sealed)
                .where(FilePartRow.file_id == file_id)
                .order_by(FilePartRow.ordinal)
            ).all()
        plain = b"".join(
            key.open(sealed, *_part_place(tenant_id, file_id, ordinal, row.size))
            for ordinal, sealed in parts
        )
        if len(plain) != row.size:
            raise SealBroken("A stored file is incomplete. Restore it from a backup.")
        return plain

    def delete(self, tenant_id: str, file_id: str) -> bool:
        """Delete a file, and its chunks in every vector store; False when there was none."""
        with self._db.write() as session:
            key = self._db.tenants.get(session, tenant_id)
            try:
                _find(session, key, tenant_id, file_id)
            except NotFound:
                return False
            attached = session.scalars(
                select(VectorStoreFileRecord.vector_store_id)
                .where(VectorStoreFileRecord.file_id == file_id)
                .order_by(VectorStoreFileRecord.vector_store_id)
            ).all()
            for vector_store_id in attached:
                lock_and_bump(session, tenant_id, vector_store_id, removes=True)
            session.execute(delete(FileRecord).where(FileRecord.id == file_id))
        self._db.scrub()
        return True


def _rows() -> Select[str, bytes, str, int, float]:
    return select(
        FileRecord.id,
        FileRecord.sealed_name,
        FileRecord.purpose,
        FileRecord.size,
        FileRecord.created_at,
    )


def _find(session: Session, key: DataKey, tenant_id: str, file_id: str) -> FileRow:
    found = session.execute(
        _rows().where(FileRecord.id == file_id, FileRecord.tenant_id == tenant_id)
    ).one_or_none()
    if found is None:
        raise NotFound("There is no such file.")
    return _read(key, tenant_id, found)


def _read(key: DataKey, tenant_id: str, row: Row[str, bytes, str, int, float]) -> FileRow:
    file_id, sealed_name, purpose, size, created_at = row
    name = open_name(key, tenant_id, file_id, sealed_name)
    return FileRow(file_id, tenant_id, name, purpose, size, created_at)


def open_name(key: DataKey, tenant_id: str, file_id: str, sealed: bytes) -> str:
    """Decrypt a file's name."""
    return key.open(sealed, *_name_place(tenant_id, file_id)).decode("utf-8", "surrogatepass")


def _insert_parts(session: Session, key: DataKey, row: FileRow, content: bytes) -> None:
    for ordinal, start in enumerate(range(0, len(content), PART_BYTES)):
        sealed = key.seal(
            content[start : start + PART_BYTES],
            *_part_place(row.tenant_id, row.id, ordinal, row.size),
        )
        session.execute(insert(FilePartRow).values(file_id=row.id, ordinal=ordinal, sealed=sealed))


def _name_place(tenant_id: str, file_id: str) -> tuple[str, ...]:
    return tenant_id, "files", file_id, "name"


def _part_place(tenant_id: str, file_id: str, ordinal: int, size: int) -> tuple[str, ...]:
    # The size is part of the place, so that pieces cannot be dropped off the end unnoticed.
    return tenant_id, "file_parts", file_id, str(ordinal), str(size)
