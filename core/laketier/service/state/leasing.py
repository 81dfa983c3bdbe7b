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

from laketier.service.schedule import Backoff, State, due_at, move
from laketier.service.state import deaths
from laketier.service.state.enqueueing import enqueue_due, given_back
from laketier.service.state.errors import LeaseLost, StateError
from laketier.service.state.records import Failure, Lease, LeaseEnd, RegisteredTable, RoundRecord, Success
from laketier.service.state.rows import NOT_IN_QUEUE, UNLEASED, Queue, as_table, change, locked, record, storable
from laketier.service.state.tables import ROUNDS, TABLES, state_is
from laketier.spi.redaction import redacted

Result = Success | Failure | None
"""How a lease ends; None: given back."""
TRIES_AT_ONCE = 3
"""After so many failures in a row a table waits, also where the next try may well go better: another writer that
commits all the time must not keep a worker busy for nothing."""

_ERROR_CHARACTERS = 4000


def acquire(
    connection: Connection,
    service: str,
    worker: str,
    limit: int,
    lease_ms: int,
    now: int,
    longest_wait_ms: int,
    *,
    busy: bool = False,
) -> tuple[Lease, ...]:
    """Lease the first ``limit`` tables of the queue, or one alone (see `deaths`). Rows that another worker works on
    just now are passed over."""
    enqueue_due(connection, service, lease_ms, longest_wait_ms, now)
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
    queue = Queue(connection, service)
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
        rounds.append(_round_of(table, lease, result, now))
        changes.append((table, _after(table, result, queue, now, backoff, draw)))
    if change(connection, changes) != len(changes):
        raise StateError("the database changed rows that were locked", fix="Report this.")
    record(connection, rounds)
    for table, lease, failure in died:
        _charge(connection, service, table, lease, failure, now, backoff, draw)
    return _not_ended_so(connection, others)


def _charge(
    connection: Connection,
    service: str,
    table: RegisteredTable,
    lease: Lease,
    failure: Failure,
    now: int,
    backoff: Backoff,
    draw: random.Random,
) -> None:
    assert failure.death is not None
    charge = deaths.charged_in_round(connection, service, table, failure.death)
    told = replace(failure, error=f"{charge.why}. {_text(failure)}", retryable=not charge.set_aside)
    record(connection, [_round_of(table, lease, told, now)])
    values = {**_after_failure(table, told, now, backoff, draw), **charge.columns, "error": _text(told)}
    if change(connection, [(table, values)]) != 1:
        raise StateError("the database changed rows that were locked", fix="Report this.")


def lost(lease: Lease) -> LeaseLost:
    """The error of a lease that is not held."""
    return LeaseLost(
        f"the lease with fence {lease.fence} is not held by {lease.worker}",
        where=lease.table.name,
        why="it ran out and was taken over, or the table was dropped, moved or recreated meanwhile",
        fix="Discard the staged files of this round. The worker that has the lease now continues from the watermark.",
    )


def _after(
    table: RegisteredTable, result: Result, queue: Queue, now: int, backoff: Backoff, draw: random.Random
) -> dict[str, Any]:
    same = {name: getattr(table, name) for name in _ENDING_COLUMNS}
    if result is None:
        return {**same, **given_back(table, queue, now)}
    if isinstance(result, Failure):
        return {**same, **_after_failure(table, result, now, backoff, draw)}
    # A round's own clock may be another one: what it looked up was there between its lease's begin and now.
    read_until = min(now, max(table.leased_at or 0, now if result.read_until_at is None else result.read_until_at))
    values: dict[str, Any] = {
        **same,
        **NOT_IN_QUEUE,
        "last_tiered_at": _past(table.last_tiered_at, now) if result.force_completed else read_until,
        "due_at": due_at(read_until, table.freshness_seconds, max(0, now - table.due_at)),
        "failures": 0,
        "deaths": 0,
        "suspect": False,
        "error": None,
        "offsets": table.offsets if result.offsets is None else result.offsets,
        "epoch": table.epoch if result.epoch is None else result.epoch,
        "snapshot_id": table.snapshot_id if result.snapshot_id is None else result.snapshot_id,
        "lag_offsets": result.lag_offsets,
        "lag_seconds": result.lag_seconds,
        "rounds_total": table.rounds_total + 1,
        "rows_total": table.rows_total + result.rows,
        "bytes_total": table.bytes_total + result.bytes,
        "files_total": table.files_total + result.files,
        "bad_records_total": table.bad_records_total + result.bad_records,
    }
    if result.force_completed:
        return {**values, **given_back(table, queue, now)}
    then = State.PAUSED if table.paused else State.SCHEDULED
    return {**values, "state": move(table.name, table.state, State.TIERED, then).value}


