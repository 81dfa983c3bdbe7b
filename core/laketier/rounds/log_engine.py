"""The engines that run the tasks of rounds from logs."""

from __future__ import annotations

import heapq
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from queue import SimpleQueue
from typing import Protocol

from laketier.rounds.log_task import LogAnswer, LogTask, run_log_task
from laketier.rounds.threads import Permits, RoundPlaces, Threads
from laketier.spi import StorageError

PATIENCE_SECONDS = 30.0
"""A task without a batch for so long keeps no other waiting."""

RunTask = Callable[[LogTask, Callable[..., None]], LogAnswer]
"""Runs a task in its place, and calls the second argument as `RoundPlaces.one` says."""


class EngineLost(StorageError):
    """The engine is gone, and this process gets no other: it can only end. It went before it was given the tasks: no
    table is at fault."""


class EngineDied(EngineLost):
    """The engine went while it ran tasks. One of their tables may have killed it."""


class TaskDied(StorageError):
    """The process of a task died, again and again, in a job that had no other table."""


class LogEngine(Protocol):
    """Runs tasks of several tables at once. Driver; safe to call from several threads."""

    @property
    def late_count(self) -> int:
        """How many tables have tasks that are silent for so long that others must not wait for them. 0 where the engine
        does not tell."""
        return 0

    def run(self, tasks: Sequence[LogTask]) -> Iterable[LogAnswer]:
        """The answers to all tasks, in any order, each as soon as the engine can tell it. A task that fails answers
        with its error, and so does one whose process died (`TaskDied` where no other table can have killed it); this
        raises only when nobody can tell what became of the tasks, and `EngineLost` where it will run none any more
        (`EngineDied` where it went while it ran these)."""
        ...


Answers = SimpleQueue[LogAnswer | BaseException]
"""To tasks that threads run; an exception is for whoever takes it from here (`raised`)."""


class TaskThreads:
    """Threads in which tasks wait for their places, ``at_once`` of a table at most, and are run by ``run``. Once a task
    of a table failed, those of the same call that have not begun fail with it, as its round is lost."""

    def __init__(self, places: RoundPlaces, at_once: int, run: RunTask) -> None:
        self._places = places
        self._at_once = at_once
        self._run = run
        self._threads = Threads()

    @property
    def late_count(self) -> int:
        """See `LogEngine.late_count`."""
        return self._places.late_count

    def is_known_late(self, task: LogTask) -> bool:
        """Whether its table was late the last time."""
        return self._places.is_known_late(_table_of(task))

    def begin(self, tasks: Sequence[LogTask], answers: Answers) -> None:
        """Returns at once. Each task has one answer."""
        by_table: dict[str, deque[LogTask]] = {}
        for task in tasks:
            by_table.setdefault(task.table, deque()).append(task)
        for waiting in by_table.values():
            for _ in range(min(self._at_once, len(waiting))):  # no thread per task: a first round may have thousands
                self._threads.start("task", self._run_all, waiting, answers)

    def join(self) -> None:
        """Wait until all that was begun has ended."""
        while (running := self._threads.one_that_runs()) is not None:
            running.join()

    def _run_all(self, waiting: deque[LogTask], answers: Answers) -> None:
        while (task := _next(waiting)) is not None:
            with self._places.one(_table_of(task)) as works:
                try:
                    answer = self._run(task, works)
                except BaseException as error:  # noqa: BLE001 - for whoever takes the answers
                    answers.put(error)
                    continue
            answers.put(answer)
            if answer.error is not None:
                while (left := _next(waiting)) is not None:
                    answers.put(LogAnswer(left.table, error=answer.error, index=left.index))


class LocalEngine(LogEngine):
    """Threads of this process: for services that need no more than one machine, and no Spark. ``threads`` tasks at a
    time, as long as none is silent: one that has no batch for ``patience_seconds``, as its source or its lake does not
    answer, keeps no other waiting. That is long, as a task may be in the midst of work, with its memory."""

    def __init__(self, threads: int = 4, patience_seconds: float = PATIENCE_SECONDS) -> None:
        permits, of_late = (Permits(threads, patience_seconds) for _ in range(2))
        self._tasks = TaskThreads(RoundPlaces(permits, of_late, patience_seconds), threads, self._answer)
        self._closed = threading.Event()

    @property
    def late_count(self) -> int:
        """See `LogEngine.late_count`."""
        return self._tasks.late_count

    def run(self, tasks: Sequence[LogTask]) -> Iterator[LogAnswer]:
        """See `LogEngine.run`. The tasks start at once, whoever looks at the answers."""
        if self._closed.is_set():
            raise RuntimeError("the engine is closed")
        answers = Answers()
        self._tasks.begin(tasks, answers)
        return (raised(answers.get()) for _ in tasks)

    def _answer(self, task: LogTask, works: Callable[..., None]) -> LogAnswer:
        if self._closed.is_set():
            raise StorageError("the engine was closed before the task began", where=task.table)
        return run_log_task(task, works)

    def close(self, *, wait: bool = True) -> None:
        """Begin no more tasks. ``wait``: until those that run have ended."""
        self._closed.set()
        if wait:
            self._tasks.join()


def _table_of(task: LogTask) -> str:
    table = task.log.table
    return f"{table.name} {table.table_id}"


def _next(waiting: deque[LogTask]) -> LogTask | None:
    try:
        return waiting.popleft()
    except IndexError:
        return None


def raised(answer: LogAnswer | BaseException) -> LogAnswer:
    """The answer. Raises what came in place of one."""
    if isinstance(answer, BaseException):
        raise answer
    return answer


def balanced(tasks: Sequence[LogTask], groups: int) -> list[list[LogTask]]:
    """Tasks in at most ``groups`` groups of about the same weight, none of them empty: many small tables need few
    tasks of an engine whose tasks cost something."""
    if groups < 1:
        raise ValueError(f"{groups} groups can't hold anything")
    lightest: list[tuple[int, int]] = [(0, index) for index in range(min(groups, len(tasks)))]
    found: list[list[LogTask]] = [[] for _ in lightest]
    for task in sorted(tasks, key=lambda each: -each.weight):
        load, index = heapq.heappop(lightest)
        found[index].append(task)
        # A table costs something however few rows it has.
        heapq.heappush(lightest, (load + task.weight + 1_000, index))
    return found
