"""Charges the death of a worker to a table that the worker had alone, or to its only suspect, and to no other.

A lease is the mark: it is durable before its round begins, and cleared when the round ends, however it ends. A worker
that is killed leaves its marks behind. Of several tables nobody knows which one did it: all become *suspects*, until a
round of them goes well. No two suspects are leased by one worker at a time, and beside one it takes others only after
`PATIENCE_MS`. So a worker that dies is charged to its only table, or to its only suspect; after `SET_ASIDE_AFTER` such
deaths in a row the table is set aside: STOPPED, until a person resumes it. A bystander that is charged as it was a
suspect of an earlier death is cleared by its next round that goes well.

A worker may live and tell that what ran its rounds died (`Death`): its engine counts as the worker would, and the
process of a task that had no other table's counts against its table, of which it takes `SET_ASIDE_AFTER_TASKS`.

No death is charged where the worker was told to stop before (a deployment, a host that shuts down), where it has been
heard of since (it lost its lease, and lives) or has come back from the dead before, though not too often, and where it
never gave a sign. And where a table was set aside and no round of the service went well since, no second one is: then
it is the workers that die, whatever they tier. That holds also where the first one was resumed meanwhile. The only
table that a service tiers (others may be paused, or stopped) is not set aside for lost workers either: nobody would get
on by that, and hosts are lost for reasons of their own. A table that would be set aside otherwise waits before each
further try, longer each time (`Charge.waits`): hosts that die one after the other cost money, and bring nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, func, select, update

from laketier.service.schedule import State
from laketier.service.state.records import SLACK_MS, Death, LeaseEnd, RegisteredTable
from laketier.service.state.rows import as_table
from laketier.service.state.tables import ROUNDS, TABLES, WORKERS, state_is

SET_ASIDE_AFTER = 3
SET_ASIDE_AFTER_TASKS = 8
"""The worker lives, its table runs alone, and the next try comes within seconds: with the waits between so many,
another process may take the host's memory for some minutes, and no table is stopped for it."""
PATIENCE_MS = 60_000
"""So long a worker waits with new tables, at most, until it has none and can take a suspect alone, and so long it
takes no others beside one. A round that hangs must not hold up all others."""
APART_MS = 1_800_000
"""So long no other suspect is leased beside one: with two of them nobody would know which one to charge."""
MOST_RETURNS = 8
"""A worker that came back so often from rounds of one table is charged again: it may be the table that freezes it, each
time for longer than a lease."""
_SET_ASIDE = "set aside: "
"""The begin of what the history says of a round after which a table was set aside; `_set_aside_before` looks for it."""
_APART = "the table runs alone, for a minute at least, until one of its rounds succeeds"
_ALONE = "which ran alone, or was the only one there with an earlier death"
_NOT_TIERED = (State.DROPPED.value, State.RECREATED.value, State.PAUSED.value, State.STOPPED.value)
_RAN_OUT = "its lease ran out without a sign of its worker"


@dataclass(frozen=True)
class Waiting:
    """A table of the queue."""

    id: int
    fence: int
    suspect: bool


@dataclass(frozen=True)
class Charge:
    """The meaning of an expired lease for its table. ``columns``: of its row."""

    ending: LeaseEnd
    why: str
    columns: Mapping[str, Any]
    waits: bool = False
    """Whether the table is tried again after a wait only, as after a round that failed."""

    @property
    def set_aside(self) -> bool:
        return self.ending is LeaseEnd.STOPPED


def leased_by(connection: Connection, service: str, worker: str) -> list[RegisteredTable]:
    """The tables that a worker has now."""
    query = select(TABLES).where(TABLES.c.service == service, state_is(State.TIERING), TABLES.c.lease_owner == worker)
    return [as_table(row) for row in connection.execute(query)]


def _begun_within(leased: Sequence[RegisteredTable], period_ms: int, now: int) -> list[RegisteredTable]:
    # As in `enqueueing`: a lease that began far ahead began before the clock was set right, which is not waited for.
    return [table for table in leased if abs(now - (table.leased_at or now)) < period_ms]


def keep_suspects_out(leased: Sequence[RegisteredTable], now: int) -> bool:
    """Whether a worker that has these takes no suspect: not even one at the head of the queue, whose turn comes at
    other workers, or later. Those behind it need not wait for that."""
    return any(table.suspect for table in _begun_within(leased, APART_MS, now))


