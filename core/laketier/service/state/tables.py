"""The tables of the state database, as the newest migration leaves them.

The indexes are partial ones, one per question that `acquire` asks, so that their size is that of the answer. A
database takes such an index only when the query names the state as a literal: see `state_is`.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    false,
    literal_column,
    text,
)

from laketier.service.schedule import State

METADATA = MetaData()
_ID = BigInteger().with_variant(Integer(), "sqlite")

TABLES = Table(
    "tiering_tables",
    METADATA,
    Column("id", _ID, primary_key=True),
    Column("service", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("source_table", Text, nullable=False),
    Column("table_id", Text, nullable=False),
    Column("format", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("pipeline", Text, nullable=False),
    Column("priority", Integer, nullable=False),
    Column("freshness_seconds", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("paused", Boolean, nullable=False),
    Column("dropped_by_hand", Boolean, nullable=False),
    Column("error", Text),
    Column("fence", BigInteger, nullable=False),
    Column("lease_owner", Text),
    Column("leased_at", BigInteger),
    Column("lease_until", BigInteger),
    Column("registered_at", BigInteger, nullable=False),
    Column("due_at", BigInteger, nullable=False),
    Column("enqueued_at", BigInteger),
    Column("last_tiered_at", BigInteger),
    Column("failures", Integer, nullable=False),
    Column("next_try_at", BigInteger),
    Column("epoch", BigInteger),
    Column("offsets", Text),
    Column("snapshot_id", Text),
    Column("lag_offsets", BigInteger),
    Column("lag_seconds", Float),
    Column("rounds_total", BigInteger, nullable=False),
    Column("rows_total", BigInteger, nullable=False),
    Column("bytes_total", BigInteger, nullable=False),
    Column("files_total", BigInteger, nullable=False),
    Column("bad_records_total", BigInteger, nullable=False),
    Column("deaths", Integer, nullable=False, server_default=text("0")),
    Column("suspect", Boolean, nullable=False, server_default=false()),
    Column("alone", Boolean, nullable=False, server_default=false()),
    Column("warehouse", Text),
    UniqueConstraint("service", "source", "source_table", "table_id", name="uq_tiering_tables_identity"),
    Index(
        "ix_tiering_tables_queue",
        "service",
        text("priority DESC"),
        "enqueued_at",
        "id",
        sqlite_where=text("state = 'PENDING'"),
        postgresql_where=text("state = 'PENDING'"),
    ),
    Index(
        "ix_tiering_tables_due",
        "service",
        "due_at",
        sqlite_where=text("state IN ('NEW', 'SCHEDULED')"),
        postgresql_where=text("state IN ('NEW', 'SCHEDULED')"),
    ),
    Index(
        "ix_tiering_tables_next_try",
        "service",
        "next_try_at",
        sqlite_where=text("state = 'FAILED'"),
        postgresql_where=text("state = 'FAILED'"),
    ),
    Index(
        "ix_tiering_tables_lease",
        "service",
        "lease_until",
        sqlite_where=text("state = 'TIERING'"),
        postgresql_where=text("state = 'TIERING'"),
    ),
)

ROUNDS = Table(
    "tiering_rounds",
    METADATA,
    Column("id", _ID, primary_key=True),
    Column("tiering_table", _ID, ForeignKey("tiering_tables.id"), nullable=False),
    Column("fence", BigInteger, nullable=False),
    Column("worker", Text, nullable=False),
    Column("began_at", BigInteger, nullable=False),
    Column("ended_at", BigInteger, nullable=False),
    Column("ending", Text, nullable=False),
    Column("epoch", BigInteger),
    Column("rows", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("files", BigInteger, nullable=False),
    Column("bad_records", BigInteger, nullable=False),
    Column("snapshot_id", Text),
    Column("range_start", Text),
    Column("range_end", Text),
    Column("lag_offsets", BigInteger),
    Column("lag_seconds", Float),
    Column("error", Text),
    # A fence is one lease, and a lease ends once. Also the way to a table's newest rounds.
    UniqueConstraint("tiering_table", "fence", name="uq_tiering_rounds_lease"),
)

WORKERS = Table(
    "tiering_workers",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("service", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("version", Text, nullable=False),
    Column("started_at", BigInteger, nullable=False),
    Column("heartbeat_at", BigInteger, nullable=False),
    Column("stopping_at", BigInteger),
)


UPKEEP = Table(
    "tiering_upkeep",
    METADATA,
    Column("tiering_table", _ID, ForeignKey("tiering_tables.id"), primary_key=True),
    Column("worker", Text),
    Column("lease_until", BigInteger),
    Column("due_at", BigInteger, nullable=False),
    Column("looked_at", BigInteger),
    Column("failures", Integer, nullable=False),
    Column("failures_total", BigInteger, nullable=False),
    Column("steps_total", BigInteger, nullable=False),
    Column("indexes", Text, nullable=False),
)


def state_is(*states: State) -> ColumnElement[bool]:
    """Whether a row of `TABLES` is in one of the states, spelled as in the predicates of the indexes."""
    literals = [literal_column(f"'{state.value}'", Text) for state in states]
    return TABLES.c.state == literals[0] if len(literals) == 1 else TABLES.c.state.in_(literals)
