"""The first schema.

Revision: 0001.  After: nothing.
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# What makes the ledger append-only, whoever holds the connection.
_SQLITE_GUARDS = (
    "CREATE TRIGGER ledger_no_update BEFORE UPDATE ON ledger"
    " BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
    "CREATE TRIGGER ledger_no_delete BEFORE DELETE ON ledger"
    " BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
    # INSERT OR REPLACE deletes without firing the trigger above.
    "CREATE TRIGGER ledger_no_replace BEFORE INSERT ON ledger"
    " WHEN EXISTS (SELECT 1 FROM ledger WHERE id = NEW.id)"
    " BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
)
_POSTGRES_GUARDS = (
    "CREATE FUNCTION penname_ledger_guard() RETURNS trigger LANGUAGE plpgsql AS"
    " $$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$",
    "CREATE TRIGGER ledger_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger"
    " FOR EACH STATEMENT EXECUTE FUNCTION penname_ledger_guard()",
)


def upgrade() -> None:
    _identity()
    _sessions()
    _documents()
    postgres = op.get_bind().dialect.name == "postgresql"
    for statement in _POSTGRES_GUARDS if postgres else _SQLITE_GUARDS:
        op.execute(statement)


def _identity() -> None:
    op.create_table(
        "tenants",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("key_id", sa.String(length=40), nullable=False),
        sa.Column("master_key_id", sa.String(length=40), nullable=False),
        sa.Column("wrapped_key", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_tenants"),
    )
    op.create_table(
        "api_keys",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("tenant_id", sa.String(length=64), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("prefix", sa.String(length=16), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=True),
        sa.Column("last_used_at", sa.Double(), nullable=True),
        sa.Column("revoked_at", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_api_keys_tenant_id"),
        sa.PrimaryKeyConstraint("id", name="pk_api_keys"),
        sa.UniqueConstraint("digest", name="uq_api_keys_digest"),
    )
    op.create_index("ix_api_keys_tenant_id", "api_keys", ["tenant_id"], unique=False)


def _sessions() -> None:
    op.create_table(
        "ledger",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("tenant_id", sa.String(length=64), nullable=False),
        sa.Column("session_ref", sa.String(length=64), nullable=True),
        sa.Column("request_id", sa.String(length=128), nullable=False),
        sa.Column("account", sa.String(length=16), nullable=False),
        sa.Column("fine_type", sa.String(length=64), nullable=False),
        sa.Column("mechanism", sa.String(length=64), nullable=False),
        sa.Column("metric", sa.String(length=64), nullable=False),
        sa.Column("epsilon", sa.Double(), nullable=False),
        sa.Column("delta", sa.Double(), nullable=False),
        sa.Column("entity_hmac", sa.String(length=128), nullable=False),
        sa.Column("day", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_ledger"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_ledger_tenant_id_day", "ledger", ["tenant_id", "day"], unique=False)
    op.create_index(
        "ix_ledger_tenant_id_entity_hmac", "ledger", ["tenant_id", "entity_hmac"], unique=False
    )
    op.create_index(
        "ix_ledger_tenant_id_session_ref", "ledger", ["tenant_id", "session_ref"], unique=False
    )
    op.create_table(
        "sessions",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("tenant_id", sa.String(length=64), nullable=False),
        sa.Column("ref", sa.String(length=64), nullable=False),
        sa.Column("sealed_id", sa.LargeBinary(), nullable=False),
        sa.Column("wrapped_key", sa.LargeBinary(), nullable=False),
        sa.Column("policy", sa.String(length=200), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("sealed_state", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("last_used_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_sessions_tenant_id"),
        sa.PrimaryKeyConstraint("id", name="pk_sessions"),
        sa.UniqueConstraint("tenant_id", "ref", name="uq_sessions_tenant_id_ref"),
    )
    op.create_index(
        "ix_sessions_tenant_id_last_used_at",
        "sessions",
        ["tenant_id", "last_used_at"],
        unique=False,
    )
    op.create_table(
        "session_entries",
        sa.Column("session_pk", sa.String(length=40), nullable=False),
        sa.Column("ordinal", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("fine_type", sa.String(length=64), nullable=False),
        sa.Column("key_index", sa.LargeBinary(), nullable=False),
        sa.Column("substitute_index", sa.LargeBinary(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["session_pk"],
            ["sessions.id"],
            name="fk_session_entries_session_pk",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("session_pk", "ordinal", name="pk_session_entries"),
        sa.UniqueConstraint(
            "session_pk",
            "fine_type",
            "key_index",
            name="uq_session_entries_session_pk_fine_type_key_index",
        ),
        sa.UniqueConstraint(
            "session_pk", "substitute_index", name="uq_session_entries_session_pk_substitute_index"
        ),
    )


def _documents() -> None:
    op.create_table(
        "files",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("tenant_id", sa.String(length=64), nullable=False),
        sa.Column("sealed_name", sa.LargeBinary(), nullable=False),
        sa.Column("purpose", sa.String(length=40), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_files_tenant_id"),
        sa.PrimaryKeyConstraint("id", name="pk_files"),
    )
    op.create_index(
        "ix_files_tenant_id_created_at", "files", ["tenant_id", "created_at"], unique=False
    )
    op.create_table(
        "vector_stores",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("tenant_id", sa.String(length=64), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("dimensions", sa.Integer(), nullable=True),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("removed_version", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("last_active_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_vector_stores_tenant_id"),
        sa.PrimaryKeyConstraint("id", name="pk_vector_stores"),
    )
    op.create_index(
        "ix_vector_stores_tenant_id_created_at",
        "vector_stores",
        ["tenant_id", "created_at"],
        unique=False,
    )
    op.create_table(
        "file_parts",
        sa.Column("file_id", sa.String(length=40), nullable=False),
        sa.Column("ordinal", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["file_id"], ["files.id"], name="fk_file_parts_file_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("file_id", "ordinal", name="pk_file_parts"),
    )
    op.create_table(
        "vector_store_files",
        sa.Column("vector_store_id", sa.String(length=40), nullable=False),
        sa.Column("file_id", sa.String(length=40), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("usage_bytes", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["file_id"], ["files.id"], name="fk_vector_store_files_file_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["vector_store_id"],
            ["vector_stores.id"],
            name="fk_vector_store_files_vector_store_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("vector_store_id", "file_id", name="pk_vector_store_files"),
    )
    op.create_index(
        "ix_vector_store_files_file_id", "vector_store_files", ["file_id"], unique=False
    )
    op.create_index("ix_vector_store_files_status", "vector_store_files", ["status"], unique=False)
    op.create_table(
        "chunks",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("vector_store_id", sa.String(length=40), nullable=False),
        sa.Column("file_id", sa.String(length=40), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("added_version", sa.BigInteger(), nullable=False),
        sa.Column("sealed_text", sa.LargeBinary(), nullable=False),
        sa.Column("sealed_embedding", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["vector_store_id", "file_id"],
            ["vector_store_files.vector_store_id", "vector_store_files.file_id"],
            name="fk_chunks_vector_store_id_file_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_chunks"),
        sa.UniqueConstraint(
            "vector_store_id",
            "file_id",
            "ordinal",
            name="uq_chunks_vector_store_id_file_id_ordinal",
        ),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_chunks_vector_store_id_added_version",
        "chunks",
        ["vector_store_id", "added_version"],
        unique=False,
    )


def downgrade() -> None:
    for table in (
        "chunks",
        "vector_store_files",
        "session_entries",
        "file_parts",
        "vector_stores",
        "sessions",
        "files",
        "api_keys",
        "tenants",
        "ledger",
    ):
        op.drop_table(table)
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION penname_ledger_guard()")
