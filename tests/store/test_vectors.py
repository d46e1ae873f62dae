import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import event

from store import vector_cache
from store.database import Database
from store.documents import DocumentStore, NewChunk
from store.errors import NotFound
from store.files import FileStore
from store.vectors import VectorIndex, _Loaded, _top

DIMENSIONS = 16


def vectors(count: int, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(count, DIMENSIONS)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class Corpus:
    """One vector store that files of chunks are put into; remembers what search should find."""

    def __init__(self, db: Database, tenant: str = "acme") -> None:
        self.db, self.tenant = db, tenant
        self.documents = DocumentStore(db)
        self.id = self.documents.create(tenant).id

    def add(self, rows: np.ndarray, file_id: str | None = None) -> str:
        if file_id is None:
            file_id = FileStore(self.db).create(self.tenant, "f", "assistants", b"x").id
            self.documents.attach(self.tenant, self.id, file_id)
        chunks = [NewChunk(f"{file_id} {n}", (), row) for n, row in enumerate(rows)]
        self.documents.add_chunks(self.tenant, self.id, file_id, chunks)
        return file_id

    def expected(self, query: np.ndarray, k: int) -> list[int]:
        chunks = self.documents.chunks_of(self.tenant, self.id, embeddings=True)
        scored = [(-float(c.embedding @ query), c.id) for c in chunks]
        return [each for _, each in sorted(scored)[:k]]


@pytest.fixture
def corpus(db: Database) -> Corpus:
    return Corpus(db)


@pytest.fixture
def index(db: Database, tmp_path: Path) -> VectorIndex:
    return VectorIndex(db, tmp_path / "vectors")


def found(index: VectorIndex, corpus: Corpus, query: np.ndarray, k: int = 5) -> list[int]:
    return [each for each, _ in index.search(corpus.tenant, [corpus.id], query, k)]


def test_search_finds_the_nearest_with_their_cosines(corpus: Corpus, index: VectorIndex) -> None:
    corpus.add(vectors(50))
    query = vectors(1, seed=9)[0]
    hits = index.search("acme", [corpus.id], query * 7.5, 5)
    assert [each for each, _ in hits] == corpus.expected(query, 5)
    chunk = corpus.documents.chunks("acme", [hits[0][0]], embeddings=True)[0]
    assert hits[0][1] == pytest.approx(float(chunk.embedding @ query), abs=1e-6)


def test_additions_replacements_and_removals_show_at_once(
    corpus: Corpus, index: VectorIndex
) -> None:
    query = vectors(1, seed=9)[0]
    assert found(index, corpus, query) == []
    first = corpus.add(vectors(30, seed=1))
    assert found(index, corpus, query) == corpus.expected(query, 5)
    second = corpus.add(vectors(30, seed=2))
    assert found(index, corpus, query) == corpus.expected(query, 5)
    corpus.add(vectors(10, seed=3), file_id=first)
    assert found(index, corpus, query, 100) == corpus.expected(query, 100)
    assert len(found(index, corpus, query, 100)) == 40
    corpus.documents.detach("acme", corpus.id, second)
    assert found(index, corpus, query, 100) == corpus.expected(query, 100)
    FileStore(corpus.db).delete("acme", first)
    assert found(index, corpus, query, 100) == []


def test_what_is_there_is_not_read_again(corpus: Corpus, index: VectorIndex) -> None:
    query = vectors(1, seed=9)[0]
    corpus.add(vectors(30, seed=1))
    found(index, corpus, query)
    corpus.add(vectors(2, seed=2))
    read: list[int] = []
    original = vector_cache_free_embedding_reader(read)
    found(index, corpus, query)
    original()
    assert len(read) == 2


def vector_cache_free_embedding_reader(read: list[int]):  # type: ignore[no-untyped-def]
    """Count the embeddings that the index decrypts; returns the function that stops it."""
    from store import vectors as module

    real = module.open_embedding

    def counting(*args):  # type: ignore[no-untyped-def]
        read.append(1)
        return real(*args)

    module.open_embedding = counting
    return lambda: setattr(module, "open_embedding", real)


def test_equal_scores_come_in_order_of_the_chunks(
    corpus: Corpus, index: VectorIndex, tmp_path: Path
) -> None:
    same = np.repeat(vectors(1, seed=4), 60, axis=0)
    first = corpus.add(same[:40])
    corpus.add(vectors(20, seed=5))
    corpus.add(same)
    query = vectors(1, seed=4)[0]
    everything = [c.id for c in corpus.documents.chunks_of("acme", corpus.id, first)]
    assert found(index, corpus, query, 3) == sorted(everything)[:3]
    assert found(index, corpus, query, 40) == sorted(everything)
    fresh = VectorIndex(corpus.db, tmp_path / "fresh")
    assert found(fresh, corpus, query, 70) == found(index, corpus, query, 70)


def test_equal_scores_do_not_depend_on_the_order_in_the_index() -> None:
    import faiss

    rows = np.repeat(vectors(1, seed=4), 200, axis=0)
    loaded = _Loaded("acme", "vs_1", index=faiss.IndexIDMap(faiss.IndexFlatIP(DIMENSIONS)))
    loaded.index.add_with_ids(rows, np.arange(200, 0, -1))
    for k in (1, 7, 150, 300):
        hits = _top(loaded, rows[:1], k, None)
        assert [each for each, _ in hits] == list(range(1, min(k, 200) + 1))
    chosen = np.arange(50, 150)
    assert [each for each, _ in _top(loaded, rows[:1], 3, chosen)] == [50, 51, 52]


def test_several_vector_stores_are_searched_as_one(
    db: Database, corpus: Corpus, index: VectorIndex
) -> None:
    other = Corpus(db)
    corpus.add(vectors(20, seed=1))
    other.add(vectors(20, seed=2))
    query = vectors(1, seed=9)[0]
    both = index.search("acme", [corpus.id, other.id, corpus.id], query, 6)
    one = index.search("acme", [corpus.id], query, 6)
    two = index.search("acme", [other.id], query, 6)
    assert both == sorted(one + two, key=lambda hit: (-hit[1], hit[0]))[:6]


def test_search_within_chosen_files(corpus: Corpus, index: VectorIndex) -> None:
    corpus.add(vectors(20, seed=1))
    chosen = corpus.add(vectors(20, seed=2))
    query = vectors(1, seed=9)[0]
    hits = index.search("acme", [corpus.id], query, 50, file_ids=[chosen])
    of_file = {c.id for c in corpus.documents.chunks_of("acme", corpus.id, chosen)}
    assert {each for each, _ in hits} == of_file
    assert [each for each, _ in hits] == [
        each for each in corpus.expected(query, 50) if each in of_file
    ]
    assert len(index.search("acme", [corpus.id], query, 3, file_ids=[chosen])) == 3
    assert index.search("acme", [corpus.id], query, 3, file_ids=[]) == []
    assert index.search("acme", [corpus.id], query, 3, file_ids=["file-none"]) == []


def test_other_tenants_and_bad_questions_are_refused(corpus: Corpus, index: VectorIndex) -> None:
    corpus.add(vectors(3))
    query = vectors(1)[0]
    assert len(found(index, corpus, query)) == 3
    for tenant, store in (("other", corpus.id), ("acme", "vs_none")):
        with pytest.raises(NotFound):
            index.search(tenant, [store], query, 1)
    for bad, k in ((query[:5], 1), (query * np.nan, 1), (query, 0), (query[None, :], 1)):
        with pytest.raises(ValueError):
            index.search("acme", [corpus.id], bad, k)
    corpus.documents.delete("acme", corpus.id)
    with pytest.raises(NotFound):
        index.search("acme", [corpus.id], query, 1)


def test_the_kept_file_saves_the_next_start_reading_sql(
    corpus: Corpus, index: VectorIndex, tmp_path: Path
) -> None:
    corpus.add(vectors(100, seed=1))
    query = vectors(1, seed=9)[0]
    found(index, corpus, query)
    path = vector_cache.cache_path(tmp_path / "vectors", corpus.id)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    corpus.add(vectors(3, seed=2))  # kept file is now old; the rest comes from SQL
    read: list[int] = []
    stop = vector_cache_free_embedding_reader(read)
    try:
        assert found(VectorIndex(corpus.db, tmp_path / "vectors"), corpus, query) == (
            corpus.expected(query, 5)
        )
    finally:
        stop()
    assert len(read) == 3


def test_a_kept_file_forgets_what_was_removed_since(
    corpus: Corpus, index: VectorIndex, tmp_path: Path
) -> None:
    gone = corpus.add(vectors(100, seed=1))
    corpus.add(vectors(10, seed=2))
    query = vectors(1, seed=9)[0]
    found(index, corpus, query)
    corpus.documents.detach("acme", corpus.id, gone)
    fresh = VectorIndex(corpus.db, tmp_path / "vectors")
    assert found(fresh, corpus, query, 200) == corpus.expected(query, 200)


def test_closing_keeps_small_changes(corpus: Corpus, index: VectorIndex, tmp_path: Path) -> None:
    corpus.add(vectors(3))
    found(index, corpus, vectors(1)[0])
    path = vector_cache.cache_path(tmp_path / "vectors", corpus.id)
    assert not path.exists()
    index.close()
    assert path.exists()
    assert [p.name for p in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "magic", "header", "swap", "missing"])
