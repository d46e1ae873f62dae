"""Similarity search: one exact FAISS index per vector store, a cache of what SQL holds.

Every search compares the version in SQL with the version of the index in memory and fetches only
what was added or removed since, so that ingestion in this process or another shows at once.  What
is kept on disk only saves work at the next start; it may be old, damaged or missing.
"""

import importlib
import logging
from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select
from sqlalchemy.orm import Session

from store import vector_cache
from store.chunk_rows import no_vector_store, normalised, open_embedding
from store.crypto import DataKey
from store.errors import SealBroken
from store.models import ChunkRow, VectorStoreRecord

if TYPE_CHECKING:
    from store.database import Database

_SAVE_MIN_ROWS: Final = 64
_BATCH: Final = 4096
_log = logging.getLogger(__name__)


@dataclass
class _Loaded:
    """An index in memory; every use holds ``lock``."""

    tenant_id: str
    vector_store_id: str
    lock: Lock = field(default_factory=Lock)
    index: Any = None  # faiss.IndexIDMap over IndexFlatIP, None while empty
    ids: set[int] = field(default_factory=set)
    version: int = 0
    unsaved: int = 0
    key: DataKey | None = None

    @property
    def bytes(self) -> int:
        return 0 if self.index is None else 4 * self.index.ntotal * self.index.d


