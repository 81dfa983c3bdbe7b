"""Commands that people give to tables: pause, resume, retier, drop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from sqlalchemy import Connection, select

from laketier.service.schedule import IllegalTransition, State, move
from laketier.service.state.records import LeaseEnd, RegisteredTable
from laketier.service.state.registering import BY_HAND, is_back
from laketier.service.state.rows import NOT_IN_QUEUE, as_table, change, ended_lease, record
from laketier.service.state.tables import TABLES
from laketier.spi import TableNotFound

_RUNS = (State.NEW, State.SCHEDULED, State.PENDING, State.TIERING)


class _Runs(IllegalTransition):
    """It waits for nobody. Of a pattern that is no fault: others of its tables may have waited, and do so no more."""


Command = Callable[[RegisteredTable, int], Mapping[str, Any] | None]
"""The columns that it sets, None when there is nothing to do. Raises `IllegalTransition`."""


def apply(connection: Connection, service: str, pattern: str, now: int, command: Command) -> tuple[str, ...]:
    """Do it to the tables that the pattern matches, and return their names. One that can't take it is passed over as
    long as another one can, or is resumed though it runs. A table may be called as a pattern is: its own name matches
    it in any case."""
    query = select(TABLES).where(TABLES.c.service == service).order_by(TABLES.c.id)
    everything = [as_table(row) for row in connection.execute(query.with_for_update())]
    tables = [table for table in everything if pattern == table.name or fnmatchcase(table.name, pattern)]
    if not tables:
        raise TableNotFound(
            f"no table matches {pattern!r}",
            where=f"service {service}",
            fix="Names are SOURCE.TABLE, and patterns use * ? and [...]. `laketier service status FILE` lists them.",
        )
    did: list[str] = []
    refused: list[IllegalTransition] = []
    back = {table.name for table in tables if command is resume and is_back(table)}
    for table in tables:
        if table.name in back and not is_back(table):
            continue  # a namesake, which its source has no more
        try:
            values = command(table, now)
        except IllegalTransition as error:
            refused.append(error)
            continue
        if values:
            if table.state is State.TIERING and values.get("state") == State.DROPPED:
                record(connection, [ended_lease(table, LeaseEnd.DROPPED, now, BY_HAND)])
            change(connection, [(table, values)])
        did.append(table.name)
    is_name = any(pattern == table.name for table in tables)
    if refused and not did and (is_name or not any(isinstance(error, _Runs) for error in refused)):
        raise refused[0]
    return tuple(dict.fromkeys(did))  # of a recreated table there are two


def pause(table: RegisteredTable, _now: int) -> Mapping[str, Any] | None:
    if table.state is State.PAUSED:
        return None
    if table.state is State.TIERING:
        return {"paused": True}
    if table.state is State.DROPPED:  # PAUSED may follow it, but only when the table is back
        raise IllegalTransition("a dropped table can't be paused", where=table.name)
    return {**NOT_IN_QUEUE, "paused": True, "state": move(table.name, table.state, State.PAUSED).value}


def resume(table: RegisteredTable, now: int) -> Mapping[str, Any] | None:
    if table.state is State.TIERING and table.paused:
        return {"paused": False}
    if table.state in _RUNS:
        raise _Runs(f"a table that is {table.state} can't be resumed", where=table.name, fix="Nothing: it runs.")
    if table.state is State.FAILED:
        raise _Runs(
            "a table that is FAILED can't be resumed",
            where=table.name,
            why="it is tried again by itself",
            fix="Run `laketier service retier`, and it is tried now.",
        )
    if table.state is State.RECREATED and not is_back(table):
        raise IllegalTransition(
            "a table that was recreated can't be resumed",
            where=table.name,
            why="its source listed another table of that name last",
            fix="Nothing, if that is the right one: it is a table of its own in `laketier service status`. If not, "
            "set the source right, and resume it once a worker has listed its tables.",
        )
    if table.state not in (State.PAUSED, State.STOPPED, State.DROPPED, State.RECREATED):
        raise IllegalTransition(f"a table that is {table.state} can't be resumed", where=table.name)
    if table.state is State.DROPPED and not table.dropped_by_hand:
        raise IllegalTransition("a table that the source or the file lacks can't be resumed", where=table.name)
    return {
        **NOT_IN_QUEUE,
        "state": move(table.name, table.state, State.SCHEDULED).value,
        "paused": False,
        "dropped_by_hand": False,
        "failures": 0,
        "deaths": 0,
        "suspect": False,
        "error": None,
        "due_at": now,
    }


def retier(table: RegisteredTable, now: int) -> Mapping[str, Any] | None:
    if table.state in (State.NEW, State.SCHEDULED):
        return {"due_at": now}
    if table.state is State.FAILED:
        return {"next_try_at": now}
    if table.state is State.PENDING:
        return None
    raise IllegalTransition(
        f"a table that is {table.state} can't be made due", where=table.name, fix="Resume it, or wait for its round."
    )


def drop(table: RegisteredTable, _now: int) -> Mapping[str, Any] | None:
    if table.state is State.DROPPED:
        return {"dropped_by_hand": True, "error": BY_HAND}
    state = move(table.name, table.state, State.DROPPED)
    return {**NOT_IN_QUEUE, "state": state.value, "dropped_by_hand": True, "error": BY_HAND}