def test_a_damaged_file_is_built_anew(
    db: Database, corpus: Corpus, index: VectorIndex, tmp_path: Path, damage: str
) -> None:
    corpus.add(vectors(100, seed=1))
    query = vectors(1, seed=9)[0]
    right = found(index, corpus, query)
    path = vector_cache.cache_path(tmp_path / "vectors", corpus.id)
    raw = bytearray(path.read_bytes())
    if damage == "flip":
        raw[len(raw) // 2] ^= 1
    elif damage == "cut":
        del raw[-10:]
    elif damage == "empty":
        raw.clear()
    elif damage == "magic":
        raw[0] ^= 1
    elif damage == "header":
        raw = raw.replace(b'"version": ', b'"version": 9', 1)
    elif damage == "swap":
        other = Corpus(db)
        other.add(vectors(100, seed=3))
        found(index, other, query)
        raw = bytearray(vector_cache.cache_path(tmp_path / "vectors", other.id).read_bytes())
    path.write_bytes(raw)
    if damage == "missing":
        path.unlink()
    read: list[int] = []
    stop = vector_cache_free_embedding_reader(read)
    try:
        assert found(VectorIndex(db, tmp_path / "vectors"), corpus, query) == right
    finally:
        stop()
    assert len(read) == 100


def test_a_folder_that_cannot_be_written_only_slows_the_next_start(
    corpus: Corpus, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    index = VectorIndex(corpus.db, tmp_path / "file")
    corpus.add(vectors(100))
    query = vectors(1, seed=9)[0]
    assert found(index, corpus, query) == corpus.expected(query, 5)
    assert "could not be kept" in caplog.text


def test_memory_is_bounded_and_pruning_deletes_orphans(db: Database, tmp_path: Path) -> None:
    index = VectorIndex(db, tmp_path / "v", max_bytes=100 * DIMENSIONS * 4)
    stores = [Corpus(db) for _ in range(3)]
    query = vectors(1, seed=9)[0]
    for number, each in enumerate(stores):
        each.add(vectors(80, seed=number))
        assert found(index, each, query) == each.expected(query, 5)
        assert sum(loaded.bytes for loaded in index._known.values()) <= 100 * DIMENSIONS * 4
    assert found(index, stores[0], query) == stores[0].expected(query, 5)
    stores[0].documents.delete("acme", stores[0].id)
    assert index.prune() == 1
    assert len(list((tmp_path / "v").iterdir())) == 2


def test_ingestion_and_search_at_the_same_time(corpus: Corpus, index: VectorIndex) -> None:
    query = vectors(1, seed=9)[0]
    stop = threading.Event()
    sizes: list[int] = []

    def search() -> None:
        while not stop.is_set():
            hits = found(index, corpus, query, 1000)
            assert len(hits) == len(set(hits)) and len(hits) % 10 == 0
            sizes.append(len(hits))

    def ingest(worker: int) -> None:
        for number in range(6):
            file_id = corpus.add(vectors(10, seed=100 * worker + number))
            if number % 3 == 2:
                corpus.documents.detach("acme", corpus.id, file_id)

    with ThreadPoolExecutor(5) as pool:
        searching = [pool.submit(search) for _ in range(2)]
        for job in [pool.submit(ingest, worker) for worker in range(3)]:
            job.result()
        stop.set()
        for job in searching:
            job.result()
    assert max(sizes) > 0
    assert found(index, corpus, query, 1000) == corpus.expected(query, 1000)
    assert len(found(index, corpus, query, 1000)) == 120


def test_a_search_costs_few_statements(corpus: Corpus, index: VectorIndex) -> None:
    corpus.add(vectors(20))
    query = vectors(1)[0]
    found(index, corpus, query)
    statements: list[str] = []
    event.listen(corpus.db.engine, "before_cursor_execute", lambda *a: statements.append(a[2]))
    found(index, corpus, query)
    assert len([s for s in statements if not s.startswith("BEGIN")]) <= 2
