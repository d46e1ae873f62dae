"""Marks of the records that jobs were trained on.

Revision: 0004.  After: 0003.
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "training_data",
        sa.Column("tenant_id", sa.String(length=64), nullable=False),
        sa.Column("dataset", sa.String(length=64), nullable=False),
        sa.Column("marks", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_training_data_tenant_id"),
        sa.PrimaryKeyConstraint("tenant_id", "dataset", name="pk_training_data"),
    )


def downgrade() -> None:
    op.drop_table("training_data")
