"""When a worker that is to tier each table once is done, and which tables did not get there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from laketier.service.schedule import IllegalTransition, State
from laketier.service.state import RegisteredTable, StateStore, TableStatus
from laketier.service.state.registering import is_back
from laketier.spi import TableNotFound

TRIES = 3
"""After so many failures in a row a table is left as it is."""
_OUT = (State.DROPPED, State.RECREATED)
_WAITS_FOR_A_PERSON = (State.STOPPED, State.PAUSED)


@dataclass
class UntilIdle:
    """Says when a worker that runs ``until_idle`` is done: once every table was tiered since the start, waits for a
    person, or has failed too often. For one thread.

    Attributes:
        since: The start, in ms since the epoch (UTC).
        failures: By a table's id, its failures in a row at the start.
        ahead: By a table's id, when it was tiered last, if that is not before the start: the clock was ahead then. It
            counts as tiered once the time is another one.
    """

    since: int
    failures: Mapping[int, int] = field(default_factory=dict)
    ahead: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def begun(cls, store: StateStore, now: int) -> UntilIdle:
        """Make every table due: who waits after failures, or is fresh by an older run, has its turn now."""
        tables = [status.table for status in store.snapshot()]
        failures = {table.id: table.failures for table in tables}
        ahead = {table.id: at for table in tables if (at := table.last_tiered_at or 0) >= now}
        with suppress(TableNotFound, IllegalTransition):  # there is none, or each waits for a person
            store.retier("*")
        return cls(now, failures, ahead)

    def is_over(self, statuses: Sequence[TableStatus]) -> bool:
        """Whether each table got there, or nobody need wait for it."""
        return all(
            self._is_there(each.table) or each.table.state in (*_OUT, *_WAITS_FOR_A_PERSON) or self._gave_up(each.table)
            for each in statuses
        )

    def left_out(self, statuses: Sequence[TableStatus]) -> dict[str, str]:
        """The tables that did not get there, with why: where the source has a former one again, that is why."""
        back = {each.table.name: each.table for each in statuses if is_back(each.table)}
        left = {
            each.table.name: back.get(each.table.name, each.table)
            for each in statuses
            if each.table.state not in _OUT and not self._is_there(each.table)
        }
        return {
            name: f"{table.state.value}: {table.error or 'no round of it has ended well'}"
            for name, table in left.items()
        }

    def _is_there(self, table: RegisteredTable) -> bool:
        troubled = table.state in (State.FAILED, State.STOPPED)
        tiered_at = table.last_tiered_at or 0
        return not troubled and tiered_at >= self.since and tiered_at != self.ahead.get(table.id)

    def _gave_up(self, table: RegisteredTable) -> bool:
        if table.state is not State.FAILED:
            return False
        if table.next_try_at is None:
            return True
        before = self.failures.get(table.id, 0)
        return table.failures - (before if table.failures >= before else 0) >= TRIES
