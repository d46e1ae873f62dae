"""What an attacker who holds the files of the database, but not the master key, can read."""

import base64
from dataclasses import replace
from pathlib import Path

import numpy as np
from sqlalchemy import select
from store_databases import MASTER
from store_workload import charge

from privacy.types import Span
from store.database import Database
from store.documents import DocumentStore, NewChunk
from store.files import FileStore
from store.keys import KeyStore
from store.models import SessionRow
from store.responses import ResponseStore
from store.sessions import Change, Entry, SessionStore
from store.tenants import TenantStore
from store.vectors import VectorIndex

WORDS = {
    name: f"Canary{name}Qx7"
    for name in (
        "original",
        "substitute",
        "key",
        "detail",
        "state",
        "session",
        "filename",
        "content",
        "chunk",
        "attribute",
        "storename",
        "metadata",
        "error",
        "response",
    )
}


def everything_on_disk(folder: Path) -> bytes:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert any(path.name.endswith("-wal") and path.stat().st_size for path in files)
    return b"\0".join(path.read_bytes() for path in files)


def fill(db: Database, folder: Path) -> tuple[str, np.ndarray]:
    """Store every canary; returns the API key and the embedding that went in."""
    plain, _ = KeyStore(db).create("client", "acme")
    sessions = SessionStore(db)
    opened = sessions.open("acme", WORDS["session"], "p1")
    entry = Entry(
        "person.family",
        WORDS["key"],
        WORDS["original"],
        WORDS["substitute"],
        3,
        {"form": WORDS["detail"]},
        "PERSON",
    )
    hasher = TenantStore(db).entity_hasher("acme")
    bill = replace(charge("x"), entity_hmac=hasher("person.family", WORDS["key"]))
    change = Change([entry], [bill], {"note": WORDS["state"]})
    sessions.apply("acme", WORDS["session"], "r", lambda _: change)
    answer = {"text": WORDS["response"]}
    ResponseStore(db).add(
        "acme", WORDS["session"], "resp_1", None, answer, session_created_at=opened.created_at
    )
    content = (WORDS["content"] + " ") * 50_000
    file = FileStore(db).create("acme", WORDS["filename"], "assistants", content.encode())
    documents = DocumentStore(db)
    store = documents.create("acme", WORDS["storename"], {"k": WORDS["metadata"]})
    documents.attach("acme", store.id, file.id, {"a": WORDS["attribute"]})
    row = np.random.default_rng(5).normal(size=384).astype(np.float32)
    row /= np.linalg.norm(row)
    chunk = NewChunk(WORDS["chunk"], [Span(0, 6, "PERSON", 1.0, "ner")], row)
    documents.add_chunks("acme", store.id, file.id, [chunk] * 100)
    stored = documents.chunks_of("acme", store.id, embeddings=True)[0].embedding
    documents.attach("acme", store.id, FileStore(db).create("acme", "x", "a", b"y").id)
    documents.fail("acme", store.id, documents.pending()[0][2], "bad", WORDS["error"])
    VectorIndex(db, folder / "vectors").search("acme", [store.id], row, 1)
    return plain, stored


def test_no_file_holds_a_secret_in_the_clear(sqlite_db: Database, tmp_path: Path) -> None:
    api_key, embedding = fill(sqlite_db, tmp_path)
    raw = everything_on_disk(tmp_path)
    assert b"person.family" in raw  # the search below would find what is in the clear
    for word in [*WORDS.values(), api_key, api_key[8:]]:
        for form in (word, word.casefold()):
            assert form.encode() not in raw
            assert form.encode("utf-16-le") not in raw
            assert base64.b64encode(form.encode())[4:-4] not in raw
            assert form.encode().hex().encode() not in raw
    for start in range(0, 384, 4):
        assert embedding[start : start + 4].tobytes() not in raw
    assert MASTER not in raw and base64.b64encode(MASTER) not in raw


def test_everything_is_there_for_who_holds_the_key(sqlite_db: Database, tmp_path: Path) -> None:
    fill(sqlite_db, tmp_path)
    snapshot = SessionStore(sqlite_db).get("acme", WORDS["session"])
    assert snapshot is not None and snapshot.entries[0].original == WORDS["original"]
    stored = ResponseStore(sqlite_db).get("acme", "resp_1")
    assert stored.content == {"text": WORDS["response"]}
    file = FileStore(sqlite_db).list("acme", order="asc")[0]
    assert file.filename == WORDS["filename"]
    assert WORDS["content"].encode() in FileStore(sqlite_db).content("acme", file.id)


def test_a_forgotten_session_leaves_not_even_its_wrapped_key(
    sqlite_db: Database, tmp_path: Path
) -> None:
    fill(sqlite_db, tmp_path)
    with sqlite_db.read() as session:
        wrapped = session.scalar(select(SessionRow.wrapped_key))
    assert wrapped is not None
    assert wrapped in everything_on_disk(tmp_path)
    assert SessionStore(sqlite_db).forget("acme", WORDS["session"])
    TenantStore(sqlite_db).create("next")  # so that there is a log again to search
    assert wrapped not in everything_on_disk(tmp_path)
