"""How chunks stand in the database: what is sealed where, and how vector stores are versioned."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import insert, select, update
from sqlalchemy.orm import Session

from privacy.types import Span
from store.crypto import DataKey
from store.errors import NotFound
from store.models import ChunkRow, VectorStoreRecord


@dataclass(frozen=True)
class NewChunk:
    """A chunk to be stored.

    Attributes:
        text: Its text.
        spans: Entities in it, offsets in code points of ``text``.
        embedding: Shape (dimensions,), finite; stored with unit length as float32.
    """

    text: str = field(repr=False)
    spans: Sequence[Span] = ()
    embedding: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, np.float32))


def no_vector_store() -> NotFound:
    """Return the error for a vector store that the tenant does not have."""
    return NotFound("There is no such vector store.")


def lock_and_bump(
    session: Session, tenant_id: str, vector_store_id: str, *, removes: bool
) -> tuple[int, int | None]:
    """Lock a vector store and raise its version; returns (new version, dimensions).

    Whoever changes chunks does this first, so versions are handed out in commit order.

    Raises:
        NotFound: The tenant has no such vector store.
    """
    row = session.execute(
        select(VectorStoreRecord.version, VectorStoreRecord.dimensions)
        .where(VectorStoreRecord.id == vector_store_id, VectorStoreRecord.tenant_id == tenant_id)
        .with_for_update()
    ).one_or_none()
    if row is None:
        raise no_vector_store()
    version = row.version + 1
    values: dict[str, Any] = {"version": version}
    if removes:
        values["removed_version"] = version
    session.execute(
        update(VectorStoreRecord).where(VectorStoreRecord.id == vector_store_id).values(**values)
    )
    return version, row.dimensions


def unit_rows(chunks: Sequence[NewChunk], dimensions: int | None) -> NDArray[np.float32]:
    """Return the embeddings as unit rows, shape (n, dimensions); a zero row stays zero.

    Raises ValueError when one has another length than the others or is not finite.
    """
    width = dimensions or len(chunks[0].embedding)
    if width == 0 or any(np.shape(chunk.embedding) != (width,) for chunk in chunks):
        raise ValueError(f"every embedding of this vector store must have shape ({width},)")
    rows = np.stack([np.asarray(chunk.embedding, dtype=np.float32) for chunk in chunks])
    return normalised(rows)


def normalised(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale rows to unit length.  Raises ValueError when a value is not finite."""
    if not np.isfinite(rows).all():
        raise ValueError("an embedding holds a value that is not finite")
    norms = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
    return np.asarray(rows / np.where(norms > 0, norms, 1.0), dtype=np.float32)


def insert_chunks(
    session: Session,
    key: DataKey,
    where: tuple[str, str, str],
    version: int,
    chunks: Sequence[NewChunk],
    rows: NDArray[np.float32],
) -> None:
    """Insert chunks with ordinals 0, 1, ...; ``where`` is (tenant, vector store, file)."""
    _, vector_store_id, file_id = where
    values = [
        {
            "vector_store_id": vector_store_id,
            "file_id": file_id,
            "ordinal": ordinal,
            "added_version": version,
            "sealed_text": key.seal(_write_text(chunk), *_place(where, ordinal, "text")),
            "sealed_embedding": key.seal(row.tobytes(), *_place(where, ordinal, "embedding")),
        }
        for ordinal, (chunk, row) in enumerate(zip(chunks, rows, strict=True))
    ]
    for start in range(0, len(values), 500):
        session.execute(insert(ChunkRow), values[start : start + 500])


def open_text(
    key: DataKey, where: tuple[str, str, str], ordinal: int, sealed: bytes
) -> tuple[str, tuple[Span, ...]]:
    """Decrypt a chunk's text and spans."""
    text, spans = json.loads(key.open(sealed, *_place(where, ordinal, "text")))
    return text, tuple(Span(*span) for span in spans)


def open_embedding(
    key: DataKey, where: tuple[str, str, str], ordinal: int, sealed: bytes
) -> NDArray[np.float32]:
    """Decrypt a chunk's embedding, shape (dimensions,)."""
    plain = key.open(sealed, *_place(where, ordinal, "embedding"))
    return np.frombuffer(plain, dtype="<f4").astype(np.float32)


def _write_text(chunk: NewChunk) -> bytes:
    spans = [(s.start, s.end, s.type, s.score, s.recognizer) for s in chunk.spans]
    return json.dumps([chunk.text, spans]).encode()


def _place(where: tuple[str, str, str], ordinal: int, column: str) -> Iterable[str]:
    tenant_id, vector_store_id, file_id = where
    return tenant_id, "chunks", vector_store_id, file_id, str(ordinal), column
