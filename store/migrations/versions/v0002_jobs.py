"""Fine-tuning jobs, their events and the models they leave.

Revision: 0002.  After: 0001.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _jobs()
    op.create_table(
        "fine_tuning_events",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("job_id", sa.String(length=40), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("level", sa.String(length=8), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id"],
            ["fine_tuning_jobs.id"],
            name="fk_fine_tuning_events_job_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("number", name="pk_fine_tuning_events"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_fine_tuning_events_job_id_number", "fine_tuning_events", ["job_id", "number"]
    )
    op.create_table(
        "tuned_models",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("tenant_id", sa.String(length=64), nullable=False),
        sa.Column("job_id", sa.String(length=40), nullable=False),
        sa.Column("ref", sa.String(length=64), nullable=False),
        sa.Column("sealed_name", sa.LargeBinary(), nullable=False),
        sa.Column("method", sa.String(length=40), nullable=False),
        sa.Column("base", sa.String(length=200), nullable=False),
        sa.Column("file_id", sa.String(length=40), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_tuned_models_tenant_id"),
        sa.PrimaryKeyConstraint("id", name="pk_tuned_models"),
        sa.UniqueConstraint("tenant_id", "ref", name="uq_tuned_models_tenant_id_ref"),
    )


def _jobs() -> None:
    op.create_table(
        "fine_tuning_jobs",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("tenant_id", sa.String(length=64), nullable=False),
        sa.Column("request_key", sa.String(length=64), nullable=True),
        sa.Column("status", sa.String(length=20), nullable=False),
        sa.Column("wanted", sa.String(length=16), nullable=False),
        sa.Column("method", sa.String(length=40), nullable=False),
        sa.Column("model", sa.String(length=200), nullable=False),
        sa.Column("engine", sa.String(length=16), nullable=False),
        sa.Column("training_file", sa.String(length=40), nullable=False),
        sa.Column("validation_file", sa.String(length=40), nullable=True),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("spec", sa.Text(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("account", sa.String(length=16), nullable=False),
        sa.Column("dataset", sa.String(length=64), nullable=False),
        sa.Column("plan", sa.Text(), nullable=False),
        sa.Column("history", sa.Text(), nullable=True),
        sa.Column("reserved_epsilon", sa.Double(), nullable=False),
        sa.Column("spent_epsilon", sa.Double(), nullable=True),
        sa.Column("delta", sa.Double(), nullable=False),
        sa.Column("steps_total", sa.Integer(), nullable=False),
        sa.Column("steps_done", sa.Integer(), nullable=False),
        sa.Column("steps_taken", sa.Integer(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("events_read", sa.BigInteger(), nullable=False),
        sa.Column("owner", sa.String(length=80), nullable=False),
        sa.Column("lease_until", sa.Double(), nullable=False),
        sa.Column("handle", sa.String(length=200), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("result_files", sa.Text(), nullable=False),
        sa.Column("estimated_finish", sa.Double(), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=True),
        sa.Column("finished_at", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenants.id"], name="fk_fine_tuning_jobs_tenant_id"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_fine_tuning_jobs"),
        sa.UniqueConstraint(
            "tenant_id", "request_key", name="uq_fine_tuning_jobs_tenant_id_request_key"
        ),
    )
    for columns in (
        ["tenant_id", "created_at"],
        ["tenant_id", "dataset"],
        ["status", "created_at"],
    ):
        op.create_index(f"ix_fine_tuning_jobs_{'_'.join(columns)}", "fine_tuning_jobs", columns)


def downgrade() -> None:
    for table in ("fine_tuning_events", "tuned_models", "fine_tuning_jobs"):
        op.drop_table(table)
