"""A table's warehouse is remembered, as another one in the service's file is another place."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. NULL until the next registration, and in rows that workers of the version before insert."""
    op.add_column("tiering_tables", sa.Column("warehouse", sa.Text))
