"""Workers look after the indexes of lake tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table. Workers of the version before know nothing of it, and look after no indexes."""
    op.create_table(
        "tiering_upkeep",
        sa.Column(
            "tiering_table",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            sa.ForeignKey("tiering_tables.id"),
            primary_key=True,
        ),
        sa.Column("worker", sa.Text),
        sa.Column("lease_until", sa.BigInteger),
        sa.Column("due_at", sa.BigInteger, nullable=False),
        sa.Column("looked_at", sa.BigInteger),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("failures_total", sa.BigInteger, nullable=False),
        sa.Column("steps_total", sa.BigInteger, nullable=False),
        sa.Column("indexes", sa.Text, nullable=False),
    )
