"""The first tables."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def _id() -> sa.types.TypeEngine[int]:
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make them."""
    op.create_table(
        "tiering_tables",
        sa.Column("id", _id(), primary_key=True),
        sa.Column("service", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("source_table", sa.Text, nullable=False),
        sa.Column("table_id", sa.Text, nullable=False),
        sa.Column("format", sa.Text, nullable=False),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("pipeline", sa.Text, nullable=False),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.Column("freshness_seconds", sa.Integer, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("paused", sa.Boolean, nullable=False),
        sa.Column("dropped_by_hand", sa.Boolean, nullable=False),
        sa.Column("error", sa.Text),
        sa.Column("fence", sa.BigInteger, nullable=False),
        sa.Column("lease_owner", sa.Text),
        sa.Column("leased_at", sa.BigInteger),
        sa.Column("lease_until", sa.BigInteger),
        sa.Column("registered_at", sa.BigInteger, nullable=False),
        sa.Column("due_at", sa.BigInteger, nullable=False),
        sa.Column("enqueued_at", sa.BigInteger),
        sa.Column("last_tiered_at", sa.BigInteger),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("next_try_at", sa.BigInteger),
        sa.Column("epoch", sa.BigInteger),
        sa.Column("offsets", sa.Text),
        sa.Column("snapshot_id", sa.Text),
        sa.Column("lag_offsets", sa.BigInteger),
        sa.Column("lag_seconds", sa.Float),
        sa.Column("rounds_total", sa.BigInteger, nullable=False),
        sa.Column("rows_total", sa.BigInteger, nullable=False),
        sa.Column("bytes_total", sa.BigInteger, nullable=False),
        sa.Column("files_total", sa.BigInteger, nullable=False),
        sa.Column("bad_records_total", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("service", "source", "source_table", "table_id", name="uq_tiering_tables_identity"),
    )
    indexes: tuple[tuple[str, Sequence[str | sa.TextClause], str], ...] = (
        ("queue", ["service", sa.text("priority DESC"), "enqueued_at", "id"], "state = 'PENDING'"),
        ("due", ["service", "due_at"], "state IN ('NEW', 'SCHEDULED')"),
        ("next_try", ["service", "next_try_at"], "state = 'FAILED'"),
        ("lease", ["service", "lease_until"], "state = 'TIERING'"),
    )
    for name, columns, where in indexes:
        predicate = sa.text(where)
        op.create_index(
            f"ix_tiering_tables_{name}",
            "tiering_tables",
            columns,
            sqlite_where=predicate,
            postgresql_where=predicate,
        )
    op.create_table(
        "tiering_rounds",
        sa.Column("id", _id(), primary_key=True),
        sa.Column("tiering_table", _id(), sa.ForeignKey("tiering_tables.id"), nullable=False),
        sa.Column("fence", sa.BigInteger, nullable=False),
        sa.Column("worker", sa.Text, nullable=False),
        sa.Column("began_at", sa.BigInteger, nullable=False),
        sa.Column("ended_at", sa.BigInteger, nullable=False),
        sa.Column("ending", sa.Text, nullable=False),
        sa.Column("epoch", sa.BigInteger),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.Column("files", sa.BigInteger, nullable=False),
        sa.Column("bad_records", sa.BigInteger, nullable=False),
        sa.Column("snapshot_id", sa.Text),
        sa.Column("range_start", sa.Text),
        sa.Column("range_end", sa.Text),
        sa.Column("lag_offsets", sa.BigInteger),
        sa.Column("lag_seconds", sa.Float),
        sa.Column("error", sa.Text),
        sa.UniqueConstraint("tiering_table", "fence", name="uq_tiering_rounds_lease"),
    )
    op.create_table(
        "tiering_workers",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("service", sa.Text, nullable=False),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("pid", sa.Integer, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("started_at", sa.BigInteger, nullable=False),
        sa.Column("heartbeat_at", sa.BigInteger, nullable=False),
    )
