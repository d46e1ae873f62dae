"""Stored responses: chains, tenants, and that they end with their session, on both databases."""

import time

import pytest
from sqlalchemy import text, update
from store_workload import draw

from store.database import Database
from store.errors import NotFound, SealBroken
from store.models import ResponseRow, SessionRow
from store.responses import MOST_TURNS, ResponseStore
from store.sessions import SessionStore
from store.tenants import TenantStore

SECRET = "Ilse Varga asked"


def add(
    db: Database,
    name: str,
    previous: str | None = None,
    session: str = "s",
    created_at: float | None = None,
) -> bool:
    if created_at is None:
        created_at = SessionStore(db).open("acme", session, "p1").created_at
    content = {"input": [SECRET, name]}
    return ResponseStore(db).add(
        "acme", session, name, previous, content, session_created_at=created_at
    )


@pytest.fixture
def chained(db: Database) -> ResponseStore:
    SessionStore(db).open("acme", "s", "p1")
    assert add(db, "resp_1") and add(db, "resp_2", "resp_1") and add(db, "resp_3", "resp_2")
    return ResponseStore(db)


def test_a_chain_comes_back_oldest_first(db: Database, chained: ResponseStore) -> None:
    assert add(db, "resp_2b", "resp_1")
    assert [t.id for t in chained.chain("acme", "resp_3")] == ["resp_1", "resp_2", "resp_3"]
    assert [t.id for t in chained.chain("acme", "resp_2b")] == ["resp_1", "resp_2b"]
    turn = chained.get("acme", "resp_2")
    assert (turn.session_id, turn.previous_id) == ("s", "resp_1")
    assert turn.content == {"input": [SECRET, "resp_2"]}
    assert SECRET not in repr(turn)


def test_tenants_do_not_meet(db: Database, chained: ResponseStore) -> None:
    created_at = SessionStore(db).open("other", "s", "p1").created_at
    for call in (chained.get, chained.chain):
        with pytest.raises(NotFound):
            call("other", "resp_1")
    assert chained.delete("other", "resp_1") is False
    assert chained.get("acme", "resp_1").id == "resp_1"
    # Another tenant can not continue it either.
    assert chained.add(
        "other", "s", "resp_x", "resp_3", {"input": []}, session_created_at=created_at
    )
    with pytest.raises(NotFound):
        chained.chain("other", "resp_x")


def test_a_deleted_turn_breaks_the_chain(chained: ResponseStore) -> None:
    assert chained.delete("acme", "resp_1") is True
    assert chained.delete("acme", "resp_1") is False
    assert chained.get("acme", "resp_3").id == "resp_3"
    with pytest.raises(NotFound):
        chained.chain("acme", "resp_3")


def count(db: Database) -> int:
    with db.read() as session:
        return int(session.scalar(text("SELECT count(*) FROM responses")) or 0)


def test_forgetting_a_session_forgets_its_responses(db: Database, chained: ResponseStore) -> None:
    sessions = SessionStore(db)
    sessions.open("acme", "t", "p1")
    assert add(db, "resp_t", session="t")
    sessions.apply("acme", "s", "r", draw("Varga"))
    assert sessions.forget("acme", "s")
    assert count(db) == 1
    assert chained.get("acme", "resp_t").session_id == "t"
    TenantStore(db).forget("acme")
    assert count(db) == 0


def test_an_expired_session_has_no_responses(db: Database, chained: ResponseStore) -> None:
    with db.write() as session:
        session.execute(update(SessionRow).values(last_used_at=time.time() - 100))
    short = ResponseStore(db, ttl=50)
    with pytest.raises(NotFound):
        short.get("acme", "resp_1")
    with pytest.raises(NotFound):
        short.chain("acme", "resp_3")
    assert chained.get("acme", "resp_1").id == "resp_1"
    assert SessionStore(db, ttl=50).expire() == 1
    assert count(db) == 0


def test_nothing_is_kept_for_a_session_forgotten_meanwhile(db: Database) -> None:
    sessions = SessionStore(db)
    created_at = sessions.open("acme", "s", "p1").created_at
    sessions.forget("acme", "s")
    assert add(db, "resp_1", created_at=created_at) is False
    time.sleep(0.01)
    sessions.open("acme", "s", "p1")  # a younger one under the same id
    assert add(db, "resp_1", created_at=created_at) is False
    assert count(db) == 0
    assert add(db, "resp_1") is True


def test_a_session_of_a_gateway_whose_clock_is_ahead_keeps_responses(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as ahead:
        now = time.time() + 60
        ahead.setattr(time, "time", lambda: now)
        SessionStore(db).open("acme", "s", "p1")
    assert add(db, "resp_1") is True


def test_a_moved_or_damaged_row_does_not_open(db: Database, chained: ResponseStore) -> None:
    with db.write() as session:
        sealed = session.scalar(text("SELECT sealed FROM responses WHERE id = 'resp_1'"))
        session.execute(update(ResponseRow).where(ResponseRow.id == "resp_2").values(sealed=sealed))
    with pytest.raises(SealBroken):
        chained.get("acme", "resp_2")


def test_long_conversations_have_an_end(db: Database) -> None:
    SessionStore(db).open("acme", "s", "p1")
    add(db, "resp_0")
    with db.write() as session:
        row = session.get(ResponseRow, "resp_0")
        assert row is not None
        session.add_all(
            ResponseRow(
                id=f"resp_{n}",
                session_pk=row.session_pk,
                previous_id=f"resp_{n - 1}",
                sealed=row.sealed,
                created_at=row.created_at,
            )
            for n in range(1, MOST_TURNS + 1)
        )
    with pytest.raises(OverflowError):
        ResponseStore(db).chain("acme", f"resp_{MOST_TURNS}")
