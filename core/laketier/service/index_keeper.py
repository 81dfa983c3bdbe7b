"""Keeps the indexes of a service's tables up with them, beside the rounds: in a thread of its own, one table at a time,
so that no round waits for more than a part of a build."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from laketier.kit.library_errors import as_told
from laketier.maintenance.index_builds import BuildParts, Train, train_here
from laketier.maintenance.index_policy import IndexPolicy, policy_of
from laketier.maintenance.index_upkeep import IndexUpkeep, maintain_lake_indexes
from laketier.maintenance.table_policies import policies_of_table, with_those_of_the_table
from laketier.registry import Lake, open_lake
from laketier.rounds.configured_indexes import refuse_key
from laketier.service.outage import Outage
from laketier.service.state import IndexFigures, StateError, StateStore, UpkeepLease, Worker
from laketier.service.state.upkeep_records import LONGEST_LOOK_SECONDS
from laketier.service.tables import ServiceTables
from laketier.spi import BuiltIndexPart, IndexPlan, LaketierError, StorageError, TableNotFound

log = logging.getLogger(__name__)

_LOOKS_PER_AGE = 4
_LOOK_SECONDS = (1.0, LONGEST_LOOK_SECONDS)
"""A table is looked at again after a fourth of the age that its policies allow, but within these."""
_RENEWALS_PER_LEASE = 4


@dataclass
class IndexKeeper:
    """Looks after the indexes of leased tables. A build that fails is logged, counted, and tried again after a backoff.
    Killed at any point, it leaves the old index or the new one, and the next worker takes its lease over.

    Attributes:
        store: The state database.
        tables: The tables of the service.
        worker: This worker.
        build: Builds the parts of an index.
        train: Trains the model of an index of vectors.
        max_parts: The parts of a build at most.
        lease_seconds: A worker that is silent for this long loses the table.
        idle_seconds: How often it asks whether a table is due.
    """

    store: StateStore
    tables: ServiceTables
    worker: Worker
    build: BuildParts
    max_parts: int = 8
    train: Train = train_here
    lease_seconds: float = 120.0
    idle_seconds: float = 1.0
    _differ: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _one_at_a_time: threading.Lock = field(default_factory=threading.Lock)
    _stopping: threading.Event = field(default_factory=threading.Event)
    _outage: Outage = field(default_factory=lambda: Outage(log, "indexes wait for the state database"))

    def run_until(self, stopping: threading.Event) -> None:
        """Look after tables until ``stopping`` is set; a build that is under way ends with the part that it builds."""
        self._stopping = stopping
        while not stopping.wait(self.idle_seconds):
            try:
                while not stopping.is_set() and self.keep_one() is not None:
                    pass
                self._outage.back()
            except StateError as error:
                self._outage.away(error)

    def keep_one(self) -> str | None:
        """Look after the indexes of a table that is due. Returns its name, None when none is due. Raises
        `StateError`."""
        with self._one_at_a_time:
            lease = self.store.take_upkeep(self.worker, self.tables.indexed(), self.lease_seconds)
            if lease is None:
                return None
            self._keep(lease)
            return lease.name

    def keep_all(self) -> None:
        """Look once after each table that no other worker looks after, due or not. Raises `StateError`."""
        left = set(self.tables.indexed())
        with self._one_at_a_time:
            while left and not self._stopping.is_set():
                lease = self.store.take_upkeep(self.worker, left, self.lease_seconds, due=False)
                if lease is None:
                    return
                left.discard(lease.name)
                self._keep(lease)

    def _keep(self, lease: UpkeepLease) -> None:
        ended = threading.Event()
        renewal = threading.Thread(target=self._renew_until, args=(lease, ended), name="laketier-upkeep", daemon=True)
        renewal.start()
        policies: Sequence[IndexPolicy] = ()
        try:
            table = self.tables.table(lease.name)
            policies = [policy_of(each) for each in table.indexes]
            lake = open_lake(table.config)
            if table.table_indexes:
                policies = self._with_those_of(lake, policies)
            if policies:
                refuse_key(self.tables.log(table).table.primary_key, lease.name)
            done: Sequence[IndexUpkeep] = maintain_lake_indexes(
                lake, policies, build=self._stoppable, max_parts=self.max_parts, train=self.train
            )
        except LaketierError as error:
            done = [IndexUpkeep(each.spec.name, (), None, 0.0, error) for each in policies]
            if not policies:
                log.warning("[table=%s] its indexes could not be looked at: %s", lease.name, error)
        except BaseException as error:  # a panic of a library in Rust is no `Exception`
            failure = as_told(error, "the upkeep failed")
            log.exception("[table=%s] the upkeep of its indexes failed with an unexpected error", lease.name)
            done = [IndexUpkeep(each.spec.name, (), None, 0.0, failure) for each in policies]
        finally:
            ended.set()
            renewal.join()
        for each in done:
            _log(lease.name, each)
        failed = any(each.error is not None for each in done) and not self._stopping.is_set()
        steps = sum(len(each.steps) - (each.error is not None and bool(each.steps)) for each in done)
        figures = [_figures(each) for each in done]
        self.store.end_upkeep(lease, figures, steps, failed=failed, again_seconds=_again(policies))

    def _with_those_of(self, lake: Lake, given: Sequence[IndexPolicy]) -> Sequence[IndexPolicy]:
        try:
            of_table = policies_of_table(lake.load_table())
        except TableNotFound:
            return given
        policies, differ = with_those_of_the_table(given, of_table)
        if self._differ.get(str(lake.config.table), ()) != differ:  # each look would say the same
            self._differ[str(lake.config.table)] = differ
            for name in differ:
                message = "[table=%s] index %s: the service file and the table's property differ; the file counts"
                log.warning(message, lake.config.table, name)
        return policies

    def _stoppable(self, plan: IndexPlan) -> Iterator[BuiltIndexPart]:
        for each in self.build(plan):
            if self._stopping.is_set():
                raise StorageError(
                    "the worker was told to stop; nothing was published", fix="Nothing: another goes on."
                )
            yield each

    def _renew_until(self, lease: UpkeepLease, ended: threading.Event) -> None:
        while not ended.wait(self.lease_seconds / _RENEWALS_PER_LEASE):
            try:
                if not self.store.renew_upkeep(lease, self.lease_seconds):
                    log.warning("[table=%s] another worker looks after its indexes now", lease.name)
                    return
            except StateError as error:
                log.warning("[table=%s] the lease of its indexes could not be renewed: %s", lease.name, error)


def _again(policies: Sequence[IndexPolicy]) -> float:
    ages = [each.max_unindexed_seconds for each in policies if each.max_unindexed_seconds is not None]
    least, most = _LOOK_SECONDS
    return min(most, max(least, min(ages, default=most) / _LOOKS_PER_AGE))


def _figures(done: IndexUpkeep) -> IndexFigures:
    error = None if done.error is None else str(done.error)
    info = done.info
    if info is None:
        return IndexFigures(done.name, error=error)
    return IndexFigures(
        done.name,
        len(info.segments),
        info.rows_indexed,
        info.rows_not_indexed,
        info.rows_deleted,
        info.built_at,
        info.bytes,
        error,
    )


def _log(table: str, done: IndexUpkeep) -> None:
    steps = ", ".join(each.step.value for each in done.steps)
    if done.error is not None:
        log.warning("[table=%s] index %s: %s failed: %s", table, done.name, steps or "a look", done.error)
    elif steps and done.info is not None:
        log.info(
            "[table=%s] index %s: %s in %.1f s; %d segments, %d rows without it",
            table, done.name, steps, done.seconds, len(done.info.segments), done.info.rows_not_indexed,
        )  # fmt: skip