def first_of(waiting: Sequence[Waiting], leased: Sequence[RegisteredTable], now: int) -> list[Waiting]:
    """Those at the head of the queue that a worker may take beside what it has: one suspect, or others."""
    young = _begun_within(leased, PATIENCE_MS, now)
    if waiting[0].suspect:
        return [] if young else [waiting[0]]
    if any(table.suspect for table in young):
        return []
    return [each for each in waiting if not each.suspect]


def is_charged(taken: Sequence[Waiting], leased: Sequence[RegisteredTable], *, busy: bool) -> bool:
    """Whether the worker's death would be charged to what it takes now: to one table alone, or to its only suspect."""
    if taken[0].suspect:
        return not any(table.suspect for table in leased) and (bool(leased) or not busy)
    return len(taken) == 1 and not leased and not busy


def have_company(connection: Connection, leased: Sequence[RegisteredTable], taken: Sequence[Waiting]) -> None:
    """The worker takes these beside what it has. Should it die now, what it has is the cause only if that is its one
    suspect."""
    alone = [table.id for table in leased if table.alone and (taken[0].suspect or not table.suspect)]
    if alone:
        connection.execute(update(TABLES).where(TABLES.c.id.in_(alone)).values(alone=False))


def charged(
    connection: Connection, service: str, asking: str, expired: Sequence[RegisteredTable], lease_ms: int, now: int
) -> Iterator[tuple[RegisteredTable, Charge]]:
    """Each table whose lease ran out, with what that means. The caller records it before the next is asked for.
    ``asking``: the worker that found them; it lives, however long ago its last heartbeat was."""
    dead = _dead(connection, {table.lease_owner or "" for table in expired} - {asking}, lease_ms, now)
    returned = _returned(connection, expired)
    for table in expired:
        if table.lease_owner not in dead or table.id in returned:
            kept = {"deaths": table.deaths, "suspect": table.suspect, "error": table.error}
            yield table, Charge(LeaseEnd.EXPIRED, _RAN_OUT, kept)
        elif not table.alone:
            why = (
                f"worker {table.lease_owner} died, or no longer answered, while it had this table and others; {_APART}"
            )
            yield table, Charge(LeaseEnd.EXPIRED, why, {"deaths": table.deaths, "suspect": True, "error": why})
        else:
            yield (
                table,
                _charged_alone(
                    connection,
                    service,
                    table,
                    f"worker {table.lease_owner} died, or no longer answered, in a round of this table, {_ALONE}",
                    "workers in a row died, or no longer answered, in rounds of this table, "
                    f"{_ALONE}; the last one was {table.lease_owner}",
                ),
            )


def charged_in_round(connection: Connection, service: str, table: RegisteredTable, death: Death) -> Charge:
    """What a death means that the worker of a round lived to tell. The caller records it before the next is asked
    for."""
    is_task = death is Death.TASK
    if is_task:
        died = f"a task of worker {table.lease_owner} died, in a job that had this table alone"
    elif table.alone:
        died = f"the engine of worker {table.lease_owner} died in a round of this table, {_ALONE}"
    else:
        why = f"the engine of worker {table.lease_owner} died while it had this table and others; {_APART}"
        return Charge(LeaseEnd.FAILED, why, {"deaths": table.deaths, "suspect": True})
    times = f"times in a row the worker, its engine or a task of this table died in a round of it; the last time {died}"
    after = SET_ASIDE_AFTER_TASKS if is_task else SET_ASIDE_AFTER
    return _charged_alone(connection, service, table, died, times, LeaseEnd.FAILED, after, worker_lives=is_task)


