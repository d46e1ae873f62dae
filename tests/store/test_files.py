import secrets
import time

import pytest
from sqlalchemy import text

from store.database import Database
from store.errors import NotFound, SealBroken, UnknownTenant
from store.files import PART_BYTES, FileStore


@pytest.mark.parametrize("size", [0, 1, PART_BYTES, PART_BYTES + 1, 3 * PART_BYTES])
def test_content_comes_back_byte_for_byte(db: Database, size: int) -> None:
    files, content = FileStore(db), secrets.token_bytes(size)
    row = files.create("acme", "Ödön Varga.pdf", "assistants", content)
    assert row.id.startswith("file-") and row.size == size
    assert files.content("acme", row.id) == content
    assert files.get("acme", row.id) == row


def test_files_belong_to_their_tenant(db: Database) -> None:
    files = FileStore(db)
    row = files.create("acme", "a.txt", "assistants", b"x")
    for call in (files.get, files.content):
        with pytest.raises(NotFound):
            call("other", row.id)
    assert files.list("other") == []
    assert files.delete("other", row.id) is False
    assert files.content("acme", row.id) == b"x"
    with pytest.raises(UnknownTenant):
        files.create("nobody", "a.txt", "assistants", b"x")


def test_listing_pages_filters_and_orders(db: Database) -> None:
    files = FileStore(db)
    rows = []
    for number in range(5):
        purpose = "assistants" if number % 2 else "fine-tune"
        rows.append(files.create("acme", f"{number}.txt", purpose, b"x"))
        time.sleep(0.001)
    assert files.list("acme", order="asc") == rows
    assert files.list("acme") == rows[::-1]
    assert files.list("acme", order="asc", after=rows[1].id, limit=2) == rows[2:4]
    assert files.list("acme", after=rows[1].id) == rows[:1]
    assert files.list("acme", purpose="assistants", order="asc") == [rows[1], rows[3]]
    with pytest.raises(NotFound):
        files.list("acme", after="file-none")


def test_deleting_leaves_nothing(db: Database) -> None:
    files = FileStore(db)
    row = files.create("acme", "a.txt", "assistants", b"x")
    assert files.delete("acme", row.id) is True
    assert files.delete("acme", row.id) is False
    with pytest.raises(NotFound):
        files.content("acme", row.id)
    with db.read() as session:
        assert session.scalar(text("SELECT count(*) FROM file_parts")) == 0


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM file_parts WHERE ordinal = 1",
        "UPDATE file_parts SET ordinal = ordinal + 1 WHERE ordinal = 1",
        "UPDATE file_parts SET sealed ="
        " (SELECT p.sealed FROM file_parts p WHERE p.ordinal = 0) WHERE ordinal = 1",
    ],
)
def test_missing_and_swapped_pieces_are_noticed(db: Database, damage: str) -> None:
    files = FileStore(db)
    row = files.create("acme", "a.txt", "assistants", secrets.token_bytes(2 * PART_BYTES))
    with db.write() as session:
        session.execute(text(damage))
    with pytest.raises(SealBroken):
        files.content("acme", row.id)
