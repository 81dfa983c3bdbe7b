"""Enqueues tables: due tables, tables that have waited after a failure, and tables that lost their worker.

Where the database's clock was ahead and was set right, times further off than any that it would write now are not
waited for: a table would be left alone for as long as the clock was wrong by.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Connection, cast, select

from laketier.service.schedule import State, move
from laketier.service.state import deaths
from laketier.service.state.records import LEASES, SLACK_MS, RegisteredTable
from laketier.service.state.rows import NOT_IN_QUEUE, Queue, as_table, change, ended_lease, record
from laketier.service.state.tables import TABLES, state_is

_SECOND = 1000


def enqueue_due(
    connection: Connection,
    service: str,
    worker: str,
    lease_ms: int,
    longest_wait_ms: int,
    now: int,
    wait_ms: Callable[[int], int],
) -> None:
    """Put into the queue what has become due, has waited long enough after a failure, or has lost its worker.
    ``worker``: that asks. ``wait_ms``: how long a table waits after so many failures in a row."""
    due, again, until = TABLES.c.due_at, TABLES.c.next_try_at, TABLES.c.lease_until
    freshness = cast(TABLES.c.freshness_seconds, BigInteger) * _SECOND  # in ms, a month is more than an int32
    is_due = (due <= now) | (due - freshness > now + SLACK_MS)
    may_try = (again <= now) | (again > now + longest_wait_ms + SLACK_MS)
    has_run_out = (until <= now) | (until > now + LEASES * lease_ms + SLACK_MS)
    _enqueue(connection, service, state_is(State.NEW, State.SCHEDULED) & is_due, lambda t: min(t.due_at, now))
    _enqueue(connection, service, state_is(State.FAILED) & may_try, lambda t: min(t.next_try_at or now, now))
    expired = _due(connection, service, state_is(State.TIERING) & has_run_out)
    expired.sort(key=lambda table: (table.lease_until or now, table.id))
    if expired:
        queue = Queue(connection, service)
        for table, charge in deaths.charged(connection, service, worker, expired, lease_ms, now):
            record(connection, [ended_lease(table, charge.ending, now, charge.why)])
            stopped = {**NOT_IN_QUEUE, "state": move(table.name, table.state, State.STOPPED).value}
            then = stopped if charge.set_aside else given_back(table, queue, now)
            if charge.waits and not table.paused:
                failures = table.failures + 1
                state = move(table.name, table.state, State.FAILED).value
                then = {**NOT_IN_QUEUE, "state": state, "failures": failures, "next_try_at": now + wait_ms(failures)}
            change(connection, [(table, {**then, **charge.columns})])


def _enqueue(
    connection: Connection, service: str, condition: ColumnElement[bool], since: Callable[[RegisteredTable], int]
) -> None:
    tables = sorted(_due(connection, service, condition), key=lambda table: (since(table), table.id))
    queue = Queue(connection, service)
    changes: list[tuple[RegisteredTable, dict[str, Any]]] = []
    for table in tables:
        path = (State.SCHEDULED, State.PENDING) if table.state is State.NEW else (State.PENDING,)
        state = move(table.name, table.state, *path).value
        joined = queue.join(table.priority, since(table))
        changes.append((table, {**NOT_IN_QUEUE, "state": state, "enqueued_at": joined}))
    change(connection, changes)


def _due(connection: Connection, service: str, condition: ColumnElement[bool]) -> list[RegisteredTable]:
    query = select(TABLES).where(TABLES.c.service == service, condition).with_for_update(skip_locked=True)
    return [as_table(row) for row in connection.execute(query)]


def given_back(table: RegisteredTable, queue: Queue, now: int) -> dict[str, Any]:
    """The columns of a table whose lease ended without a round."""
    if table.paused:
        return {**NOT_IN_QUEUE, "state": move(table.name, table.state, State.PAUSED).value}
    state = move(table.name, table.state, State.PENDING).value
    return {**NOT_IN_QUEUE, "state": state, "enqueued_at": queue.join(table.priority, now)}
