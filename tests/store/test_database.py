import os
import sqlite3
import stat
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect, text
from store_databases import MASTER
from store_workload import draw

from store import migrate
from store.crypto import Keyring
from store.database import Database
from store.errors import NotFound, SchemaTooNew, StoreConflict, StoreUnavailable
from store.files import FileStore
from store.jobs import JobStore
from store.ledger import Ledger
from store.models import Base
from store.responses import ResponseStore
from store.sessions import SessionStore
from store.tenants import TenantStore

ROOT = str(Path(__file__).parents[2])


def tables(db: Database) -> set[str]:
    return set(inspect(db.engine).get_table_names()) - {"alembic_version"}


def test_models_are_what_the_migrations_make(db: Database) -> None:
    with db.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []


def test_up_down_up(empty_url: str) -> None:
    db = Database(empty_url, Keyring(MASTER))
    db.upgrade()
    everything = tables(db)
    assert everything == set(Base.metadata.tables)
    TenantStore(db).create("acme")
    migrate.downgrade(db._writing, "base")
    assert tables(db) == set()
    db.upgrade()
    assert tables(db) == everything
    assert TenantStore(db).list() == []
    db.health()
    db.close()


def test_the_known_head_is_the_newest_migration() -> None:
    assert migrate.revisions()[0] == migrate.HEAD


