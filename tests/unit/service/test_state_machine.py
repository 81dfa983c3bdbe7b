"""Several workers on one store, step by step the same as the model.

All go by the database's clock; here each call may find it set anew, by as much as ``skews`` say: who holds a table must
not depend on it.
"""

from __future__ import annotations

import random
import tempfile
from dataclasses import replace
from itertools import count
from pathlib import Path

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from depth import sizes
from laketier.service.schedule import Backoff, IllegalTransition, State
from laketier.service.state import (
    Failure,
    Lease,
    LeaseLost,
    Registration,
    StateStore,
    Success,
    Worker,
)
from laketier.service.state.database import Database
from laketier.service.state.migrate import migrate
from state_model import Model, Table

NAMES = [f"t{number}" for number in range(6)]
LEASE_SECONDS = 30
LONGEST_WAIT_SECONDS = 60
# The wider ones make also a lease too far ahead to be waited for.
SKEWS = st.integers(-100_000, 100_000) | st.integers(-1_000_000, 1_000_000)
WORKERS = 3
LEASE_ENDS = st.sampled_from(["tiered", "force-completed", "failed", "stopped", "released"])
_SERVICES = count()
_DATABASES: list[Database] = []


def database() -> Database:
    """One file for all examples: each is a service of its own in it."""
    if not _DATABASES:
        memory = Path("/dev/shm")
        folder = tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None)
        opened = Database(f"sqlite:///{folder.name}/state.db")
        opened.folder = folder  # type: ignore[attr-defined]  # lives as long as the database
        migrate(opened)
        _DATABASES.append(opened)
    return _DATABASES[0]


def teardown_module() -> None:
    while _DATABASES:
        opened = _DATABASES.pop()
        opened.close()
        opened.folder.cleanup()  # type: ignore[attr-defined]


def result_of(ending: str, epoch: int) -> Success | Failure | None:
    if ending in ("failed", "stopped"):
        return Failure("broken", retryable=ending == "failed")
    return None if ending == "released" else Success(epoch=epoch, force_completed=ending == "force-completed")