class VectorIndex:
    """Searches vector stores.  Thread-safe; searches of one vector store take turns."""

    def __init__(self, db: "Database", folder: Path, *, max_bytes: int = 1 << 30) -> None:
        """Args:
        db: An upgraded database.
        folder: Where indexes are kept; made with mode 0700 when first needed.
        max_bytes: Vectors kept in memory; the indexes used longest ago leave first.
        """
        self._db = db
        self._folder = folder
        self._max_bytes = max_bytes
        self._known: OrderedDict[str, _Loaded] = OrderedDict()
        self._lock = Lock()

    def search(
        self,
        tenant_id: str,
        vector_store_ids: Sequence[str],
        query: NDArray[np.float32],
        k: int,
        *,
        file_ids: Collection[str] | None = None,
    ) -> list[tuple[int, float]]:
        """Return up to ``k`` pairs (chunk id, cosine similarity), best first.

        Equal scores come in order of the chunk id, so the result is the same in every process and
        after every rebuild.

        Args:
            query: Shape (dimensions,), any length but zero; compared by direction only.
            file_ids: When given, only chunks of these files.

        Raises:
            NotFound: The tenant has no such vector store.
            ValueError: Wrong shape, a value that is not finite, or ``k`` below 1.
        """
        if k < 1 or query.ndim != 1:
            raise ValueError("a search needs k >= 1 and a query of shape (dimensions,)")
        row = normalised(np.asarray(query, dtype=np.float32)[None, :])
        hits: list[tuple[int, float]] = []
        with self._db.read() as session:
            key = self._db.tenants.get(session, tenant_id)
            for vector_store_id in dict.fromkeys(vector_store_ids):
                allowed = _ids_of_files(session, vector_store_id, file_ids)
                loaded = self._loaded(tenant_id, vector_store_id)
                with loaded.lock:
                    self._catch_up(session, key, loaded)
                    hits += _top(loaded, row, k, allowed)
        self._make_room()
        return sorted(hits, key=lambda hit: (-hit[1], hit[0]))[:k]

    def _loaded(self, tenant_id: str, vector_store_id: str) -> _Loaded:
        with self._lock:
            found = self._known.get(vector_store_id)
            if found is None or found.tenant_id != tenant_id:
                found = _Loaded(tenant_id, vector_store_id)
                self._known[vector_store_id] = found
            self._known.move_to_end(vector_store_id)
            return found

    def _make_room(self) -> None:
        with self._lock:
            total = sum(loaded.bytes for loaded in self._known.values())
            while total > self._max_bytes and len(self._known) > 1:
                _, gone = self._known.popitem(last=False)
                total -= gone.bytes

    def _catch_up(self, session: Session, key: DataKey, loaded: _Loaded) -> None:
        """Bring an index to the version that ``session`` sees, or leave it if it is newer."""
        state = session.execute(
            select(
                VectorStoreRecord.version,
                VectorStoreRecord.removed_version,
                VectorStoreRecord.dimensions,
            ).where(
                VectorStoreRecord.id == loaded.vector_store_id,
                VectorStoreRecord.tenant_id == loaded.tenant_id,
            )
        ).one_or_none()
        if state is None:
            self._drop(loaded)
            raise no_vector_store()
        loaded.key = key
        if loaded.version >= state.version:
            return
        if loaded.version == 0:
            self._read_kept(session, loaded, key, state.version)
        changed = 0
        if loaded.version < state.removed_version:
            changed += _remove_gone(loaded, _all_ids(session, loaded.vector_store_id))
        if state.dimensions is not None:
            changed += _add_new(session, key, loaded, state.dimensions)
        loaded.version = state.version
        loaded.unsaved += changed
        if loaded.unsaved >= max(_SAVE_MIN_ROWS, len(loaded.ids) // 10):
            self._keep(loaded)

    def _read_kept(self, session: Session, loaded: _Loaded, key: DataKey, newest: int) -> None:
        """Start from the file on disk if it is sound and of this database's past."""
        faiss = _faiss()
        try:
            version, content = vector_cache.read(
                self._folder, key, loaded.tenant_id, loaded.vector_store_id
            )
        except FileNotFoundError:
            return
        except (SealBroken, OSError):
            _log.warning("the kept index of %s is unusable; building anew", loaded.vector_store_id)
            return
        index = faiss.deserialize_index(np.frombuffer(content, dtype=np.uint8))
        ids = {int(each) for each in faiss.vector_to_array(index.id_map)}
        upto = _all_ids(session, loaded.vector_store_id, version)
        # A database restored from an old backup may lack what the file holds.
        if version <= newest and upto <= ids:
            loaded.index, loaded.ids, loaded.version = index, ids, version
            _remove_gone(loaded, _all_ids(session, loaded.vector_store_id))

    def _keep(self, loaded: _Loaded) -> None:
        faiss = _faiss()
        if loaded.index is None or loaded.key is None:
            return
        content = faiss.serialize_index(loaded.index).tobytes()
        header = vector_cache.Header(
            loaded.tenant_id, loaded.vector_store_id, loaded.version, len(content)
        )
        try:
            vector_cache.save(self._folder, loaded.key, header, content)
        except OSError as error:
            # Searching goes on from memory; only the next start is slower.
            _log.warning("the index could not be kept on disk: %s", type(error).__name__)
        else:
            loaded.unsaved = 0

    def _drop(self, loaded: _Loaded) -> None:
        with self._lock:
            if self._known.get(loaded.vector_store_id) is loaded:
                del self._known[loaded.vector_store_id]
        vector_cache.cache_path(self._folder, loaded.vector_store_id).unlink(missing_ok=True)

    def prune(self) -> int:
        """Delete kept files of vector stores that no longer exist; returns how many."""
        with self._db.read() as session:
            alive = set(session.scalars(select(VectorStoreRecord.id)))
        gone = 0
        for path in self._folder.glob(f"*{vector_cache.SUFFIX}"):
            if path.stem not in alive:
                path.unlink(missing_ok=True)
                gone += 1
        return gone

    def close(self) -> None:
        """Keep on disk what has changed since it was last kept."""
        with self._lock:
            known = list(self._known.values())
        for loaded in known:
            with loaded.lock:
                if loaded.unsaved:
                    self._keep(loaded)


def _faiss() -> Any:
    # Imported when first searched (0.2 s of CPU); untyped, its stubs lack what is used here.
    return importlib.import_module("faiss")


def _all_ids(session: Session, vector_store_id: str, upto: int | None = None) -> set[int]:
    query = select(ChunkRow.id).where(ChunkRow.vector_store_id == vector_store_id)
    if upto is not None:
        query = query.where(ChunkRow.added_version <= upto)
    return set(session.scalars(query))


def _ids_of_files(
    session: Session, vector_store_id: str, file_ids: Collection[str] | None
) -> NDArray[np.int64] | None:
    if file_ids is None:
        return None
    rows = session.execute(
        select(ChunkRow.id, ChunkRow.file_id).where(ChunkRow.vector_store_id == vector_store_id)
    )
    wanted = set(file_ids)
    return np.array([each for each, file_id in rows if file_id in wanted], dtype=np.int64)


def _remove_gone(loaded: _Loaded, alive: set[int]) -> int:
    gone = loaded.ids - alive
    if gone:
        loaded.index.remove_ids(np.fromiter(gone, dtype=np.int64))
        loaded.ids -= gone
    return len(gone)


def _add_new(session: Session, key: DataKey, loaded: _Loaded, dimensions: int) -> int:
    faiss = _faiss()
    if loaded.index is None:
        loaded.index = faiss.IndexIDMap(faiss.IndexFlatIP(dimensions))
    rows = session.execute(
        select(ChunkRow.id, ChunkRow.file_id, ChunkRow.ordinal, ChunkRow.sealed_embedding)
        .where(
            ChunkRow.vector_store_id == loaded.vector_store_id,
            ChunkRow.added_version > loaded.version,
        )
        .order_by(ChunkRow.id)
        .execution_options(yield_per=_BATCH)
    )
    added = 0
    for batch in rows.partitions():
        new = [row for row in batch if row[0] not in loaded.ids]
        if not new:
            continue
        ids = np.array([row[0] for row in new], dtype=np.int64)
        where = (loaded.tenant_id, loaded.vector_store_id)
        vectors = np.stack([open_embedding(key, (*where, row[1]), row[2], row[3]) for row in new])
        loaded.index.add_with_ids(vectors, ids)
        loaded.ids.update(ids.tolist())
        added += len(new)
    return added


def _top(
    loaded: _Loaded, row: NDArray[np.float32], k: int, allowed: NDArray[np.int64] | None
) -> list[tuple[int, float]]:
    """Return the best ``k``, ties by id: those that stand beside the k-th are fetched as well."""
    faiss = _faiss()
    index = loaded.index
    if index is None or index.ntotal == 0 or (allowed is not None and not len(allowed)):
        return []
    if row.shape[1] != index.d:
        raise ValueError(f"the query must have shape ({index.d},)")
    params = None
    if allowed is not None:
        params = faiss.SearchParameters(sel=faiss.IDSelectorBatch(allowed))
    fetch = min(index.ntotal, k + 16)
    while True:
        scores, ids = index.search(row, fetch, params=params)
        hits = [(int(i), float(s)) for i, s in zip(ids[0], scores[0], strict=True) if i >= 0]
        if fetch == index.ntotal or len(hits) < fetch or hits[-1][1] < hits[k - 1][1]:
            return sorted(hits, key=lambda hit: (-hit[1], hit[0]))[:k]
        fetch = min(index.ntotal, fetch * 4)
