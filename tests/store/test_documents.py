import time
from collections.abc import Sequence

import numpy as np
import pytest

from privacy.types import Span
from store.database import Database
from store.documents import DocumentStore, NewChunk
from store.errors import NotFound
from store.files import FileStore


def unit(seed: int, dimensions: int = 8) -> np.ndarray:
    row = np.random.default_rng(seed).normal(size=dimensions).astype(np.float32)
    return row / np.linalg.norm(row)


def made(texts: Sequence[str], seed: int = 0) -> list[NewChunk]:
    return [
        NewChunk(text, [Span(0, 2, "PERSON", 0.9, "ner")], unit(seed + number))
        for number, text in enumerate(texts)
    ]


@pytest.fixture
def documents(db: Database) -> DocumentStore:
    return DocumentStore(db)


@pytest.fixture
def store_id(documents: DocumentStore) -> str:
    return documents.create("acme", "handbook").id


@pytest.fixture
def file_id(db: Database) -> str:
    return FileStore(db).create("acme", "Várga.txt", "assistants", b"text").id


def test_vector_stores_are_made_changed_listed_and_deleted(documents: DocumentStore) -> None:
    rows = []
    for number in range(4):
        rows.append(documents.create("acme", f"n{number}", {"k": "v"}, {"expires": 7}))
        time.sleep(0.001)
    first = rows[0]
    assert first.id.startswith("vs_") and first.file_counts == dict.fromkeys(
        ("in_progress", "completed", "cancelled", "failed"), 0
    )
    assert documents.get("acme", first.id) == first
    changed = documents.update("acme", first.id, name="new")
    assert (changed.name, changed.metadata, changed.settings) == ("new", {"k": "v"}, {"expires": 7})
    assert documents.update("acme", first.id, metadata={}).name == "new"
    ids = [row.id for row in rows]
    assert [row.id for row in documents.list("acme", order="asc")] == ids
    assert [row.id for row in documents.list("acme", after=ids[2], limit=1)] == [ids[1]]
    assert documents.list("other") == []
    assert documents.delete("other", first.id) is False
    assert documents.delete("acme", first.id) is True
    for call in (documents.get, documents.chunks_of, documents.files, documents.update):
        with pytest.raises(NotFound):
            call("acme", first.id)


def test_chunks_come_back_with_text_spans_and_embeddings(
    documents: DocumentStore, store_id: str, file_id: str
) -> None:
    attached = documents.attach("acme", store_id, file_id, {"year": 1984}, {"type": "auto"})
    assert attached.status == "in_progress"
    done = documents.add_chunks("acme", store_id, file_id, made(["Várga \ud800 🙂", "b"]))
    assert done.status == "completed" and done.usage_bytes > 4
    one, two = documents.chunks_of("acme", store_id, embeddings=True)
    assert (one.text, one.ordinal, one.filename) == ("Várga \ud800 🙂", 0, "Várga.txt")
    assert one.spans == (Span(0, 2, "PERSON", 0.9, "ner"),)
    assert one.attributes == {"year": 1984}
    np.testing.assert_allclose(one.embedding, unit(0), atol=1e-6)
    assert documents.chunks("acme", [two.id, 10**9, one.id]) == [two, one]
    assert documents.chunks_of("acme", store_id, file_id)[0].embedding.shape == (0,)
    row = documents.get("acme", store_id)
    assert row.file_counts["completed"] == 1 and row.usage_bytes == done.usage_bytes


def test_other_tenants_see_nothing(
    db: Database, documents: DocumentStore, store_id: str, file_id: str
) -> None:
    documents.attach("acme", store_id, file_id)
    documents.add_chunks("acme", store_id, file_id, made(["a"]))
    ids = [chunk.id for chunk in documents.chunks_of("acme", store_id)]
    assert documents.chunks("other", ids) == []
    theirs = documents.create("other").id
    for call in (
        lambda: documents.attach("other", theirs, file_id),
        lambda: documents.attach("other", store_id, file_id),
        lambda: documents.file("other", store_id, file_id),
        lambda: documents.detach("other", store_id, file_id),
        lambda: documents.add_chunks("other", store_id, file_id, made(["x"])),
        lambda: documents.chunks_of("other", store_id),
        lambda: documents.set_attributes("other", store_id, file_id, {}),
    ):
        with pytest.raises(NotFound):
            call()
    assert len(documents.chunks_of("acme", store_id)) == 1


