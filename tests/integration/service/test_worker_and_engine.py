"""A worker and an engine that answers twice, late, or never again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from laketier.rounds import LogAnswer, LogTask
from laketier.rounds.log_engine import EngineDied, EngineLost, LocalEngine, LogEngine, TaskDied
from laketier.service.schedule import State
from laketier.spi import StorageError
from tiering_service import PATIENCE_SECONDS, Service, until, work_until


def test_an_answer_that_comes_twice_fails_no_other_table(make: Callable[..., Service]) -> None:
    service = make("a", "b", "c")
    for lines in service.lines.values():
        lines.append(1)
    worker = service.worker()
    engine = worker.engine

    class Twice(LogEngine):
        def run(self, tasks: Sequence[Any]) -> Iterator[Any]:
            for answer in engine.run(tasks):
                yield answer
                yield answer

    worker.engine = Twice()
    work_until(worker, lambda: {service.table(name).state for name in service.names} == {State.SCHEDULED})
    assert [service.ids(worker, name) for name in service.names] == [[1], [1], [1]]
    assert {service.table(name).rounds_total for name in service.names} == {1}


def test_a_worker_whose_engine_is_gone_ends_and_leaves_its_tables_to_others(make: Callable[..., Service]) -> None:
    service = make("a", "b")
    for lines in service.lines.values():
        lines.append(1)
    worker = service.worker()

    class Gone(LogEngine):
        def run(self, tasks: Sequence[LogTask]) -> Iterator[LogAnswer]:
            del tasks
            raise EngineLost("the engine is gone")

    worker.engine = Gone()
    assert worker.run(), "nothing is under way any more"
    assert isinstance(worker.engine_lost, EngineLost)
    other = service.worker()
    other.work_once()
    assert [service.ids(other, name) for name in service.names] == [[1], [1]], "at once, by the same clock"


def test_the_tables_of_an_engine_that_died_are_suspects(make: Callable[..., Service]) -> None:
    """One of them may have killed it, and would kill that of the next worker, too."""
    service = make("a", "b")
    for lines in service.lines.values():
        lines.append(1)
    worker = service.worker()

    class Dying(LogEngine):
        def run(self, tasks: Sequence[LogTask]) -> Iterator[LogAnswer]:
            del tasks
            raise EngineDied("the engine died")

    worker.engine = Dying()
    assert worker.run()
    assert isinstance(worker.engine_lost, EngineDied)
    assert [each.table.suspect for each in service.opened[-1].snapshot()] == [True, True]
    other = service.worker()
    for _ in service.names:
        other.work_once()
    assert [service.ids(other, name) for name in service.names] == [[1], [1]], "one after the other, at once"
    assert [each.table.suspect for each in service.opened[-1].snapshot()] == [False, False]


@pytest.mark.parametrize("died", [EngineDied, TaskDied])
def test_a_worker_whose_engine_goes_as_it_is_told_to_stop_ends_well(
    make: Callable[..., Service], died: type[StorageError]
) -> None:
    """A signal to all processes of a unit ends Spark's JVM and its tasks beside the worker: a supervisor should see no
    failure, and the table is not charged."""
    service = make("a")
    service.lines["a"].append(1)
    worker = service.worker()

    class Ended(LogEngine):
        def run(self, tasks: Sequence[LogTask]) -> Iterator[LogAnswer]:
            worker.stop()
            if died is EngineDied:
                raise died("the engine died")
            yield from (LogAnswer(task.table, error=died("it died"), index=task.index) for task in tasks)

    worker.engine = Ended()
    assert worker.run()
    assert worker.engine_lost is None
    (seen,) = service.opened[-1].snapshot()
    assert (seen.table.suspect, seen.table.deaths) == (False, 0)
    service.later()
    other = service.worker()
    other.work_once()
    assert service.ids(other, "a") == [1]


@dataclass
class _Halting(LogEngine):
    """An engine that tells the answers of one table, and the rest when it is let go."""

    first: str
    go: threading.Event = field(default_factory=threading.Event)

    def run(self, tasks: Sequence[LogTask]) -> Iterable[LogAnswer]:
        ordered = sorted(tasks, key=lambda task: task.log.table.name != self.first)
        yield from LocalEngine(1).run(ordered[:1])
        assert self.go.wait(PATIENCE_SECONDS)
        yield from LocalEngine(1).run(ordered[1:])


def test_a_table_is_committed_before_the_others_of_its_job_have_answered(make: Callable[..., Service]) -> None:
    service = make("quick", "slow")
    for lines in service.lines.values():
        lines.append(1)
    service.engine = engine = _Halting("quick")
    worker = service.worker()
    group = threading.Thread(target=worker.work_once)
    group.start()
    until(lambda: service.table("quick").rounds_total == 1)
    assert service.table("slow").rounds_total == 0
    engine.go.set()
    group.join(PATIENCE_SECONDS)
    assert service.table("slow").rounds_total == 1
