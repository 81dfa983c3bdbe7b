"""One leased table's round: looked at, then ended."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from laketier.kit import failpoint
from laketier.kit.library_errors import ends_the_process
from laketier.kit.storage_errors import naming_storage_errors
from laketier.kit.warehouse import is_same_place
from laketier.registry import complete_commands
from laketier.rounds import LogAnswer, LogRound, LogRoundResult, LogTask
from laketier.rounds.configured import ConfiguredTable
from laketier.rounds.log_engine import EngineDied, EngineLost, TaskDied
from laketier.service.caught_up import CaughtUpTables
from laketier.service.failpoints import COMMITTED, STAGED
from laketier.service.leases import WorkerLeases
from laketier.service.open_files import OpenFileKeeper
from laketier.service.other_services import PublishedEpochs
from laketier.service.schedule import is_retryable
from laketier.service.state import Death, Failure, Lease, Success
from laketier.service.state.leasing import lost
from laketier.service.tables import ServiceTables
from laketier.spi import LaketierError, LogOffsets, LogTable, Overtaken, StorageError, TableChanged

log = logging.getLogger(__name__)


@dataclass(eq=False)
class LeasedRound:
    """``planned_at``: ms since the epoch. ``name``: of its tasks in a job. ``open_files``: where the engine runs tasks
    in this process. One thread at a time."""

    lease: Lease
    leases: WorkerLeases
    tables: ServiceTables
    caught_up: CaughtUpTables
    published: PublishedEpochs
    open_files: OpenFileKeeper | None = None
    planned_at: int = 0
    tasks: Sequence[LogTask] = ()
    answers: list[LogAnswer] = field(default_factory=list)
    _round: LogRound | None = None
    _table: LogTable | None = None
    _caught_up_at: LogOffsets | None = None

    def __post_init__(self) -> None:
        # A worker that lost a lease may get the table again while the old round still runs.
        self.name = f"{self.key}, fence {self.lease.fence}"

    @property
    def key(self) -> str:
        """The table's name."""
        return self.lease.table.name

    @property
    def weight(self) -> int:
        """Of all its tasks."""
        return sum(task.weight for task in self.tasks)

    def plan(self, now: int) -> None:
        """Raises as `LogRound.plan`, and `StateError`."""
        table = self.tables.table(self.key)
        opened = self.tables.log(table)
        if opened.table.table_id != self.lease.table.table_id:
            self.tables.expire()
            raise StorageError(
                "the lease is for another table of that name",
                where=self.key,
                why="the source's table was recreated, and not all workers have seen that yet; or its source has the "
                "former one again",
                fix="Nothing, if it was made anew just now: the sources are being listed again. If this error stays, "
                f"run `laketier service resume FILE {self.key}`: it goes on with the table that the source has now.",
            )
        self._require_same_target(table)
        settings = table.round_settings(fence=self.lease.fence)
        self.planned_at = now
        self._table = opened.table
        with naming_storage_errors(f"the log of {table.name} was read", setting="the source's options"):
            bounds = opened.bounds()
        self._caught_up_at = self.caught_up.end_of(self.lease, opened.table, bounds)
        if self._caught_up_at is not None:
            return
        self._round = LogRound(
            opened,
            table.config,
            settings,
            self.name,
            self._raise_fence,
            lambda: self.tables.look_again(table),
            None if self.open_files is None else self.open_files.slot(self.key),
        )
        self.tasks = self._round.plan(bounds)
        if (last := self._round.last_epoch) is not None:
            self.published.compare(self.lease, last)

    def _require_same_target(self, table: ConfiguredTable) -> None:
        """The rows would go on in the old lake table otherwise, and the state would tell that of the new one."""
        registered = self.lease.table
        mine = (table.config.format, str(table.config.table), table.pipeline)
        theirs = (registered.format, registered.target, registered.pipeline)
        here, there = table.warehouse, registered.warehouse
        is_elsewhere = here is not None and there is not None and not is_same_place(here, there)
        if mine != theirs or is_elsewhere:
            places = (f" in {here}", f" in {there}") if is_elsewhere else ("", "")
            raise StorageError(
                "this worker's file names another lake table for it than the service has",
                where=self.key,
                why=f"here it goes to {mine[0]} {mine[1]}{places[0]} as pipeline {mine[2]!r}, and another worker, with "
                f"another version of the file, has registered {theirs[0]} {theirs[1]}{places[1]} as {theirs[2]!r}",
                fix="Nothing was written. Give all workers of the service one version of the file, and start them.",
            )

    def _raise_fence(self, lake: int) -> int:
        self.lease = self.leases.raise_fence(self.lease, lake)
        return self.lease.fence

    def release(self) -> None:
        """Give the table back; nothing was staged."""
        try:
            if self._round is not None:
                self._round.abort([])
        finally:
            self.leases.release(self.lease)

    def end(self, failure: LaketierError | None) -> tuple[Lease, Success | Failure]:
        """Commit, or abort after a ``failure``. Raises only as `failed`: one table's trouble must not be another's."""
        try:
            failpoint(STAGED)
            return self.lease, self._commit(failure)
        except BaseException as error:  # noqa: BLE001 - a panic of a library in Rust is no `Exception`
            return self.failed(error)

    def failed(self, error: BaseException) -> tuple[Lease, Failure]:
        """How the lease ends after an error. Raises it again if it `ends_the_process`."""
        if ends_the_process(error):
            raise error
        self.caught_up.forget(self.lease)
        if isinstance(error, TableChanged):
            self.tables.expire()
        if not isinstance(error, LaketierError):
            log.error("[table=%s] the round failed with an unexpected error", self.key, exc_info=error)
        else:
            table = self.tables.known(self.key)
            if table is not None:
                complete_commands(error, table.config)
            log.warning("[table=%s] the round failed: %s", self.key, error)
        # Nothing may be wrong with the table: a merge saw a snapshot that is no longer the newest, or the engine died.
        at_once = isinstance(error, Overtaken | EngineLost)
        return self.lease, Failure(error, is_retryable(error), at_once, _death(error))

    def _commit(self, failure: LaketierError | None) -> Success:
        if self._caught_up_at is not None:
            if failure is not None:
                raise failure
            self.caught_up.still(self.lease)
            return self._success(LogRoundResult(None, self._caught_up_at, 0))
        assert self._round is not None
        assert self._table is not None
        if failure is None and self.leases.is_lost(self.lease):
            failure = lost(self.lease)
        if failure is not None:
            self._round.abort(self.answers)
            raise failure
        done = self._round.finish(self.answers)
        if done.outcome is not None:
            failpoint(COMMITTED)
            log.info(
                "[table=%s epoch=%s fence=%s] %s: %d rows, %d files, %d bytes, %d bad records",
                self.key, done.epoch, self.lease.fence, done.outcome.value, done.rows, done.files, done.bytes, done.bad,
            )  # fmt: skip
        if not done.left:
            self.caught_up.saw(self.lease, self._table, done.end)
        return self._success(done)

    def _success(self, done: LogRoundResult) -> Success:
        self.published.ended(self.lease, done.epoch)
        return Success(
            force_completed=done.left > 0,
            epoch=done.epoch,
            rows=done.rows,
            bytes=done.bytes,
            files=done.files,
            snapshot_id=None if done.snapshot_id is None else str(done.snapshot_id),
            offsets=done.end.to_text(),
            range_end=done.end.to_text(),
            range_start=None if done.start is None else done.start.to_text(),
            lag_offsets=done.left,
            lag_seconds=self._lag_seconds(done),
            bad_records=done.bad,
            read_until_at=self.planned_at,
        )

    def _lag_seconds(self, done: LogRoundResult) -> float | None:
        """The lake holds all that was there when a round last left nothing: so much newer, at most, is the newest
        record that it lacks. A source that does not tell when that was written may have got it a moment ago."""
        if not done.left:
            return 0.0
        complete_at = self.lease.table.last_tiered_at
        if complete_at is None:
            return None
        newest_at = self.planned_at if done.left_at is None else done.left_at
        return max(0, newest_at - complete_at) / 1000


def release_all(rounds: Sequence[LeasedRound]) -> None:
    """Give back tables whose rounds have not begun."""
    for each in rounds:
        try:
            each.release()
        except BaseException as error:
            if ends_the_process(error):
                raise
            log.exception("[table=%s] a round that had not begun could not be closed", each.key)


def _death(error: BaseException) -> Death | None:
    if isinstance(error, EngineDied):
        return Death.ENGINE
    return Death.TASK if isinstance(error, TaskDied) else None
