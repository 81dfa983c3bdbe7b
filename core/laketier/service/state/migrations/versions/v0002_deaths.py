"""Workers that died in a round are charged to the round's table."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns. With defaults of the database's, as workers of the version before may still insert rows."""
    op.add_column("tiering_tables", sa.Column("deaths", sa.Integer, nullable=False, server_default=sa.text("0")))
    for name in ("suspect", "alone"):
        op.add_column("tiering_tables", sa.Column(name, sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("tiering_workers", sa.Column("stopping_at", sa.BigInteger))
