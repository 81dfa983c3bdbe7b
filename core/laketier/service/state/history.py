"""Queries for people: tables, rounds, workers."""

from __future__ import annotations

from sqlalchemy import Connection, delete, func, insert, select, update

from laketier.service.state.records import RoundRecord, TableStatus, Worker, WorkerSeen
from laketier.service.state.rows import as_round, as_table
from laketier.service.state.tables import ROUNDS, TABLES, WORKERS
from laketier.service.state.upkeep import upkeeps


def statuses(connection: Connection, service: str, now: int) -> tuple[TableStatus, ...]:
    ours = TABLES.c.service == service
    every = ROUNDS.alias()
    newest = select(func.max(every.c.fence)).where(every.c.tiering_table == TABLES.c.id)
    last = (
        select(ROUNDS)
        .join(TABLES, ROUNDS.c.tiering_table == TABLES.c.id)
        .where(ours, ROUNDS.c.fence == newest.scalar_subquery())
    )
    rounds = {row.tiering_table: as_round(row) for row in connection.execute(last)}
    tables = connection.execute(
        select(TABLES).where(ours).order_by(TABLES.c.source, TABLES.c.source_table, TABLES.c.id)
    )
    kept = upkeeps(connection, service)
    return tuple(TableStatus(as_table(row), rounds.get(row.id), now, kept.get(row.id)) for row in tables)


def rounds_of(connection: Connection, table: int, limit: int) -> tuple[RoundRecord, ...]:
    query = select(ROUNDS).where(ROUNDS.c.tiering_table == table).order_by(ROUNDS.c.fence.desc()).limit(limit)
    return tuple(as_round(row) for row in connection.execute(query))


def outgrown(connection: Connection, service: str, keep: int) -> dict[int, int]:
    """The newest fence of each table's rounds that are older than its newest ``keep``. By the index, so that a long
    history costs no more than a short one."""
    old = select(ROUNDS.c.fence).where(ROUNDS.c.tiering_table == TABLES.c.id).order_by(ROUNDS.c.fence.desc())
    fence = old.offset(keep).limit(1).correlate(TABLES).scalar_subquery().label("newest_old_fence")
    found = connection.execute(select(TABLES.c.id, fence).where(TABLES.c.service == service))
    return {row.id: row.newest_old_fence for row in found if row.newest_old_fence is not None}


def prune(connection: Connection, table: int, fence: int, most: int) -> int:
    """Delete the oldest rounds of a table up to ``fence``, so many ``most``; how many were."""
    old = select(ROUNDS.c.id).where(ROUNDS.c.tiering_table == table, ROUNDS.c.fence <= fence)
    return connection.execute(delete(ROUNDS).where(ROUNDS.c.id.in_(old.order_by(ROUNDS.c.fence).limit(most)))).rowcount


def prune_workers(connection: Connection, service: str, keep: int, silent_since: int) -> int:
    """Delete the workers that gave no sign since then, but for the newest ``keep`` and those that have a lease, whose
    deaths are still to be judged; how many were. One that lives after all is entered anew by its next sign."""
    ours = WORKERS.c.service == service
    newest = select(WORKERS.c.id).where(ours).order_by(WORKERS.c.heartbeat_at.desc(), WORKERS.c.id.desc()).limit(keep)
    leased = select(TABLES.c.lease_owner).where(TABLES.c.service == service, TABLES.c.lease_owner.is_not(None))
    old = delete(WORKERS).where(ours, WORKERS.c.heartbeat_at < silent_since)
    return connection.execute(old.where(WORKERS.c.id.not_in(newest), WORKERS.c.id.not_in(leased))).rowcount


def seen(connection: Connection, service: str, worker: Worker, now: int) -> None:
    """Note that a worker lives."""
    beat = update(WORKERS).where(WORKERS.c.id == worker.id).values(heartbeat_at=now)
    if connection.execute(beat).rowcount == 0:
        row = {"id": worker.id, "host": worker.host, "pid": worker.pid, "version": worker.version}
        connection.execute(insert(WORKERS).values(service=service, started_at=now, heartbeat_at=now, **row))


def workers_of(connection: Connection, service: str) -> tuple[WorkerSeen, ...]:
    query = select(WORKERS).where(WORKERS.c.service == service).order_by(WORKERS.c.started_at, WORKERS.c.id)
    return tuple(
        WorkerSeen(Worker(row.id, row.host, row.pid, row.version), row.started_at, row.heartbeat_at, row.stopping_at)
        for row in connection.execute(query)
    )


def stopping(connection: Connection, service: str, worker: Worker, now: int) -> None:
    """Note that a worker was told to stop: what it leaves unended is nobody's fault."""
    seen(connection, service, worker, now)
    connection.execute(update(WORKERS).where(WORKERS.c.id == worker.id).values(stopping_at=now))