def _charged_alone(
    connection: Connection,
    service: str,
    table: RegisteredTable,
    died: str,
    times: str,
    ending: LeaseEnd = LeaseEnd.EXPIRED,
    after: int = SET_ASIDE_AFTER,
    *,
    worker_lives: bool = False,
) -> Charge:
    deaths = table.deaths + 1
    columns = {"deaths": deaths, "suspect": True}
    if deaths < after:
        why = f"{died}: {deaths} in a row, and after {after} the table is set aside"
        return Charge(ending, why, {**columns, "error": why})
    other = _set_aside_before(connection, service, table)
    if other is not None:
        why = (
            f"{died}: {deaths} in a row. It is tried again, later each time, as no round of the service succeeded "
            f"since {other} was set aside for the same reason: check the workers and hosts (memory, the kernel's log), "
            "not the tables"
        )
        return Charge(ending, why, {**columns, "error": why}, waits=True)
    if not worker_lives and not _has_others(connection, service, table):
        why = (
            f"{died}: {deaths} in a row. It is tried again, later each time, as no other table of the service is "
            "tiered, and none can tell whether the workers would live without it: check the workers and hosts (memory, "
            "the kernel's log), and the table's source beyond the last epoch"
        )
        return Charge(ending, why, {**columns, "error": why}, waits=True)
    why = (
        f"{_SET_ASIDE}{deaths} {times}. Find out why it died (its log; the kernel's log, for lack of memory), "
        "and check the table's source beyond the last epoch; then run `laketier service resume`"
    )
    return Charge(LeaseEnd.STOPPED, why, {**columns, "error": why})


def _dead(connection: Connection, workers: set[str], lease_ms: int, now: int) -> set[str]:
    """Those that have not been heard of for a lease's time, and were not told to stop. A sign from the future was given
    while the database's clock was wrong: a worker that lives has given another one since."""
    beat = WORKERS.c.heartbeat_at
    query = select(WORKERS.c.id).where(
        WORKERS.c.id.in_(workers),
        (beat <= now - lease_ms) | (beat > now + SLACK_MS),
        WORKERS.c.stopping_at.is_(None),
    )
    return {row.id for row in connection.execute(query)}


def _returned(connection: Connection, expired: Sequence[RegisteredTable]) -> set[int]:
    """The tables whose worker lost a lease of the same table before and took it again. It had seemed dead and was
    alive: the clock jumps, or the host sleeps, and it may well live now, too. One that does die is another one's next
    time, as each start of a worker has a name of its own."""
    lost = select(ROUNDS.c.tiering_table, ROUNDS.c.worker).where(
        ROUNDS.c.tiering_table.in_([table.id for table in expired]),
        ROUNDS.c.worker.in_({table.lease_owner or "" for table in expired}),
        ROUNDS.c.ending == LeaseEnd.EXPIRED.value,
    )
    query = lost.group_by(ROUNDS.c.tiering_table, ROUNDS.c.worker).having(func.count() < MOST_RETURNS)
    owners = {table.id: table.lease_owner for table in expired}
    return {row.tiering_table for row in connection.execute(query) if owners[row.tiering_table] == row.worker}


def _has_others(connection: Connection, service: str, table: RegisteredTable) -> bool:
    """Whether others would get on without the table: not those that wait for a person. They need not have got on yet: a
    table of a higher priority that kills each worker lets none of them begin."""
    query = select(TABLES.c.id).where(TABLES.c.service == service, TABLES.c.id != table.id)
    return connection.execute(query.where(TABLES.c.state.not_in(_NOT_TIERED)).limit(1)).first() is not None


def _set_aside_before(connection: Connection, service: str, table: RegisteredTable) -> str | None:
    """Another table that was set aside, if no round of the service succeeded since: in the order in which they were
    recorded, as the clock may have been set right between the two. The history tells, as a resumed table looks like
    any other."""
    aside = (
        select(TABLES.c.source, TABLES.c.source_table, func.max(ROUNDS.c.id).label("round"))
        .join(ROUNDS, ROUNDS.c.tiering_table == TABLES.c.id)
        .where(
            TABLES.c.service == service,
            TABLES.c.id != table.id,
            ROUNDS.c.ending == LeaseEnd.STOPPED.value,
            ROUNDS.c.error.startswith(_SET_ASIDE, autoescape=True),
        )
        .group_by(TABLES.c.id, TABLES.c.source, TABLES.c.source_table)
    )
    last = max(connection.execute(aside), key=lambda row: row.round, default=None)
    if last is None:
        return None
    good = select(ROUNDS.c.id).join(TABLES, ROUNDS.c.tiering_table == TABLES.c.id)
    good = good.where(
        TABLES.c.service == service,
        ROUNDS.c.id > last.round,
        ROUNDS.c.ending.in_([LeaseEnd.TIERED.value, LeaseEnd.FORCE_COMPLETED.value]),
    )
    return None if connection.execute(good.limit(1)).first() else f"{last.source}.{last.source_table}"
