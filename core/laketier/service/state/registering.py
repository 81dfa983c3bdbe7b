"""Registration: what the service's file and its sources say, against what the state database knows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, insert, select

from laketier.kit.warehouse import is_same_place
from laketier.service.schedule import State, due_at, move
from laketier.service.state.records import LeaseEnd, RegisteredTable, Registration, RegistrationResult
from laketier.service.state.rows import NOT_IN_QUEUE, Queue, as_table, change, ended_lease, record, storable
from laketier.service.state.tables import TABLES
from laketier.spi import ConfigError

_ALL_MOVED = (
    " If the warehouse was moved as a whole, `laketier service resume FILE '*'` resumes all of its tables, also those "
    "that were paused or dropped by hand."
)
_WITHOUT_LOG = (State.FAILED, State.STOPPED)
_GONE = "it is no longer in the source, or the service's file no longer names it"
BY_HAND = "it was dropped by hand"
"""Why a table is DROPPED that a person dropped."""


IS_BACK = "the source has this table again: "
"""The begin of the error of a recreated table that the source listed last; a resume looks for it."""
_TAKE_UP = (
    "If the source was another one for a while, and is the former one now, run `laketier service resume FILE {name}`: "
    "it goes on where the lake table ends"
)


def is_back(table: RegisteredTable) -> bool:
    """Whether a table that was recreated is the one that its source listed last."""
    return table.state is State.RECREATED and (table.error or "").startswith(IS_BACK)


def _is_back_now(row: RegisteredTable) -> str:
    return f"{IS_BACK}its id is {row.table_id!r} once more. {_TAKE_UP.format(name=row.name)}"


def _made_again(row: RegisteredTable, wanted: Registration) -> str:
    return f"the source's table was recreated: its id was {row.table_id!r} and is {wanted.table_id!r} now"


def end_running(connection: Connection, table: RegisteredTable, ending: LeaseEnd, now: int, why: str) -> None:
    """Note the end of the lease that a table loses as it leaves TIERING by another hand than its worker's."""
    if table.state is State.TIERING:
        record(connection, [ended_lease(table, ending, now, why)])


