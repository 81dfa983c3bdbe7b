"""Leases: how a worker takes tables, keeps them and gives them back. Each function is a part of one transaction.

Exclusion is the compare-and-set on the fence and the state; clocks have no part in it. ``lease_until`` only says from
when on a lease may be taken over: too early, the one that had it gets `LeaseLost`, and the lake refuses its fence.

All workers go by the database's clock.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, select, tuple_, update

from laketier.service.schedule import Backoff, State, move
from laketier.service.state import deaths
from laketier.service.state.endings import Result, Retries, after, after_failure, ending, of_death, round_of, text_of
from laketier.service.state.enqueueing import enqueue_due
from laketier.service.state.errors import LeaseLost, StateError
from laketier.service.state.records import Failure, Lease, LeaseEnd, RegisteredTable, RoundRecord, Success
from laketier.service.state.rows import Queue, as_table, change, locked, record
from laketier.service.state.tables import ROUNDS, TABLES, state_is


def acquire(
    connection: Connection,
    service: str,
    worker: str,
    limit: int,
    lease_ms: int,
    retries: Retries,
    *,
    busy: bool = False,
) -> tuple[Lease, ...]:
    """Lease the first ``limit`` tables of the queue, or one alone (see `deaths`). Rows that another worker works on
    just now are passed over."""
    now = retries.now
    enqueue_due(connection, service, worker, lease_ms, retries.longest_ms, now, retries.wait_ms)
    leased = deaths.leased_by(connection, service, worker)
    queue = (
        select(TABLES.c.id, TABLES.c.fence, TABLES.c.suspect)
        .where(TABLES.c.service == service, state_is(State.PENDING))
        .order_by(TABLES.c.priority.desc(), TABLES.c.enqueued_at, TABLES.c.id)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    if deaths.keep_suspects_out(leased, now):
        queue = queue.where(TABLES.c.suspect.is_(False))
    waiting = [deaths.Waiting(row.id, row.fence, row.suspect) for row in connection.execute(queue)]
    taking = deaths.first_of(waiting, leased, now) if waiting else []
    if not taking:
        return ()
    first = [(each.id, each.fence) for each in taking]
    deaths.have_company(connection, leased, taking)
    taken = connection.execute(
        update(TABLES)
        .where(
            TABLES.c.id.in_([number for number, _ in first]),
            tuple_(TABLES.c.id, TABLES.c.fence).in_(first),
            TABLES.c.state == State.PENDING.value,
        )
        .values(
            state=move(service, State.PENDING, State.TIERING).value,
            fence=TABLES.c.fence + 1,
            lease_owner=worker,
            leased_at=now,
            lease_until=now + lease_ms,
            enqueued_at=None,
            alone=deaths.is_charged(taking, leased, busy=busy),
        )
        .returning(TABLES)
    )
    tables = {row.id: as_table(row) for row in taken}
    return tuple(
        Lease(tables[number], tables[number].fence, worker, now + lease_ms) for number, _ in first if number in tables
    )


def _holds(lease: Lease, table: RegisteredTable | None) -> bool:
    return (
        table is not None
        and table.state is State.TIERING
        and table.fence == lease.fence
        and table.lease_owner == lease.worker
    )


def renew(
    connection: Connection, service: str, worker: str, leases: Sequence[Lease], lease_ms: int, now: int
) -> tuple[Lease, ...]:
    """The leases that are still this worker's, renewed; also those that ran out and nobody has taken over."""
    tables = locked(connection, service, [lease.table.id for lease in leases])
    ours = [lease for lease in leases if lease.worker == worker and _holds(lease, tables.get(lease.table.id))]
    change(connection, [(tables[lease.table.id], {"lease_until": now + lease_ms}) for lease in ours])
    return tuple(replace(lease, deadline=now + lease_ms) for lease in ours)


