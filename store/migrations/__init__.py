"""Alembic migrations, run by `store.migrate`."""
