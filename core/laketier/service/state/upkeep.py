"""The upkeep of indexes: which table is looked at next, by which worker, and what became of its indexes. Each function
is a part of one transaction. A lease keeps two workers from building the same; if it runs out too early both build, and
the lake lets one of them publish. As in `enqueueing`, times further off than any that would be written now are not
waited for."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict

from sqlalchemy import Connection, Row, insert, or_, select, update

from laketier.service.schedule import State
from laketier.service.state.records import LEASES, SLACK_MS
from laketier.service.state.rows import storable
from laketier.service.state.tables import TABLES, UPKEEP
from laketier.service.state.upkeep_records import LONGEST_LOOK_SECONDS, IndexFigures, Upkeep, UpkeepLease
from laketier.spi.redaction import redacted

_ERROR_CHARACTERS = 4000
_OUT = (State.DROPPED.value, State.RECREATED.value, State.PAUSED.value)


def take(
    connection: Connection,
    service: str,
    worker: str,
    names: Collection[str],
    lease_ms: int,
    now: int,
    longest_wait_ms: int,
    *,
    due: bool,
) -> UpkeepLease | None:
    """Lease one of ``names`` that was tiered and that nobody looks after, the longest due first. ``due``: only one that
    is due. ``longest_wait_ms``: after failures."""
    until, again = UPKEEP.c.lease_until, UPKEEP.c.due_at
    longest = max(longest_wait_ms, round(LONGEST_LOOK_SECONDS * 1000))
    query = (
        select(TABLES.c.id, TABLES.c.source, TABLES.c.source_table, UPKEEP)
        .select_from(TABLES.outerjoin(UPKEEP, UPKEEP.c.tiering_table == TABLES.c.id))
        .where(TABLES.c.service == service, TABLES.c.state.not_in(_OUT), TABLES.c.last_tiered_at.is_not(None))
        .where(or_(UPKEEP.c.worker.is_(None), until <= now, until > now + LEASES * lease_ms + SLACK_MS))
        .order_by(UPKEEP.c.due_at.is_not(None), UPKEEP.c.due_at, TABLES.c.id)
    )
    if due:
        query = query.where(or_(again.is_(None), again <= now, again > now + longest + SLACK_MS))
    for row in connection.execute(query):
        name = f"{row.source}.{row.source_table}"
        if name not in names:
            continue
        leased = {"worker": worker, "lease_until": now + lease_ms}
        if row.tiering_table is None:
            fresh = {"failures": 0, "failures_total": 0, "steps_total": 0, "indexes": "[]"}
            connection.execute(insert(UPKEEP).values(tiering_table=row.id, due_at=now, **fresh, **leased))
        else:
            connection.execute(update(UPKEEP).where(UPKEEP.c.tiering_table == row.id).values(**leased))
        return UpkeepLease(row.id, name, worker, row.failures or 0)
    return None


def renew(connection: Connection, lease: UpkeepLease, lease_ms: int, now: int) -> bool:
    """Keep a lease; whether it was there still."""
    ours = (UPKEEP.c.tiering_table == lease.tiering_table, UPKEEP.c.worker == lease.worker)
    return connection.execute(update(UPKEEP).where(*ours).values(lease_until=now + lease_ms)).rowcount == 1


def end(
    connection: Connection,
    lease: UpkeepLease,
    indexes: Sequence[IndexFigures],
    steps: int,
    *,
    failed: bool,
    due_at: int,
    now: int,
) -> None:
    """Store what became of the indexes, and give the lease back. Does nothing where it is lost."""
    told = [asdict(each) | {"error": None if each.error is None else _text(each.error)} for each in indexes]
    values = {
        "worker": None,
        "lease_until": None,
        "looked_at": now,
        "due_at": due_at,
        "failures": UPKEEP.c.failures + 1 if failed else 0,
        "failures_total": UPKEEP.c.failures_total + int(failed),
        "steps_total": UPKEEP.c.steps_total + steps,
        "indexes": json.dumps(told),
    }
    ours = (UPKEEP.c.tiering_table == lease.tiering_table, UPKEEP.c.worker == lease.worker)
    connection.execute(update(UPKEEP).where(*ours).values(**values))


def upkeeps(connection: Connection, service: str) -> dict[int, Upkeep]:
    """Those of all tables, by table."""
    query = select(UPKEEP).join(TABLES, UPKEEP.c.tiering_table == TABLES.c.id).where(TABLES.c.service == service)
    return {row.tiering_table: _as_upkeep(row) for row in connection.execute(query)}


def _as_upkeep(row: Row[tuple[object, ...]]) -> Upkeep:
    indexes = tuple(IndexFigures(**each) for each in json.loads(row.indexes))
    return Upkeep(row.tiering_table, row.looked_at, row.failures, row.failures_total, row.steps_total, indexes)


def _text(error: str) -> str:
    return redacted(storable(error))[:_ERROR_CHARACTERS]
