"""Rows as the dataclasses of `records`, and the few statements that more than one module needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

from sqlalchemy import Connection, Row, bindparam, func, insert, select, update

from laketier.service.schedule import State
from laketier.service.state.errors import StateError
from laketier.service.state.records import LeaseEnd, RegisteredTable, RoundRecord
from laketier.service.state.tables import ROUNDS, TABLES, state_is

UNLEASED: Mapping[str, None] = {"lease_owner": None, "leased_at": None, "lease_until": None}
NOT_IN_QUEUE: Mapping[str, None] = {**UNLEASED, "enqueued_at": None, "next_try_at": None}


_E = TypeVar("_E", State, LeaseEnd)


def _known(kind: type[_E], value: Any, what: str) -> _E:
    try:
        return kind(value)
    except ValueError as error:
        raise StateError(
            f"the state database has {value!r} for {what}, and this laketier does not know that value",
            why="a newer laketier or a person wrote it",
            fix="Update laketier here. Or delete the row: the lake table has the watermark.",
        ) from error


def as_table(row: Row[Any]) -> RegisteredTable:
    values = row._asdict()
    state = _known(State, values["state"], f"the table {row.source}.{row.source_table}")
    return RegisteredTable(**{**values, "state": state})


def storable(text: str) -> str:
    """An error may quote bytes that no database takes as text; that something failed must be stored all the same."""
    return text.replace("\0", "\\0").encode("utf-8", "backslashreplace").decode("utf-8")


def as_round(row: Row[Any]) -> RoundRecord:
    kept = {name: value for name, value in row._asdict().items() if name != "id"}
    return RoundRecord(**{**kept, "ending": _known(LeaseEnd, kept["ending"], "the end of a round")})


def locked(connection: Connection, service: str, ids: Iterable[int]) -> dict[int, RegisteredTable]:
    """These tables, held until the transaction ends. In the order of their ids, so that no two wait for each other."""
    query = select(TABLES).where(TABLES.c.service == service, TABLES.c.id.in_(list(ids))).order_by(TABLES.c.id)
    return {row.id: as_table(row) for row in connection.execute(query.with_for_update())}


def change(connection: Connection, rows: Sequence[tuple[RegisteredTable, Mapping[str, Any]]]) -> int:
    """Set columns of tables, each only if its fence and state are still what they were when it was read; how many
    were. The rows of one call set the same columns."""
    if not rows:
        return 0
    names = sorted(rows[0][1])
    statement = update(TABLES).where(
        TABLES.c.id == bindparam("was_id"),
        TABLES.c.fence == bindparam("was_fence"),
        TABLES.c.state == bindparam("was_state"),
    )
    statement = statement.values({name: bindparam(f"to_{name}") for name in names})
    parameters = [
        {
            "was_id": table.id,
            "was_fence": table.fence,
            "was_state": table.state.value,
            **{f"to_{name}": values[name] for name in names},
        }
        for table, values in rows
    ]
    return connection.execute(statement, parameters).rowcount


def record(connection: Connection, rounds: Sequence[RoundRecord]) -> None:
    """Add to the history."""
    if rounds:
        connection.execute(insert(ROUNDS), [asdict(ended) for ended in rounds])


def ended_lease(table: RegisteredTable, ending: LeaseEnd, now: int, error: str | None = None) -> RoundRecord:
    """The end of a lease that brought nothing."""
    return RoundRecord(table.id, table.fence, table.lease_owner or "", table.leased_at or now, now, ending, error=error)


class Queue:
    """The ends of the queues, one per priority, within one transaction.

    Whoever joins comes after all that wait, whatever the clocks say: ``enqueued_at`` is the time of joining, moved on
    by a ms where the queue's last one has that time or a later one.
    """

    def __init__(self, connection: Connection, service: str) -> None:
        self._connection = connection
        self._service = service
        self._ends: dict[int, int] = {}

    def join(self, priority: int, at: int) -> int:
        """The ``enqueued_at`` of the next one."""
        if priority not in self._ends:
            last = select(func.max(TABLES.c.enqueued_at)).where(
                TABLES.c.service == self._service, state_is(State.PENDING), TABLES.c.priority == priority
            )
            self._ends[priority] = self._connection.execute(last).scalar() or 0
        self._ends[priority] = max(at, self._ends[priority] + 1)
        return self._ends[priority]