class Registrar:
    """One call of `StateStore.register`."""

    def __init__(self, connection: Connection, service: str, now: int) -> None:
        self._connection = connection
        self._service = service
        self._now = now
        self._did: dict[str, list[str]] = defaultdict(list)
        self._new: list[tuple[Registration, Sequence[RegisteredTable]]] = []
        self._queue = Queue(connection, service)

    def register(self, tables: Sequence[Registration], unlisted: Collection[str]) -> RegistrationResult:
        """``unlisted``: sources that could not be asked, so that no table of theirs counts as gone."""
        wanted = _by_name(tables)
        known: dict[tuple[str, str], list[RegisteredTable]] = defaultdict(list)
        query = select(TABLES).where(TABLES.c.service == self._service).order_by(TABLES.c.id).with_for_update()
        for row in self._connection.execute(query):
            known[row.source, row.source_table].append(as_table(row))
        for key, rows in known.items():
            if key in wanted:
                self._compare(wanted[key], rows)
            elif key[0] not in unlisted:
                self._drop(rows)
        for key, table in wanted.items():
            if key not in known:
                self._new.append((table, ()))
        self._insert()
        return RegistrationResult(**{kind: tuple(sorted(names)) for kind, names in self._did.items()})

    def _compare(self, wanted: Registration, rows: Sequence[RegisteredTable]) -> None:
        if not wanted.table_id:
            self._note_unopened(wanted, rows)
            return
        rows = [self._identified(wanted, row) if not row.table_id else row for row in rows]
        same = [row for row in rows if row.table_id == wanted.table_id]
        for row in rows:
            if row.table_id != wanted.table_id and is_back(row):
                self._tell(row, _made_again(row, wanted))
        if same and same[0].state is State.RECREATED:
            # A worker whose list is older than another's, as a rule. Or the source was another one for a while: behind
            # a wrong address, below a mount that was away, restored from a backup. Nothing tells which; a person does.
            self._tell(same[0], _is_back_now(same[0]))
            return
        for row in rows:
            if row.table_id != wanted.table_id and row.state is not State.RECREATED:
                self._set(row, move(row.name, row.state, State.RECREATED), _made_again(row, wanted), LeaseEnd.RECREATED)
                self._did["recreated"].append(row.name)
        if not same:
            self._new.append((wanted, rows))
        else:
            self._update(wanted, same[0])

    def _tell(self, row: RegisteredTable, why: str) -> None:
        if row.error != why:
            change(self._connection, [(row, {"error": why})])

    def _note_unopened(self, wanted: Registration, rows: Sequence[RegisteredTable]) -> None:
        """What is known of a table stays as it is; the rounds of one that was opened before say what is wrong. One that
        was gone is back, though nobody can open it: it is tried, and must not look as if nobody wanted it."""
        for row in rows:
            if row.state is State.DROPPED and not row.dropped_by_hand:
                self._return_unopened(wanted, row)
            elif not row.table_id and row.state in _WITHOUT_LOG and row.error != wanted.refusal:
                change(self._connection, [(row, {"error": wanted.refusal})])

    def _return_unopened(self, wanted: Registration, row: RegisteredTable) -> None:
        state = move(row.name, row.state, State.PAUSED if row.paused else State.FAILED)
        values: dict[str, Any] = {**NOT_IN_QUEUE, "state": state.value, "error": wanted.refusal}
        values |= {"failures": 0 if row.table_id else 1, "due_at": self._now}
        if state is State.FAILED and row.table_id:
            values["next_try_at"] = self._now
        change(self._connection, [(row, values)])
        self._did["returned"].append(row.name)

    def _identified(self, wanted: Registration, row: RegisteredTable) -> RegisteredTable:
        """The log of a table was opened for the first time."""
        values: dict[str, Any] = {"table_id": wanted.table_id, "error": None}
        if row.state in _WITHOUT_LOG:
            state = State.PAUSED if row.paused else State.SCHEDULED
            values |= {**NOT_IN_QUEUE, "state": state.value, "failures": 0, "due_at": self._now}
        change(self._connection, [(row, values)])
        return _read(self._connection, row.id)

    def _update(self, wanted: Registration, row: RegisteredTable) -> None:
        if wanted.refusal is not None:
            if (row.state, row.error) != (State.STOPPED, wanted.refusal) and not row.dropped_by_hand:
                state = row.state if row.state is State.STOPPED else move(row.name, row.state, State.STOPPED)
                self._set(row, state, wanted.refusal, LeaseEnd.STOPPED)
                self._did["refused"].append(row.name)
            return
        if row.state is State.DROPPED and not row.dropped_by_hand:
            state = move(row.name, row.state, State.PAUSED if row.paused else State.SCHEDULED)
            change(
                self._connection, [(row, {**NOT_IN_QUEUE, "state": state.value, "error": None, "due_at": self._now})]
            )
            self._did["returned"].append(row.name)
            row = _read(self._connection, row.id)
        target = (wanted.format, wanted.target, wanted.pipeline)
        if target != (row.format, row.target, row.pipeline) or _is_elsewhere(wanted, row):
            self._move(wanted, row)
            row = _read(self._connection, row.id)
        elif wanted.warehouse is not None and wanted.warehouse != row.warehouse:
            change(self._connection, [(row, {"warehouse": wanted.warehouse})])
        if (wanted.priority, wanted.freshness_seconds) != (row.priority, row.freshness_seconds):
            values: dict[str, Any] = {
                "priority": wanted.priority,
                "freshness_seconds": wanted.freshness_seconds,
                "due_at": row.due_at
                if row.last_tiered_at is None
                else due_at(row.last_tiered_at, wanted.freshness_seconds),
                "enqueued_at": row.enqueued_at,
            }
            if row.state is State.PENDING and row.priority != wanted.priority:
                values["enqueued_at"] = self._queue.join(wanted.priority, self._now)
            change(self._connection, [(row, values)])
            self._did["changed"].append(row.name)

    def _move(self, wanted: Registration, row: RegisteredTable) -> None:
        """Its progress is that of the old target under the old pipeline. To go on by itself could double rows."""
        elsewhere = _is_elsewhere(wanted, row)
        before, after = (f" in {row.warehouse}", f" in {wanted.warehouse}") if elsewhere else ("", "")
        why = (
            f"it went to {row.format} {row.target}{before} as pipeline {row.pipeline!r}, "
            f"and the service's file now says {wanted.format} {wanted.target}{after} as {wanted.pipeline!r}"
        )
        state = row.state
        if state not in (State.STOPPED, State.DROPPED):
            state = move(row.name, state, State.STOPPED)
        end_running(self._connection, row, LeaseEnd.STOPPED, self._now, why)
        values = {
            **NOT_IN_QUEUE,
            "state": state.value,
            "error": f"{why}. Resume it to start there, from the beginning unless that lake table says from where; "
            "or set the file back." + (_ALL_MOVED if elsewhere else ""),
            "format": wanted.format,
            "target": wanted.target,
            "pipeline": wanted.pipeline,
            "warehouse": wanted.warehouse,
            "epoch": None,
            "offsets": None,
            "snapshot_id": None,
            "last_tiered_at": None,
            "lag_offsets": None,
            "lag_seconds": None,
        }
        change(self._connection, [(row, values)])
        self._did["moved"].append(row.name)

    def _drop(self, rows: Iterable[RegisteredTable]) -> None:
        for row in rows:
            if row.state not in (State.DROPPED, State.RECREATED):
                self._set(row, move(row.name, row.state, State.DROPPED), _GONE, LeaseEnd.DROPPED)
                self._did["dropped"].append(row.name)

    def _set(self, row: RegisteredTable, state: State, why: str, ending: LeaseEnd) -> None:
        end_running(self._connection, row, ending, self._now, why)
        change(self._connection, [(row, {**NOT_IN_QUEUE, "state": state.value, "error": why})])

    def _insert(self) -> None:
        if not self._new:
            return
        self._connection.execute(insert(TABLES), [self._row(table, former) for table, former in self._new])
        self._did["new"].extend(table.name for table, _ in self._new)

    def _row(self, table: Registration, former: Sequence[RegisteredTable]) -> dict[str, Any]:
        """``former``: those of its name that it takes the place of, as they were. People pause and drop a name, and
        don't see that its source makes the table anew."""
        ended = [row for row in former if row.state is not State.RECREATED]
        paused, by_hand = any(row.paused for row in ended), any(row.dropped_by_hand for row in ended)
        state = _first_state(table, paused, by_hand)
        return {
            "service": self._service,
            "source": table.source,
            "source_table": table.table,
            "table_id": table.table_id,
            "format": table.format,
            "target": table.target,
            "pipeline": table.pipeline,
            "warehouse": table.warehouse,
            "priority": table.priority,
            "freshness_seconds": table.freshness_seconds,
            "state": state.value,
            "error": BY_HAND if state is State.DROPPED else table.refusal,
            "paused": paused,
            "dropped_by_hand": by_hand,
            # The target may be the same one, whose watermark holds the fence of the older registration.
            "fence": max((row.fence for row in former), default=0),
            "registered_at": self._now,
            "due_at": self._now,
            "failures": 0 if table.table_id else 1,
            "rounds_total": 0,
            "rows_total": 0,
            "bytes_total": 0,
            "files_total": 0,
            "bad_records_total": 0,
        }


