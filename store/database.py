"""One SQL database, SQLite or PostgreSQL: connections, transactions, migrations, health.

SQLite runs in WAL mode with ``synchronous=FULL``: a commit is on the disk when it returns.  With
NORMAL a power failure may undo the last commits, and then the ledger would forget a charge whose
substitute has already gone out: an over-spend.  One fsync per charged request is the price.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Engine, create_engine, event, exc, make_url, text
from sqlalchemy.engine import URL, Connection
from sqlalchemy.orm import Session

from store import migrate
from store.crypto import Keyring
from store.errors import InvalidInput, StoreError, StoreUnavailable
from store.failures import explain
from store.tenants import TenantKeys

_WRITE: Final = "penname_write"


class Database:
    """Connections to one database.  Thread-safe; every process makes its own.

    Attributes:
        engine: The SQLAlchemy engine (parameters hidden from its messages).
        dialect: ``"sqlite"`` or ``"postgresql"``.
        tenants: The unwrapped data keys of tenants.
    """

    def __init__(
        self, url: str, keyring: Keyring, *, busy_timeout: float = 10.0, pool_size: int = 20
    ) -> None:
        """Prepare connections; nothing is opened before the first use.

        Args:
            url: ``sqlite:////absolute/path.db`` or ``postgresql://user:password@host/name``.
            keyring: Master keys.
            busy_timeout: Seconds that a writer waits for a lock before StoreUnavailable.
            pool_size: Connections kept; half as many again may be opened under load.

        Raises:
            InvalidInput: The URL is malformed, in-memory, of another database, or lacks its driver.
        """
        self.keyring = keyring
        self.busy_timeout = busy_timeout
        self.tenants = TenantKeys(keyring)
        parsed = parse_url(url)
        self.dialect = parsed.get_backend_name()
        self.path = Path(parsed.database or "") if self.dialect == "sqlite" else None
        self.engine = _make_engine(parsed, busy_timeout, pool_size)
        self._writing = self.engine.execution_options(**{_WRITE: True})
        self._reading = self.engine
        # Threads queue here instead of polling SQLite's lock; other processes still poll it.
        self._turn = threading.Lock() if self.dialect == "sqlite" else None
        if self.dialect == "postgresql":
            self._reading = self.engine.execution_options(isolation_level="REPEATABLE READ")

    def __repr__(self) -> str:
        return f"Database({self.dialect})"

    @contextmanager
    def read(self) -> Iterator[Session]:
        """Yield a session over one consistent snapshot; what it writes is rolled back.

        Raises:
            StoreUnavailable: The database cannot serve; the message says why.
        """
        failure: StoreError | None = None
        try:
            with Session(self._reading, expire_on_commit=False) as session:
                yield session
        except exc.SQLAlchemyError as error:
            failure = explain(error)
        if failure is not None:
            raise failure from None  # no traceback shows the driver's text, which holds values

    @contextmanager
    def write(self) -> Iterator[Session]:
        """Yield a session that holds the right to write; commits at the end, or rolls all back.

        On SQLite this is ``BEGIN IMMEDIATE``: one writer at a time.  On PostgreSQL writers run side
        by side and lock the rows that they name.  Do not nest.

        Raises:
            StoreUnavailable: Locked for longer than the busy timeout, full, read-only, unreachable.
            StoreConflict: A uniqueness rule was broken.
        """
        failure: StoreError | None = None
        with self._my_turn():
            try:
                with Session(self._writing, expire_on_commit=False) as session, session.begin():
                    yield session
            except exc.SQLAlchemyError as error:
                failure = explain(error)
        if failure is not None:
            raise failure from None

    @contextmanager
    def _my_turn(self) -> Iterator[None]:
        if self._turn is None:
            yield
            return
        if not self._turn.acquire(timeout=self.busy_timeout):
            raise StoreUnavailable(
                "Another thread wrote to the database for longer than the busy timeout. Try again."
            )
        try:
            yield
        finally:
            self._turn.release()

    def upgrade(self) -> None:
        """Create or migrate the schema and check the master key.  Safe from several processes.

        Raises:
            SchemaTooNew: A newer version of this program wrote the database.
            MasterKeyError: The keyring lacks a master key that this database needs.
            StoreUnavailable: The database cannot be opened or written.
        """
        if self.path is not None:
            self._prepare_file(self.path)
        self._mapped(lambda: migrate.upgrade(self.engine, self._writing))
        with self.read() as session:
            self.tenants.check(session)

    def _mapped(self, work: Callable[[], None]) -> None:
        failure: StoreError | None = None
        try:
            work()
        except exc.SQLAlchemyError as error:
            failure = explain(error)
        if failure is not None:
            raise failure from None

    @staticmethod
    def _prepare_file(path: Path) -> None:
        """Make the file with mode 0600 before SQLite does; its -wal and -shm copy that mode."""
        with suppress(OSError):  # SQLite's own error, mapped, is the clearer one
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))

    def health(self) -> None:
        """Return when the database answers and has this program's schema.

        Raises:
            StoreUnavailable: It does not answer, or `upgrade` has not run.
        """
        with self.read() as session:
            found = session.scalar(text("SELECT version_num FROM alembic_version"))
        if found != migrate.HEAD:
            raise StoreUnavailable("The database has another schema than this version needs.")

    def scrub(self) -> None:
        """Overwrite what SQLite's write-ahead log still holds of deleted rows; best effort.

        A reader in the way leaves it to the next checkpoint.  PostgreSQL does this by (auto)vacuum.
        """
        if self.dialect != "sqlite":
            return
        with suppress(exc.SQLAlchemyError):
            raw = self.engine.raw_connection()
            try:
                cursor = raw.cursor()
                cursor.execute("PRAGMA busy_timeout = 100")
                cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                cursor.execute(f"PRAGMA busy_timeout = {int(self.busy_timeout * 1000)}")
            except sqlite3.Error:
                raw.invalidate()
            finally:
                raw.close()

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def parse_url(url: str) -> URL:
    """Return the URL of a database that can be used.  Raises InvalidInput."""
    try:
        parsed = make_url(url)
    except exc.ArgumentError:
        parsed = None
    if parsed is None:
        raise InvalidInput("The database URL is malformed; see docs/store.md for examples.")
    backend = parsed.get_backend_name()
    if backend == "postgresql" or parsed.drivername == "postgres":
        return parsed.set(drivername="postgresql+psycopg")
    if backend != "sqlite":
        raise InvalidInput(
            f"Databases of type {backend!r} are not supported: sqlite or postgresql."
        )
    if not parsed.database or parsed.database == ":memory:":
        raise InvalidInput("An in-memory database would lose the ledger; give a file.")
    return parsed


def _make_engine(url: URL, busy_timeout: float, pool_size: int) -> Engine:
    common: dict[str, Any] = {
        "hide_parameters": True,
        "pool_size": pool_size,
        "max_overflow": pool_size // 2,
        "pool_timeout": busy_timeout,
    }
    if url.get_backend_name() == "sqlite":
        engine = create_engine(url, connect_args={"timeout": busy_timeout}, **common)
        event.listen(engine, "connect", _on_sqlite_connect)
        event.listen(engine, "begin", _on_sqlite_begin)
        return engine
    options = f"-c lock_timeout={int(busy_timeout * 1000)}"
    try:
        return create_engine(
            url,
            pool_pre_ping=True,
            connect_args={"connect_timeout": max(2, int(busy_timeout)), "options": options},
            **common,
        )
    except ModuleNotFoundError:
        raise InvalidInput(
            "PostgreSQL needs the extra 'postgres'. Run: pip install -c constraints.txt -e '.[postgres]'"
        ) from None


def _on_sqlite_connect(connection: sqlite3.Connection, _record: object) -> None:
    # The driver would start transactions at a moment of its own; `_on_sqlite_begin` does instead.
    connection.isolation_level = None
    _enable_wal(connection)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    # Deleted rows are overwritten with zeros, so that a destroyed key is not left in a free page.
    connection.execute("PRAGMA secure_delete = ON")


def _enable_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL.  SQLite does not wait for other processes in this one statement; we do."""
    for attempt in range(100):
        if connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
            return
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or attempt == 99:
                raise
            time.sleep(0.05)


def _on_sqlite_begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get(_WRITE)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
