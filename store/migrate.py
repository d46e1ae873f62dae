"""Brings a database to this program's schema, without an ini file.

Alembic is imported only when there is something to migrate: a normal start reads one row.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Final

from sqlalchemy import Engine, inspect, text

from store.errors import SchemaTooNew

if TYPE_CHECKING:
    from alembic.config import Config

HEAD: Final = "0004"
MIGRATIONS: Final = Path(__file__).parent / "migrations"
_LOCK: Final = 0x70656E6E616D65  # "penname"; the key of PostgreSQL's advisory lock


def current(engine: Engine) -> str | None:
    """Return the revision of the database, None when it is empty."""
    with engine.connect() as connection:
        if not inspect(connection).has_table("alembic_version"):
            return None
        found = connection.scalar(text("SELECT version_num FROM alembic_version"))
        return None if found is None else str(found)


def upgrade(engine: Engine, writing: Engine, revision: str = HEAD) -> None:
    """Run the missing migrations in one transaction, under a lock that other processes wait for.

    Args:
        engine: Used for reading.
        writing: The same database, with transactions that hold the write lock on SQLite.
        revision: Where to stop.

    Raises:
        SchemaTooNew: The database's revision is none of ours.
    """
    found = current(engine)
    if found == revision:
        return
    _run(writing, revision, up=True)


def downgrade(writing: Engine, revision: str) -> None:
    """Undo migrations down to ``revision`` (``"base"``: all).  Deletes the data they held."""
    _run(writing, revision, up=False)


def _run(writing: Engine, revision: str, *, up: bool) -> None:
    from alembic import command

    with writing.connect() as connection, connection.begin():
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        config = _config()
        config.attributes["connection"] = connection
        found = None
        if inspect(connection).has_table("alembic_version"):
            found = connection.scalar(text("SELECT version_num FROM alembic_version"))
        if found is not None and found not in revisions():
            raise SchemaTooNew(
                f"The database has schema {found}, which this version (schema {HEAD}) does not "
                "know: a newer version wrote it. Upgrade the program, or restore a backup."
            )
        (command.upgrade if up else command.downgrade)(config, revision)


def revisions() -> list[str]:
    """Return all revisions this program knows, newest first."""
    from alembic.script import ScriptDirectory

    return [script.revision for script in ScriptDirectory(str(MIGRATIONS)).walk_revisions()]


def _config() -> "Config":
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    return config