def test_ingestion_again_replaces_the_chunks(
    documents: DocumentStore, store_id: str, file_id: str
) -> None:
    documents.attach("acme", store_id, file_id)
    documents.add_chunks("acme", store_id, file_id, made(["a", "b"]))
    old = [chunk.id for chunk in documents.chunks_of("acme", store_id)]
    documents.attach("acme", store_id, file_id, {"new": True})
    assert [c.text for c in documents.chunks_of("acme", store_id)] == ["a", "b"]
    documents.add_chunks("acme", store_id, file_id, made(["c"], seed=5))
    (new,) = documents.chunks_of("acme", store_id)
    assert new.text == "c" and new.id not in old and new.attributes == {"new": True}
    documents.add_chunks("acme", store_id, file_id, [])
    assert documents.chunks_of("acme", store_id) == []


def test_states_of_an_ingestion(documents: DocumentStore, store_id: str, file_id: str) -> None:
    documents.attach("acme", store_id, file_id)
    assert documents.pending() == [("acme", store_id, file_id)]
    failed = documents.fail("acme", store_id, file_id, "invalid_file", "page 3 of Várga.txt")
    assert (failed.status, failed.error_code) == ("failed", "invalid_file")
    assert documents.file("acme", store_id, file_id).error_message == "page 3 of Várga.txt"
    assert documents.pending() == []
    assert documents.cancel("acme", store_id, file_id).status == "failed"
    documents.attach("acme", store_id, file_id)
    assert documents.cancel("acme", store_id, file_id).status == "cancelled"
    with pytest.raises(NotFound, match="cancelled"):
        documents.add_chunks("acme", store_id, file_id, made(["a"]))
    assert documents.chunks_of("acme", store_id) == []
    assert documents.files("acme", store_id, status="cancelled")[0].file_id == file_id
    assert documents.files("acme", store_id, status="failed") == []


def test_a_file_detached_or_deleted_meanwhile_gets_no_chunks(
    db: Database, documents: DocumentStore, store_id: str, file_id: str
) -> None:
    documents.attach("acme", store_id, file_id)
    documents.add_chunks("acme", store_id, file_id, made(["a"]))
    assert documents.detach("acme", store_id, file_id) is True
    assert documents.detach("acme", store_id, file_id) is False
    assert documents.chunks_of("acme", store_id) == []
    with pytest.raises(NotFound):
        documents.add_chunks("acme", store_id, file_id, made(["a"]))
    documents.attach("acme", store_id, file_id)
    documents.add_chunks("acme", store_id, file_id, made(["a"]))
    FileStore(db).delete("acme", file_id)
    assert documents.chunks_of("acme", store_id) == []
    assert documents.files("acme", store_id) == []


def test_attached_files_are_listed_in_pages(
    db: Database, documents: DocumentStore, store_id: str
) -> None:
    ids = []
    for number in range(4):
        ids.append(FileStore(db).create("acme", f"{number}", "assistants", b"x").id)
        documents.attach("acme", store_id, ids[-1])
        time.sleep(0.001)
    listed = documents.files("acme", store_id, order="asc")
    assert [row.file_id for row in listed] == ids
    page = documents.files("acme", store_id, after=ids[3], limit=2)
    assert [row.file_id for row in page] == [ids[2], ids[1]]


@pytest.mark.parametrize(
    "rows",
    [
        [np.ones(8), np.ones(7)],
        [np.ones(5)],
        [np.array([np.nan] * 8)],
        [np.ones((2, 4))],
        [np.zeros(0)],
    ],
)
def test_embeddings_that_do_not_fit_are_refused(
    documents: DocumentStore, store_id: str, file_id: str, rows: list[np.ndarray]
) -> None:
    documents.attach("acme", store_id, file_id)
    documents.add_chunks("acme", store_id, file_id, made(["a"]))
    with pytest.raises(ValueError):
        documents.add_chunks(
            "acme", store_id, file_id, [NewChunk("x", (), row.astype(np.float32)) for row in rows]
        )
    assert [c.text for c in documents.chunks_of("acme", store_id)] == ["a"]


def test_nothing_printed_shows_a_text(
    documents: DocumentStore, store_id: str, file_id: str
) -> None:
    documents.attach("acme", store_id, file_id)
    documents.add_chunks("acme", store_id, file_id, made(["Canary text"]))
    assert "Canary" not in repr(documents.chunks_of("acme", store_id))
    assert "Canary" not in repr(made(["Canary text"]))