def raise_fence(connection: Connection, service: str, lease: Lease, above: int) -> Lease | None:
    """The lease with a fence above ``above``; None when it is lost."""
    table = locked(connection, service, [lease.table.id]).get(lease.table.id)
    if table is None or not _holds(lease, table):
        return None
    fence = max(lease.fence, above + 1)
    change(connection, [(table, {"fence": fence})])
    return replace(lease, table=replace(lease.table, fence=fence), fence=fence)


def end(
    connection: Connection,
    service: str,
    results: Sequence[tuple[Lease, Result]],
    now: int,
    backoff: Backoff,
    draw: random.Random,
) -> tuple[Lease, ...]:
    """End leases. Those that are lost are returned and change nothing; nor does one that was ended just so before, as
    the answer to the first time may not have arrived."""
    if len({lease.table.id for lease, _ in results}) != len(results):
        raise StateError("a table's lease is ended twice in one call", fix="Give each table once.")
    tables = locked(connection, service, [lease.table.id for lease, _ in results])
    queue, retries = Queue(connection, service), Retries(now, backoff, draw)
    changes: list[tuple[RegisteredTable, dict[str, Any]]] = []
    died: list[tuple[RegisteredTable, Lease, Failure]] = []
    rounds: list[RoundRecord] = []
    others: list[tuple[Lease, Result]] = []
    for lease, result in results:
        table = tables.get(lease.table.id)
        if table is None or not _holds(lease, table):
            others.append((lease, result))
            continue
        if isinstance(result, Failure) and result.death is not None:
            died.append((table, lease, result))
            continue
        rounds.append(round_of(table, lease, result, now))
        changes.append((table, after(table, result, queue, retries)))
    if change(connection, changes) != len(changes):
        raise StateError("the database changed rows that were locked", fix="Report this.")
    record(connection, rounds)
    for table, lease, failure in died:
        _charge(connection, service, table, lease, failure, retries)
    return _not_ended_so(connection, others)


def _charge(
    connection: Connection, service: str, table: RegisteredTable, lease: Lease, failure: Failure, retries: Retries
) -> None:
    assert failure.death is not None
    charge = deaths.charged_in_round(connection, service, table, failure.death)
    told = replace(failure, error=f"{charge.why}. {text_of(failure)}", retryable=not charge.set_aside)
    record(connection, [round_of(table, lease, told, retries.now)])
    values = {**after_failure(table, told, retries), **charge.columns, "error": text_of(told)}
    if change(connection, [(table, values)]) != 1:
        raise StateError("the database changed rows that were locked", fix="Report this.")


def lost(lease: Lease) -> LeaseLost:
    """The error of a lease that is not held."""
    return LeaseLost(
        f"the lease with fence {lease.fence} is not held by {lease.worker}",
        where=lease.table.name,
        why="it ran out while the worker gave no sign, and the table was given out anew, to this or another one; or "
        "the table was dropped, moved or recreated meanwhile",
        fix="Nothing for the rows: what the round staged is not published, and the next one goes on from the table's "
        "watermark. If this comes often, the worker stands still for longer than its lease: give the service a longer "
        "`lease`.",
    )


def _not_ended_so(connection: Connection, results: Sequence[tuple[Lease, Result]]) -> tuple[Lease, ...]:
    if not results:
        return ()
    query = select(ROUNDS).where(ROUNDS.c.tiering_table.in_([lease.table.id for lease, _ in results]))
    query = query.where(
        tuple_(ROUNDS.c.tiering_table, ROUNDS.c.fence).in_([(lease.table.id, lease.fence) for lease, _ in results])
    )
    ended = {row.tiering_table: row for row in connection.execute(query)}

    def ended_so(lease: Lease, result: Result) -> bool:
        row = ended.get(lease.table.id)
        return (
            row is not None
            and row.worker == lease.worker
            and (row.ending == ending(result).value or (of_death(result) and row.ending == LeaseEnd.STOPPED.value))
            and (not isinstance(result, Success) or row.epoch == result.epoch)
        )

    return tuple(lease for lease, result in results if not ended_so(lease, result))
