"""Turns what a database driver raises into one clear sentence, without any value in it."""

import sqlite3
from typing import Final

from sqlalchemy import exc

from store.errors import NotFound, StoreConflict, StoreError, StoreUnavailable

_LOCKED: Final = (
    "The database stayed locked by another writer for longer than the busy timeout. Try again; "
    "if it happens often, find the process that holds the lock or move to PostgreSQL."
)
_FULL: Final = (
    "The database cannot grow: the disk (or its quota) is full. Free space and try again."
)
_READ_ONLY: Final = (
    "The database cannot be written: the file, its folder or the server is read-only. "
    "Give the service's user write permission on both the file and its folder."
)
_NO_FILE: Final = (
    "The database file cannot be opened. Check that its folder exists and that the service's user "
    "may read and write in it."
)
_DISK: Final = "The disk under the database reports an error. Check it before starting again."
_DAMAGED: Final = (
    "The database file is damaged or is no SQLite database. Stop the service and restore a backup."
)
_UNREACHABLE: Final = (
    "The PostgreSQL server cannot be reached or dropped the connection. Check that it runs, and "
    "the host, port, user and password of the database URL."
)
_LOGIN: Final = "PostgreSQL refused the login. Check the user, password and database of the URL."
_CROWDED: Final = (
    "PostgreSQL has no connection left. Raise max_connections or run fewer gateway workers."
)
_POOL: Final = "All database connections are busy. Try again; if it lasts, raise the pool size."
_RETRY: Final = "PostgreSQL undid the transaction because of a concurrent one. Try again."
_OTHER: Final = "The database failed ({}). See its own log; nothing of this change was stored."

# Primary result codes of SQLite, https://www.sqlite.org/rescode.html
_SQLITE: Final = {
    5: _LOCKED,
    6: _LOCKED,
    8: _READ_ONLY,
    10: _DISK,
    11: _DAMAGED,
    13: _FULL,
    14: _NO_FILE,
    26: _DAMAGED,
}
# SQLSTATE, by longest prefix; PostgreSQL documentation, appendix A
_POSTGRES: Final = {
    "08": _UNREACHABLE,
    "25006": _READ_ONLY,
    "28": _LOGIN,
    "3D000": _LOGIN,
    "40": _RETRY,
    "53100": _FULL,
    "53300": _CROWDED,
    "55P03": _LOCKED,
    "57P": _UNREACHABLE,
}


def explain(error: exc.SQLAlchemyError) -> StoreError:
    """Return the store's error for a driver's.  The driver's text is dropped: it holds values."""
    if isinstance(error, exc.IntegrityError):
        return StoreConflict(
            "The change contradicts what is stored: a value that must be unique is there already, "
            "or something that it belongs to was removed."
        )
    if isinstance(error, exc.TimeoutError):
        return StoreUnavailable(_POOL)
    cause = getattr(error, "orig", None)
    if isinstance(cause, sqlite3.Error):
        code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
        known = _SQLITE.get(code)
        name = getattr(cause, "sqlite_errorname", type(cause).__name__)
        return StoreUnavailable(known or _OTHER.format(name))
    state = getattr(cause, "sqlstate", None)
    if isinstance(error, exc.DataError) and state in (None, "22021"):
        # Clients' values are compared in the clear as ids alone; SQLite finds none of this kind either.
        return NotFound("There is nothing of this id: it holds a character that no id has.")
    if isinstance(state, str):
        for length in (5, 3, 2):
            if state[:length] in _POSTGRES:
                return StoreUnavailable(_POSTGRES[state[:length]])
        return StoreUnavailable(_OTHER.format(f"SQLSTATE {state}"))
    if isinstance(error, exc.OperationalError):
        return StoreUnavailable(_UNREACHABLE)
    return StoreError(_OTHER.format(type(error).__name__))