def _past(tiered_at: int | None, now: int) -> int | None:
    """None where a clock that was ahead set it: nobody knows how old the table is."""
    return None if tiered_at is None or tiered_at > now else tiered_at


_ENDING_COLUMNS = (
    *("state", "enqueued_at", "next_try_at", "last_tiered_at", "due_at", "failures", "error", *UNLEASED),
    *("deaths", "suspect"),
    *("offsets", "epoch", "snapshot_id", "lag_offsets", "lag_seconds"),
    *("rounds_total", "rows_total", "bytes_total", "files_total", "bad_records_total"),
)


def _after_failure(
    table: RegisteredTable, failure: Failure, now: int, backoff: Backoff, draw: random.Random
) -> dict[str, Any]:
    failures = table.failures + 1
    # It did no harm this time: it need not be alone for that again, unless a death has been charged to it.
    suspect = table.suspect and table.deaths > 0
    values: dict[str, Any] = {**NOT_IN_QUEUE, "failures": failures, "error": _text(failure), "suspect": suspect}
    if not failure.retryable:
        return {**values, "state": move(table.name, table.state, State.STOPPED).value}
    state = move(table.name, table.state, State.FAILED)
    if table.paused:
        return {**values, "state": move(table.name, state, State.PAUSED).value}
    wait = 0 if failure.at_once and failures <= TRIES_AT_ONCE else backoff.wait_ms(failures, draw)
    return {**values, "state": state.value, "next_try_at": now + wait}


def _ending(result: Result) -> LeaseEnd:
    if result is None:
        return LeaseEnd.RELEASED
    if isinstance(result, Failure):
        return LeaseEnd.FAILED if result.retryable else LeaseEnd.STOPPED
    return LeaseEnd.FORCE_COMPLETED if result.force_completed else LeaseEnd.TIERED


def _of_death(result: Result) -> bool:
    """Whether it may have set its table aside."""
    return isinstance(result, Failure) and result.death is not None


def _text(failure: Failure) -> str:
    error = failure.error
    text = error if isinstance(error, str) else str(error) or type(error).__name__
    return redacted(storable(text))[:_ERROR_CHARACTERS]


def _round_of(table: RegisteredTable, lease: Lease, result: Result, now: int) -> RoundRecord:
    began = now if table.leased_at is None else table.leased_at
    ended = RoundRecord(table.id, lease.fence, lease.worker, began, now, _ending(result))
    if isinstance(result, Failure):
        return replace(ended, error=_text(result))
    if result is None:
        return ended
    return replace(
        ended,
        epoch=result.epoch,
        rows=result.rows,
        bytes=result.bytes,
        files=result.files,
        bad_records=result.bad_records,
        snapshot_id=result.snapshot_id,
        range_start=result.range_start,
        range_end=result.range_end,
        lag_offsets=result.lag_offsets,
        lag_seconds=result.lag_seconds,
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
            and (row.ending == _ending(result).value or (_of_death(result) and row.ending == LeaseEnd.STOPPED.value))
            and (not isinstance(result, Success) or row.epoch == result.epoch)
        )

    return tuple(lease for lease, result in results if not ended_so(lease, result))
