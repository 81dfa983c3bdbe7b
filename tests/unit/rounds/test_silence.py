"""Tasks that are waited for as long as they are not silent, and the threads in which tasks wait for places."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from laketier.rounds import LogAnswer
from laketier.rounds.log_engine import Answers, TaskThreads
from laketier.rounds.silence import run_unless_silent
from laketier.rounds.threads import Permits, RoundPlaces
from laketier.spi import StorageError

TASK: Any = SimpleNamespace(table="t", index=0, log=SimpleNamespace(table=SimpleNamespace(name="t", table_id=1)))


def test_who_is_silent_is_waited_for_no_longer() -> None:
    over = threading.Event()

    def run(task: Any, works: Callable[[], None]) -> LogAnswer:
        over.wait()
        return LogAnswer("t")

    heard = run_unless_silent(TASK, 0.1, run)
    over.set()
    assert heard.answer is None
    assert heard.silent_seconds >= 0.1


def test_who_works_is_waited_for_however_long_it_takes() -> None:
    def run(task: Any, works: Callable[[], None]) -> LogAnswer:
        for _ in range(20):
            time.sleep(0.1)
            works()
        return LogAnswer("t")

    heard = run_unless_silent(TASK, 1.5, run)
    assert heard.answer == LogAnswer("t")
    assert 0.1 <= heard.silent_seconds < 1.5


def test_what_ends_the_process_is_raised_where_it_is_waited_for() -> None:
    def run(task: Any, works: Callable[[], None]) -> LogAnswer:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        run_unless_silent(TASK, 60.0, run)


def test_tasks_of_a_round_that_is_lost_are_not_begun() -> None:
    """Each that a silent lake would keep has a place for minutes."""
    begun = []

    def run(task: Any, works: Callable[[], None]) -> LogAnswer:
        begun.append(task.index)
        return LogAnswer(task.table, error=StorageError("silent") if task.index == 1 else None, index=task.index)

    permits = Permits(1, 60.0)
    answers = Answers()
    tasks: list[Any] = [SimpleNamespace(**{**vars(TASK), "index": number}) for number in range(4)]
    TaskThreads(RoundPlaces(permits, permits, 60.0), 1, run).begin(tasks, answers)
    told = [answers.get(timeout=60) for _ in tasks]
    assert [each.index for each in told if isinstance(each, LogAnswer) and each.error is not None] == [1, 2, 3]
    assert begun == [0, 1]