def _is_elsewhere(wanted: Registration, row: RegisteredTable) -> bool:
    """Whether its rows are, or may just now be put, in another warehouse than the file names."""
    if wanted.warehouse is None or row.warehouse is None or is_same_place(wanted.warehouse, row.warehouse):
        return False
    return row.epoch is not None or row.state is State.TIERING


def _first_state(table: Registration, paused: bool, dropped_by_hand: bool) -> State:
    if not table.table_id:
        return State.FAILED
    if dropped_by_hand:
        return State.DROPPED
    if table.refusal is not None:
        return State.STOPPED
    return State.PAUSED if paused else State.NEW


def _by_name(tables: Sequence[Registration]) -> dict[tuple[str, str], Registration]:
    wanted: dict[tuple[str, str], Registration] = {}
    for table in tables:
        if (table.source, table.table) in wanted:
            raise ConfigError("the table is registered twice", where=table.name, fix="Name it once in the service.")
        if table.freshness_seconds < 1:
            raise ConfigError("freshness must be at least one second", where=table.name)
        refusal = None if table.refusal is None else storable(table.refusal)
        warehouse = None if table.warehouse is None else storable(table.warehouse)
        wanted[table.source, table.table] = replace(table, refusal=refusal, warehouse=warehouse)
    return wanted


def _read(connection: Connection, id: int) -> RegisteredTable:
    return as_table(connection.execute(select(TABLES).where(TABLES.c.id == id)).one())
