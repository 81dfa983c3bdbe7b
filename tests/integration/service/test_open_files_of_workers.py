"""Files that stay open from one round of a worker to the next."""

from __future__ import annotations

import os
import resource
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from laketier.service.schedule import State
from laketier.service.worker import TieringWorker
from laketier_verification.lines import LinesTable
from tiering_service import PATIENCE_SECONDS, Service

OPEN = {"lake.localfile.file-format": "json", "lake.localfile.open-files": "true"}


def _plain(service: Service) -> list[Path]:
    return sorted((service.folder / "lake/db/t").glob("*.json"))


def _stay_open(worker: TieringWorker) -> list[threading.Thread]:
    """What `TieringWorker.run` does beside the rounds."""
    assert worker.open_files is not None
    thread = threading.Thread(target=worker.open_files.run_until, args=(worker._stopping, lambda key: False))
    thread.start()
    return [thread]


def test_rounds_of_a_worker_append_to_one_file(make: Callable[..., Service]) -> None:
    service = make("t", **OPEN)
    worker = service.worker()
    for epoch in range(4):
        service.lines["t"].append(epoch)
        worker.work_once()
        service.later()
        assert service.ids(worker, "t") == list(range(epoch + 1))
    assert _plain(service) == []
    worker.stop()
    assert worker.run()
    assert len(_plain(service)) == 1
    assert service.ids(worker, "t") == list(range(4))


def test_another_worker_finishes_the_file_of_one_that_is_gone(make: Callable[..., Service]) -> None:
    service = make("t", **OPEN)
    first, second = service.worker(), service.worker()
    for epoch, worker in enumerate((first, first, second, first, second)):
        service.lines["t"].append(epoch)
        worker.work_once()
        service.later()
    assert service.ids(first, "t") == list(range(5))
    assert len(_plain(service)) == 3
    for worker in (first, second):
        worker.stop()
        assert worker.run()
    assert len(_plain(service)) == 4
    assert service.ids(first, "t") == list(range(5))


def test_a_file_that_got_old_while_no_rows_came_is_finished(make: Callable[..., Service]) -> None:
    service = make("t", **OPEN, **{"lake.localfile.target-file-seconds": "1"})
    worker = service.worker()
    assert worker.open_files is not None
    worker.open_files.idle_seconds = 0.01
    service.lines["t"].append(1)
    worker.work_once()
    (thread,) = _stay_open(worker)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not _plain(service) and time.monotonic() < deadline:
        thread.join(0.01)
    worker.stop()
    thread.join()
    assert len(_plain(service)) == 1
    assert worker.run()
    assert service.ids(worker, "t") == [1]


@contextmanager
def _few_descriptors() -> Iterator[None]:
    """Within the block the process has more than half of its descriptors in use."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (2 * len(os.listdir("/dev/fd")) - 10, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_open_files_leave_descriptors_for_rounds(make: Callable[..., Service]) -> None:
    """Tables that came first keep their files; others have theirs finished by each round, and none is stuck."""
    service = make("a", **OPEN)
    worker = service.worker()
    service.lines["a"].append(0)
    worker.work_once()
    for name in ("b", "c"):
        service.lines[name] = LinesTable(service.folder / "logs", name).create()
    worker.tables.discover()
    with _few_descriptors():
        for epoch in range(1, 4):
            service.later()
            for lines in service.lines.values():
                lines.append(epoch)
            worker.work_once()
        finished = {name: len(list((service.folder / f"lake/db/{name}").glob("*.json"))) for name in service.lines}
        assert finished == {"a": 0, "b": 3, "c": 3}
    service.later()
    service.lines["b"].append(4)
    worker.work_once()
    assert len(list((service.folder / "lake/db/b").glob("*.json"))) == 3, "there is room again"
    worker.stop()
    assert worker.run()
    ids = {name: service.ids(worker, name) for name in service.lines}
    assert ids == {"a": [0, 1, 2, 3], "b": [1, 2, 3, 4], "c": [1, 2, 3]}


def test_an_engine_whose_tasks_end_refuses_open_files(make: Callable[..., Service]) -> None:
    service = make("t", **OPEN)
    worker = service.worker()
    worker.open_files = None
    service.lines["t"].append(1)
    worker.work_once()
    assert "can't stay open across epochs here" in str(service.table("t").error)
    assert service.table("t").state is State.STOPPED