def test_a_second_start_does_not_load_alembic(db: Database, url: str) -> None:
    program = (
        "import sys; from store.database import Database; from store.crypto import Keyring;"
        f"Database(sys.argv[1], Keyring({MASTER!r})).upgrade(); print('alembic' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, url],
        env={**os.environ, "PYTHONPATH": ROOT},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "False\n"


def test_processes_that_start_together_migrate_once(empty_url: str) -> None:
    program = (
        "import sys; from store.database import Database; from store.crypto import Keyring;"
        f"db = Database(sys.argv[1], Keyring({MASTER!r})); sys.stdin.readline();"
        "db.upgrade(); db.health(); print('ok')"
    )
    starting = [
        subprocess.Popen(
            [sys.executable, "-c", program, empty_url],
            env={**os.environ, "PYTHONPATH": ROOT},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for process in starting:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    assert [process.communicate(timeout=60)[0] for process in starting] == ["ok\n"] * 3


def test_a_database_of_a_newer_version_is_refused(db: Database) -> None:
    with db.write() as session:
        session.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(SchemaTooNew, match="9999.*newer"):
        db.upgrade()
    with pytest.raises(StoreUnavailable, match="schema"):
        db.health()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE ledger SET epsilon = 0",
        "DELETE FROM ledger",
        "DELETE FROM ledger WHERE id = 1",
    ],
)
def test_the_ledger_is_append_only(db: Database, statement: str) -> None:
    sessions = SessionStore(db)
    sessions.open("acme", "s", "p1")
    sessions.apply("acme", "s", "r", draw("Varga"))
    with pytest.raises((StoreConflict, StoreUnavailable)), db.write() as session:
        session.execute(text(statement))
    assert Ledger(db).session_total("acme", "s").epsilon == 0.5


def test_a_ledger_row_cannot_be_replaced_or_truncated(db: Database) -> None:
    sessions = SessionStore(db)
    sessions.open("acme", "s", "p1")
    sessions.apply("acme", "s", "r", draw("Varga"))
    statement = "TRUNCATE ledger"
    if db.dialect == "sqlite":
        statement = (
            "INSERT OR REPLACE INTO ledger SELECT id, tenant_id, session_ref, request_id, account,"
            " fine_type, mechanism, metric, 0, delta, entity_hmac, day, created_at FROM ledger"
        )
    with pytest.raises((StoreConflict, StoreUnavailable)), db.write() as session:
        session.execute(text(statement))
    assert Ledger(db).session_total("acme", "s").epsilon == 0.5


def test_a_failed_write_is_rolled_back(db: Database) -> None:
    with pytest.raises(KeyError), db.write() as session:
        session.execute(text("DELETE FROM tenants"))
        raise KeyError
    assert len(TenantStore(db).list()) == 2


def test_the_sqlite_settings_are_on(sqlite_db: Database) -> None:
    with sqlite_db.read() as session:
        settings = {
            name: session.scalar(text(f"PRAGMA {name}"))
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    assert settings == {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "busy_timeout": 10_000,
    }
    assert sqlite_db.path is not None
    for suffix in ("", "-wal", "-shm"):
        mode = Path(f"{sqlite_db.path}{suffix}").stat().st_mode
        assert stat.S_IMODE(mode) == 0o600


def refused(work: Callable[[], object], *, needle: str) -> None:
    """The work fails as unavailable; neither message nor traceback shows the value written."""
    with pytest.raises(StoreUnavailable, match=needle) as caught:
        work()
    logged = "".join(traceback.format_exception(caught.value))
    assert "sqlalchemy.exc" not in logged and "psycopg.errors" not in logged


def test_a_locked_database_is_reported_and_costs_nothing(sqlite_db: Database) -> None:
    impatient = Database(str(sqlite_db.engine.url), Keyring(MASTER), busy_timeout=0.2)
    sessions = SessionStore(impatient)
    sessions.open("acme", "s", "p1")
    intruder = sqlite3.connect(str(sqlite_db.path), isolation_level=None)
    intruder.execute("BEGIN IMMEDIATE")
    started = time.monotonic()
    refused(lambda: sessions.apply("acme", "s", "r", draw("Varga")), needle="locked")
    assert time.monotonic() - started < 5
    assert sessions.open("acme", "s", "p1").entries == ()  # reading goes on
    intruder.execute("ROLLBACK")
    intruder.close()
    assert len(sessions.apply("acme", "s", "r", draw("Varga")).entries) == 1
    impatient.close()


@pytest.mark.postgres
def test_a_locked_row_of_postgresql_is_reported(postgres_server: "object", tmp_path: Path) -> None:
    url = postgres_server.migrated()  # type: ignore[attr-defined]
    patient = Database(url, Keyring(MASTER))
    TenantStore(patient).create("acme")
    SessionStore(patient).open("acme", "s", "p1")
    impatient = Database(url, Keyring(MASTER), busy_timeout=0.2)
    sessions = SessionStore(impatient)
    with patient.write() as session:
        session.execute(text("SELECT id FROM sessions FOR UPDATE"))
        refused(lambda: sessions.apply("acme", "s", "r", draw("Varga")), needle="locked")
    assert len(sessions.apply("acme", "s", "r", draw("Varga")).entries) == 1
    impatient.close()
    patient.close()


def test_another_thread_that_writes_for_long_is_reported(sqlite_db: Database) -> None:
    impatient = Database(str(sqlite_db.engine.url), Keyring(MASTER), busy_timeout=0.2)
    sessions = SessionStore(impatient)
    sessions.open("acme", "s", "p1")
    holding, done = threading.Event(), threading.Event()

    def hold() -> None:
        with impatient.write():
            holding.set()
            done.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    holding.wait(30)
    refused(lambda: sessions.apply("acme", "s", "r", draw("Varga")), needle="thread")
    done.set()
    thread.join()
    impatient.close()


def test_a_full_disk_is_reported_and_costs_nothing(sqlite_db: Database) -> None:
    files, sessions = FileStore(sqlite_db), SessionStore(sqlite_db)
    sessions.open("acme", "s", "p1")
    with sqlite_db.engine.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
    sqlite_db.close()  # the limit belongs to a connection: set it on every new one

    from sqlalchemy import event

    def limit(connection: sqlite3.Connection, _record: object) -> None:
        connection.execute(f"PRAGMA max_page_count = {pages + 4}")

    event.listen(sqlite_db.engine, "connect", limit)
    refused(
        lambda: files.create("acme", "secret.txt", "assistants", b"x" * 3_000_000), needle="full"
    )
    assert files.list("acme") == []
    for number in range(400):
        try:
            sessions.apply("acme", "s", "r", draw(f"Name{number}", epsilon=0.01))
        except StoreUnavailable as error:
            assert "full" in str(error)
            break
    else:
        raise AssertionError("the limit was never reached")
    event.remove(sqlite_db.engine, "connect", limit)
    sqlite_db.close()
    snapshot = SessionStore(sqlite_db).get("acme", "s")
    assert snapshot is not None
    assert len(snapshot.entries) == len(sessions.ledger("acme", "s"))
    files.create("acme", "now.txt", "assistants", b"x" * 3_000_000)


def test_a_read_only_database_is_reported(sqlite_db: Database) -> None:
    SessionStore(sqlite_db).open("acme", "s", "p1")
    read_only = Database(
        f"sqlite:///file:{sqlite_db.path}?mode=ro&uri=true", Keyring(MASTER), busy_timeout=0.2
    )
    sessions = SessionStore(read_only)
    assert sessions.get("acme", "s") is not None
    refused(lambda: sessions.apply("acme", "s", "r", draw("Varga")), needle="read-only")
    read_only.close()


def test_a_file_that_is_no_database_is_reported(tmp_path: Path) -> None:
    (tmp_path / "penname.db").write_bytes(b"something else entirely" * 100)
    db = Database(f"sqlite:///{tmp_path}/penname.db", Keyring(MASTER))
    refused(db.upgrade, needle="damaged or is no SQLite")
    db.close()


def test_a_folder_in_place_of_the_file_is_reported(tmp_path: Path) -> None:
    db = Database(f"sqlite:///{tmp_path}", Keyring(MASTER))
    refused(db.upgrade, needle="cannot be opened")
    db.close()


def test_an_unreachable_postgresql_is_reported() -> None:
    db = Database("postgresql://someone:s3cret@127.0.0.1:1/penname", Keyring(MASTER))
    with pytest.raises(StoreUnavailable, match="cannot be reached") as caught:
        db.upgrade()
    assert "s3cret" not in "".join(traceback.format_exception(caught.value)) + repr(db)
    db.close()


@pytest.mark.postgres
def test_a_missing_database_of_postgresql_is_reported(postgres_server: "object") -> None:
    url = postgres_server.empty().replace("/t", "/missing")  # type: ignore[attr-defined]
    db = Database(url, Keyring(MASTER))
    with pytest.raises(StoreUnavailable):
        db.upgrade()
    db.close()


@pytest.mark.postgres
def test_work_goes_on_after_postgresql_dropped_its_connections(postgres_server: "object") -> None:
    url = postgres_server.migrated()  # type: ignore[attr-defined]
    db, other = Database(url, Keyring(MASTER)), Database(url, Keyring(MASTER))
    TenantStore(db).create("acme")
    with other.write() as session:
        session.execute(
            text(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        )
    assert [tenant.id for tenant in TenantStore(db).list()] == ["acme"]
    db.close()
    other.close()


def test_too_many_connections_at_once_are_reported(url: str) -> None:
    db = Database(url, Keyring(MASTER), busy_timeout=0.2, pool_size=1)
    with db.read() as session:
        session.execute(text("SELECT 1"))
        refused(db.health, needle="busy")
    db.health()
    db.close()


def test_health_before_the_schema_exists(empty_url: str) -> None:
    db = Database(empty_url, Keyring(MASTER))
    with pytest.raises(StoreUnavailable):
        db.health()
    db.close()


@pytest.mark.parametrize(
    "url", ["nonsense", "mysql://x/y", "sqlite://", "sqlite:///:memory:", "postgres//x"]
)
def test_unusable_urls_are_refused(url: str) -> None:
    with pytest.raises(ValueError):
        Database(url, Keyring(MASTER))


def test_an_id_that_no_column_can_hold_is_that_of_nothing(db: Database) -> None:
    for call in (
        lambda: ResponseStore(db).get("acme", "resp_\0"),
        lambda: ResponseStore(db).chain("acme", "\0"),
        lambda: JobStore(db).get("acme", "ftjob-\0"),
        lambda: FileStore(db).content("acme", "file-\0"),
    ):
        with pytest.raises(NotFound):
            call()
