"""Both databases for every test that asks for one."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from store_databases import MASTER, postgres_server

from store.crypto import Keyring
from store.database import Database
from store.tenants import TenantStore

__all__ = ["postgres_server"]

BOTH = ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]


@pytest.fixture(params=BOTH)
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/penname.db"
    return str(request.getfixturevalue("postgres_server").empty())


@pytest.fixture(params=BOTH)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of a database with the current schema."""
    if request.param == "sqlite":
        return sqlite_url(tmp_path)
    return str(request.getfixturevalue("postgres_server").migrated())


def sqlite_url(folder: Path) -> str:
    address = f"sqlite:///{folder}/penname.db"
    made = Database(address, Keyring(MASTER))
    made.upgrade()
    made.close()
    return address


@pytest.fixture
def db(url: str) -> Iterator[Database]:
    """A database with the tenants acme and other."""
    opened = Database(url, Keyring(MASTER))
    TenantStore(opened).create("acme")
    TenantStore(opened).create("other")
    yield opened
    opened.close()


@pytest.fixture
def sqlite_db(tmp_path: Path) -> Iterator[Database]:
    """The same, SQLite only."""
    opened = Database(sqlite_url(tmp_path), Keyring(MASTER))
    TenantStore(opened).create("acme")
    yield opened
    opened.close()
