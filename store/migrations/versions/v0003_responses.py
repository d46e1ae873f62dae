"""Stored responses.

Revision: 0003.  After: 0002.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "responses",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("session_pk", sa.String(length=40), nullable=False),
        sa.Column("previous_id", sa.String(length=40), nullable=True),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["session_pk"],
            ["sessions.id"],
            name="fk_responses_session_pk",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_responses"),
    )
    op.create_index("ix_responses_session_pk", "responses", ["session_pk"])


def downgrade() -> None:
    op.drop_table("responses")
