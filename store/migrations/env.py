"""Alembic's entry point.  `store.migrate` hands over an open transaction and commits it."""

from alembic import context

from store.models import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    # Both databases undo DDL with the transaction; for SQLite, Alembic would not assume it.
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
