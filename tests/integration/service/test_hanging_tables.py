"""Sources and lakes that do not answer: they hold up no other table of their worker."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from laketier.rounds import LogAnswer, LogTask
from laketier.rounds.log_engine import LocalEngine
from laketier.service.schedule import State
from tiering_service import Service, work_until


def _silence(path: Path) -> None:
    """Opened for reading, it waits for a writer."""
    path.rename(path.with_suffix(".aside"))
    os.mkfifo(path)


def _end_silence(path: Path) -> None:
    """What hangs goes on, and finds nothing in it."""
    with path.open("a"):
        path.with_suffix(".aside").replace(path)


def test_a_table_whose_source_hangs_holds_up_no_other(make: Callable[..., Service]) -> None:
    service = make("hangs", "works")
    worker = service.worker(patience=0.2)
    for lines in service.lines.values():
        lines.append(1)
    log = service.lines["hangs"].folder / "0.jsonl"
    aside = log.rename(log.with_suffix(".aside"))
    os.mkfifo(log)  # opened for reading, it waits for a writer
    work_until(worker, lambda: service.table("works").rounds_total == 1)
    service.lines["works"].append(2)
    service.later()
    work_until(worker, lambda: service.table("works").rounds_total == 2)
    assert service.table("hangs").state is State.TIERING
    with log.open("a"):  # what hung goes on, and finds nothing in it
        aside.replace(log)
    work_until(worker, lambda: service.table("hangs").state is State.SCHEDULED)
    service.later()
    work_until(worker, lambda: service.table("hangs").rounds_total == 2)
    assert service.ids(worker, "hangs") == [1]
    assert service.ids(worker, "works") == [1, 2]


def test_many_tables_whose_source_hangs_hold_up_no_other(make: Callable[..., Service]) -> None:
    """Topics whose partitions have no leader had all places of a worker, for as long as their source is asked."""
    hanging = [f"hangs_{number}" for number in range(6)]
    service = make(*hanging, "works")
    worker = service.worker(patience=0.2, tables=4, threads=2)
    for lines in service.lines.values():
        lines.append(1)
    for name in hanging:
        _silence(service.lines[name].folder / "0.jsonl")
    work_until(worker, lambda: service.table("works").rounds_total == 1)
    assert {service.table(name).state for name in hanging} == {State.TIERING}
    service.lines["works"].append(2)
    service.later()
    work_until(worker, lambda: service.table("works").rounds_total == 2)
    for name in hanging:
        _end_silence(service.lines[name].folder / "0.jsonl")
    work_until(worker, lambda: {service.table(name).state for name in hanging} == {State.SCHEDULED})
    service.later()
    work_until(worker, lambda: all(service.ids(worker, name) == [1] for name in hanging))


def test_many_tables_whose_commits_hang_hold_up_no_other(make: Callable[..., Service]) -> None:
    """A lake, or a source that is asked for its table once more, that went silent after its rounds were planned had all
    room of a worker, for as long as it is waited for."""
    hanging = [f"hangs_{number}" for number in range(4)]
    service = make(*hanging, "works")
    described = {name: service.lines[name].folder / "table.json" for name in hanging}
    to_come = dict(described)

    class SilentOnceItIsRead(LocalEngine):
        def run(self, tasks: Sequence[LogTask]) -> Iterator[LogAnswer]:
            answers = list(super().run(tasks))
            for answer in answers:
                if path := to_come.pop(answer.table.partition(",")[0].removeprefix("src."), None):
                    _silence(path)
            yield from answers

    service.engine = SilentOnceItIsRead(2)
    worker = service.worker(patience=0.2, tables=4, threads=2)
    for lines in service.lines.values():
        lines.append(1)
    work_until(worker, lambda: service.table("works").rounds_total == 1)
    assert {service.table(name).state for name in hanging} == {State.TIERING}
    service.lines["works"].append(2)
    service.later()
    work_until(worker, lambda: service.table("works").rounds_total == 2)
    for path in described.values():
        _end_silence(path)
    work_until(worker, lambda: {service.table(name).state for name in hanging}.isdisjoint({State.TIERING}))
    service.later()
    work_until(worker, lambda: all(service.ids(worker, name) == [1] for name in hanging))


def test_many_tables_whose_tasks_hang_hold_up_no_other(make: Callable[..., Service]) -> None:
    """What went silent between plan and task had all threads of `LocalEngine`, and all room of a worker."""
    hanging = [f"hangs_{number}" for number in range(4)]
    service = make(*hanging, "works")
    logs = {name: service.lines[name].folder / "0.jsonl" for name in hanging}
    to_come = dict(logs)

    class SilentOnceItIsPlanned(LocalEngine):
        def run(self, tasks: Sequence[LogTask]) -> Iterator[LogAnswer]:
            for task in tasks:
                if path := to_come.pop(task.log.table.name, None):
                    _silence(path)
            return super().run(tasks)

    service.engine = SilentOnceItIsPlanned(2, patience_seconds=0.2)
    worker = service.worker(patience=0.2, tables=4, threads=2)
    for lines in service.lines.values():
        lines.append(1)
    work_until(worker, lambda: service.table("works").rounds_total == 1)
    assert {service.table(name).state for name in hanging} == {State.TIERING}
    service.lines["works"].append(2)
    service.later()
    work_until(worker, lambda: service.table("works").rounds_total == 2)
    for path in logs.values():
        _end_silence(path)
    work_until(worker, lambda: {service.table(name).state for name in hanging}.isdisjoint({State.TIERING}))
    service.later()
    work_until(worker, lambda: all(service.ids(worker, name) == [1] for name in hanging))