class Workers(RuleBasedStateMachine):
    """Nothing forces a worker to end its leases: many never do, which is what a crash is. Any lease that ever was may
    be ended at any time, which is what a zombie does."""

    @initialize(skews=st.lists(SKEWS, min_size=WORKERS, max_size=WORKERS))
    def start(self, skews: list[int]) -> None:
        self.time = 1_000_000_000
        self.skews = skews
        self.model = Model(LONGEST_WAIT_SECONDS * 1000)
        self.leases: list[Lease] = []
        self.fences: dict[int, int] = {}
        service = f"service {next(_SERVICES)}"
        self.workers = [Worker(f"{service}, {number}", "here", number, "0") for number in range(WORKERS)]
        self.stores = [
            StateStore(database(), service, self.clock(number), Backoff(5, LONGEST_WAIT_SECONDS), random.Random(number))
            for number in range(WORKERS)
        ]
        self.register_all(dict.fromkeys(NAMES[:4], ("id", 0, 60)), 0)

    def clock(self, number: int):
        return lambda: self.now(number)

    def now(self, number: int) -> int:
        return self.time + self.skews[number]

    def register_all(self, wanted: dict[str, tuple[str, int, int]], by: int) -> None:
        new: list[Table] = self.model.register(wanted, self.now(by))
        self.stores[by].register(
            [
                Registration(
                    source="s",
                    table=name,
                    table_id=table_id,
                    format="f",
                    target=name,
                    pipeline=name,
                    priority=priority,
                    freshness_seconds=freshness,
                )
                for name, (table_id, priority, freshness) in wanted.items()
            ]
        )
        numbers = {(s.table.source_table, s.table.table_id): s.table.id for s in self.stores[by].snapshot()}
        for table in new:
            self.model.tables[numbers[table.name, table.table_id]] = table

    @rule(
        wanted=st.dictionaries(
            st.sampled_from(NAMES),
            st.tuples(st.sampled_from(["id", "id", "id", "other"]), st.integers(0, 2), st.sampled_from([5, 60])),
            min_size=3,
        ),
        by=st.integers(0, 2),
    )
    def register(self, wanted: dict[str, tuple[str, int, int]], by: int) -> None:
        self.register_all(wanted, by)

    @rule(ms=st.integers(0, 100_000))
    def advance(self, ms: int) -> None:
        self.time += ms

    @rule(by=st.integers(0, 2), limit=st.integers(1, 4))
    def acquire(self, by: int, limit: int) -> None:
        expected = self.model.acquire(self.workers[by].id, limit, LEASE_SECONDS * 1000, self.now(by))
        leases = self.stores[by].acquire(self.workers[by], limit, LEASE_SECONDS)
        assert [(lease.table.id, lease.fence) for lease in leases] == expected
        assert not {(old.table.id, old.fence) for old in self.leases} & set(expected), "a fence was given twice"
        self.leases.extend(leases)
        self.take_next_try(by)

    @rule(by=st.integers(0, 2))
    def heartbeat(self, by: int) -> None:
        expected = [
            lease for lease in self.leases if self.model.holds(lease.table.id, lease.fence, self.workers[by].id)
        ]
        for lease in expected:
            self.model.tables[lease.table.id].lease_until = self.now(by) + LEASE_SECONDS * 1000
        self.model.seen[self.workers[by].id] = self.now(by)
        renewed = self.stores[by].heartbeat(self.workers[by], self.leases, LEASE_SECONDS)
        assert [(lease.table.id, lease.fence) for lease in renewed] == [(old.table.id, old.fence) for old in expected]

    @rule(by=st.integers(0, 2))
    def stopping(self, by: int) -> None:
        self.stores[by].stopping(self.workers[by])
        self.model.seen[self.workers[by].id] = self.now(by)
        self.model.stopping.add(self.workers[by].id)

    @rule(data=st.data(), by=st.integers(0, 2), ending=LEASE_ENDS, future=st.integers(0, 9), epoch=st.integers(1, 2))
    def end(self, data: st.DataObject, by: int, ending: str, future: int, epoch: int) -> None:
        if not self.leases:
            return
        # The newest ones are drawn most often, as the older ones are lost for the most part.
        lease = self.leases[-1 - data.draw(st.integers(0, len(self.leases) - 1))]
        if future == 0:
            lease = replace(lease, fence=lease.fence + 1)
        result = result_of(ending, epoch)
        renewed = self.ends_in_model(by, lease, ending, result)
        store = self.stores[by]
        try:
            if isinstance(result, Success):
                store.finish(lease, result)
            elif isinstance(result, Failure):
                store.fail(lease, result.error, retryable=result.retryable)
            else:
                store.release(lease)
        except LeaseLost:
            assert not renewed
        else:
            assert renewed
        self.take_next_try(by)

    @rule(
        data=st.data(), by=st.integers(0, 2), endings=st.lists(LEASE_ENDS.filter(lambda e: e != "released"), max_size=5)
    )
    def finish_all(self, data: st.DataObject, by: int, endings: list[str]) -> None:
        latest = {lease.table.id: lease for lease in self.leases}
        results = [(lease, result_of(e, 1), e) for lease, e in zip(latest.values(), endings, strict=False)]
        lost = [lease for lease, result, e in results if not self.ends_in_model(by, lease, e, result)]
        given = [(lease, result) for lease, result, _ in results if result is not None]
        assert list(self.stores[by].finish_all(given)) == lost
        self.take_next_try(by)

    def ends_in_model(self, by: int, lease: Lease, ending: str, result: Success | Failure | None) -> bool:
        epoch = result.epoch if isinstance(result, Success) else None
        return self.model.end(lease.table.id, lease.fence, lease.worker, ending, epoch, self.now(by))

    def take_next_try(self, by: int) -> None:
        """The backoff draws lots, so the model can't foretell it; only its bounds."""
        for status in self.stores[by].snapshot():
            table = self.model.tables[status.table.id]
            if status.table.state is State.FAILED and status.table.next_try_at != table.next_try_at:
                table.next_try_at = status.table.next_try_at or 0
                wait = table.next_try_at - self.now(by)
                most = min(5 * 2 ** (table.failures - 1), LONGEST_WAIT_SECONDS) * 1000
                assert most / 2 <= wait <= most

    @rule(
        name=st.sampled_from(NAMES),
        by=st.integers(0, 2),
        command=st.sampled_from(["pause", "resume", "resume", "retier", "drop"]),
    )
    def command(self, name: str, by: int, command: str) -> None:
        numbers = [number for number, table in self.model.tables.items() if table.name == name]
        if not numbers:
            return
        if command == "resume":  # of one that its source has again, and not of its namesakes
            numbers = [number for number in numbers if self.model.tables[number].back] or numbers
        done = 0
        for number in numbers:
            if command == "pause":
                done += self.model.pause(number)
            elif command == "drop":
                done += self.model.drop(number, self.now(by))
            else:
                done += getattr(self.model, command)(number, self.now(by))
        try:
            assert getattr(self.stores[by], command)(f"s.{name}") == (f"s.{name}",)  # once, also of several tables
        except IllegalTransition:
            assert done == 0
        else:
            assert done > 0

    @invariant()
    def same(self) -> None:
        if not hasattr(self, "stores"):
            return
        queue: dict[int, list[tuple[int, int]]] = {}
        statuses = self.stores[0].snapshot()
        assert {status.table.id for status in statuses} == set(self.model.tables)
        for status in statuses:
            row, table = status.table, self.model.tables[status.table.id]
            assert row.fence >= self.fences.get(row.id, 0), "a fence shrank"
            self.fences[row.id] = row.fence
            assert (row.state, row.fence, row.lease_owner, row.paused, row.failures, row.due_at) == (
                table.state,
                table.fence,
                table.owner,
                table.paused,
                table.failures,
                table.due_at,
            ), row.name
            assert (row.deaths, row.suspect) == (table.deaths, table.suspect), row.name
            assert row.state is not State.TIERING or row.alone == table.alone, row.name
            assert (row.lease_owner is not None) == (row.state is State.TIERING) == (row.lease_until is not None)
            assert (row.enqueued_at is not None) == (row.state is State.PENDING)
            if row.enqueued_at is not None:
                queue.setdefault(row.priority, []).append((row.enqueued_at, row.id))
        for priority, waiting in queue.items():
            model = [number for number in self.model.queue if self.model.tables[number].priority == priority]
            assert [number for _, number in sorted(waiting)] == model


@sizes("size", (12, 30), (150, 40))
def test_workers(size: tuple[int, int]) -> None:
    examples, steps = size
    run_state_machine_as_test(
        Workers,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            phases=set(Phase) - {Phase.explain},  # to explain takes minutes
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )
