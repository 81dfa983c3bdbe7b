"""The state store: one object, whose methods are transactions."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence
from typing import Self

from sqlalchemy import Connection, false, select

from laketier.service.schedule import Backoff
from laketier.service.state import commands, history, leasing, upkeep
from laketier.service.state.database import Database
from laketier.service.state.endings import Result, Retries
from laketier.service.state.errors import StateUnavailable
from laketier.service.state.migrate import migrate
from laketier.service.state.records import (
    Failure,
    Lease,
    Registration,
    RegistrationResult,
    RoundRecord,
    Success,
    TableStatus,
    Worker,
    WorkerSeen,
)
from laketier.service.state.registering import Registrar
from laketier.service.state.tables import METADATA, ROUNDS
from laketier.service.state.upkeep_records import IndexFigures, UpkeepLease

_PRUNED_AT_ONCE = 500
_SILENT_MS = 86_400_000


class StateStore:
    """The state of one service. Each method is one transaction: it happens as a whole or not at all.

    All raise `StateError` when the database does not answer; the store can be used again once it does. May be used by
    several threads. Not to be taken over a fork.
    """

    def __init__(
        self, database: Database, service: str, clock: Callable[[], int] | None, backoff: Backoff, draw: random.Random
    ) -> None:
        """Use `open`."""
        self._database = database
        self._clock = clock
        self._backoff = backoff
        self._draw = draw
        self.service = service

    @classmethod
    def open(
        cls,
        url: str,
        *,
        service: str = "default",
        clock: Callable[[], int] | None = None,
        backoff: Backoff | None = None,
        seed: int | None = None,
    ) -> Self:
        """Connect, and bring the database to this version. ``url``: ``sqlite:///FILE`` or ``postgresql://...``.
        ``clock``: ms since the epoch, UTC; the database's by default, as workers' own may differ. ``seed``: of the
        backoff's jitter. Raises `ConfigError` for a URL that is none, and `StateError` for a database that can't be
        reached or is of a newer laketier."""
        database = Database(url)
        try:
            migrate(database)
        except BaseException:
            database.close()
            raise
        return cls(database, service, clock, backoff or Backoff(), random.Random(seed))

    def check(self) -> None:
        """Raise `StateError` where the database can't be written. PostgreSQL looks at rights, and at whether it is a
        replica, for a statement that changes no row, too; a transaction without one it lets anybody begin. Asks for
        what a worker does: it changes no round that ended, and deletes nothing."""
        with self._database.write() as connection:
            for table in METADATA.sorted_tables:
                connection.execute(table.insert().from_select(list(table.columns), select(table).where(false())))
                if table is not ROUNDS:
                    column = next(iter(table.columns))
                    connection.execute(table.update().where(false()).values({column: column}))

    def close(self) -> None:
        """Close all connections."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def refuses(self) -> StateUnavailable | None:
        """Why the database took no write of this store last; None if it did. It may answer readers all the same: its
        disk is full, or it is locked, or has become a replica."""
        return self._database.refuses

    def now(self) -> int:
        """What time it is, in ms since the epoch: what all times of the store are compared with."""
        with self._database.read() as connection:
            return self._now(connection)

    def _now(self, connection: Connection) -> int:
        return self._database.now(connection) if self._clock is None else self._clock()

    # -- which tables there are ----------------------------------------------------------------------------------

    def register(self, tables: Sequence[Registration], *, unlisted: Collection[str] = ()) -> RegistrationResult:
        """Make these the service's tables. All of them: what is known and not among them becomes DROPPED, unless its
        source is in ``unlisted`` (sources that could not be asked just now). Idempotent. Raises `ConfigError` for a
        table that is named twice."""
        with self._database.write() as connection:
            self._database.lock(connection, f"laketier register {self.service}")
            return Registrar(connection, self.service, self._now(connection)).register(tables, unlisted)

    # -- rounds --------------------------------------------------------------------------------------------------

    def acquire(self, worker: Worker, limit: int, lease_seconds: float, *, busy: bool = False) -> tuple[Lease, ...]:
        """Lease up to ``limit`` due tables: the highest priority first, within one the longest in the queue first.
        Priorities are strict: as long as higher ones fill each call, lower ones wait. A table that may have killed a
        worker is leased alone. ``busy``: rounds still run here whose leases are lost."""
        with self._database.write() as connection:
            return leasing.acquire(
                connection,
                self.service,
                worker.id,
                limit,
                round(lease_seconds * 1000),
                Retries(self._now(connection), self._backoff, self._draw),
                busy=busy,
            )

    def stopping(self, worker: Worker) -> None:
        """Say that the worker was told to stop. If it is killed before it has drained, no table is charged with it."""
        with self._database.write() as connection:
            history.stopping(connection, self.service, worker, self._now(connection))

    def heartbeat(self, worker: Worker, leases: Sequence[Lease], lease_seconds: float) -> tuple[Lease, ...]:
        """Say that the worker lives, and renew its leases. Those that are missing in the answer are lost: end their
        rounds without a commit."""
        with self._database.write() as connection:
            now = self._now(connection)
            history.seen(connection, self.service, worker, now)
            return leasing.renew(connection, self.service, worker.id, leases, round(lease_seconds * 1000), now)

    def raise_fence(self, lease: Lease, above: int) -> Lease:
        """The same lease with a fence above ``above``, in one compare-and-set: for a lake table that remembers fences
        which this database does not, because it was lost and recreated. Raises `LeaseLost`: then the higher fence is
        that of whoever took the table over."""
        with self._database.write() as connection:
            raised = leasing.raise_fence(connection, self.service, lease, above)
        if raised is None:
            raise leasing.lost(lease)
        return raised

    def finish(self, lease: Lease, success: Success) -> None:
        """A round was published. The table is due again after its freshness; at once, at the end of the queue, when
        it was force-completed. Raises `LeaseLost`. Calling it again with the same figures does nothing."""
        self._end(lease, success)

    def finish_all(self, results: Sequence[tuple[Lease, Success | Failure | None]]) -> tuple[Lease, ...]:
        """`finish`, `fail` and (None) `release` for many tables in one transaction. Returns the leases that are lost;
        those changed nothing, and the others are ended all the same."""
        return self._end_all(results)

    def fail(self, lease: Lease, error: BaseException | str, *, retryable: bool) -> None:
        """A round was not published. The table is tried again after a backoff, or is STOPPED until a person resumes
        it. Raises `LeaseLost`."""
        self._end(lease, Failure(error, retryable))

    def release(self, lease: Lease) -> None:
        """Give a table back without a round, as a draining worker does: to the end of the queue. Raises
        `LeaseLost`."""
        self._end(lease, None)

    def _end(self, lease: Lease, result: Result) -> None:
        if self._end_all([(lease, result)]):
            raise leasing.lost(lease)

    def _end_all(self, results: Sequence[tuple[Lease, Result]]) -> tuple[Lease, ...]:
        with self._database.write() as connection:
            return leasing.end(connection, self.service, results, self._now(connection), self._backoff, self._draw)

    # -- the upkeep of indexes -------------------------------------------------------------------------------------

    def take_upkeep(
        self, worker: Worker, names: Collection[str], lease_seconds: float, *, due: bool = True
    ) -> UpkeepLease | None:
        """Lease the indexes of one of these tables (``source.table``), the longest due first; None where none is due.
        ``due`` False: of any that nobody looks after."""
        with self._database.write() as connection:
            self._database.lock(connection, f"laketier upkeep {self.service}")
            now, ms = self._now(connection), round(lease_seconds * 1000)
            longest = round(self._backoff.longest_seconds * 1000)
            return upkeep.take(connection, self.service, worker.id, names, ms, now, longest, due=due)

    def renew_upkeep(self, lease: UpkeepLease, lease_seconds: float) -> bool:
        """Keep it for as long again; whether nobody else has taken it over."""
        with self._database.write() as connection:
            return upkeep.renew(connection, lease, round(lease_seconds * 1000), self._now(connection))

    def end_upkeep(
        self, lease: UpkeepLease, indexes: Sequence[IndexFigures], steps: int, *, failed: bool, again_seconds: float
    ) -> None:
        """Store what became of the indexes. The table is due again after ``again_seconds``, or after a backoff where
        something failed. Does nothing where the lease is lost."""
        with self._database.write() as connection:
            now = self._now(connection)
            wait = round(again_seconds * 1000)
            if failed:
                wait = self._backoff.wait_ms(lease.failures + 1, self._draw)
            upkeep.end(connection, lease, indexes, steps, failed=failed, due_at=now + wait, now=now)

    # -- what people do ------------------------------------------------------------------------------------------

    def pause(self, pattern: str) -> tuple[str, ...]:
        """Tier these no more until they are resumed; one that is being tiered ends its round first. Returns the names.

        This and the next three take a name (``SOURCE.TABLE``) or a pattern (``* ? [...]``), and raise `TableNotFound`
        when it matches nothing and `IllegalTransition` when no table that it matches can take the command.
        """
        return self._command(pattern, commands.pause)

    def resume(self, pattern: str) -> tuple[str, ...]:
        """Make paused, stopped and by hand dropped tables due now, and recreated ones that their source has again;
        their failures are forgotten. Of a pattern that matches tables which wait for nobody, and no others, none is
        named."""
        return self._command(pattern, commands.resume)

    def retier(self, pattern: str) -> tuple[str, ...]:
        """Make tables due now. How far they are, only their lake tables say."""
        return self._command(pattern, commands.retier)

    def drop(self, pattern: str) -> tuple[str, ...]:
        """Take tables out of the service, though their source has them, until they are resumed. The lake is not
        touched. A round that is under way loses its lease."""
        return self._command(pattern, commands.drop)

    def _command(self, pattern: str, command: commands.Command) -> tuple[str, ...]:
        with self._database.write() as connection:
            return commands.apply(connection, self.service, pattern, self._now(connection), command)

    # -- what people look at -------------------------------------------------------------------------------------

    def snapshot(self) -> tuple[TableStatus, ...]:
        """All tables at one moment, by name, with their last rounds."""
        with self._database.read() as connection:
            return history.statuses(connection, self.service, self._now(connection))

    def rounds(self, table: int, limit: int = 50) -> tuple[RoundRecord, ...]:
        """The ended leases of a table (`RegisteredTable.id`), newest first."""
        with self._database.read() as connection:
            return history.rounds_of(connection, table, limit)

    def workers(self) -> tuple[WorkerSeen, ...]:
        """The workers that gave a sign, oldest first. See `prune_workers`."""
        with self._database.read() as connection:
            return history.workers_of(connection, self.service)

    def prune(self, keep_rounds: int, stopping: Callable[[], bool] = lambda: False) -> int:
        """Delete all but the newest rounds of each table; how many were. In many short transactions, so that nobody
        waits for it, and until ``stopping``."""
        with self._database.read() as connection:
            old = history.outgrown(connection, self.service, keep_rounds)
        pruned = 0
        for table, fence in old.items():
            deleted = _PRUNED_AT_ONCE
            while deleted == _PRUNED_AT_ONCE and not stopping():
                with self._database.write() as connection:
                    deleted = history.prune(connection, table, fence, _PRUNED_AT_ONCE)
                pruned += deleted
        return pruned

    def prune_workers(self, keep: int) -> int:
        """Delete all but the newest workers, of those that were silent for a day and have no lease; how many were. Each
        start of a worker has a name of its own."""
        with self._database.write() as connection:
            now = self._now(connection)
            return history.prune_workers(connection, self.service, keep, now - _SILENT_MS)
