"""The engines that run the tasks of rounds from logs."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Protocol

from laketier.rounds.log_task import LogAnswer, LogTask, run_log_task
from laketier.spi import StorageError


class EngineLost(StorageError):
    """The engine is gone, and this process gets no other: it can only end. It went before it was given the tasks: no
    table is at fault."""


class EngineDied(EngineLost):
    """The engine went while it ran tasks. One of their tables may have killed it."""


class TaskDied(StorageError):
    """The process of a task died, again and again, in a job that had no other table."""


class LogEngine(Protocol):
    """Runs tasks of several tables at once. Driver; safe to call from several threads."""

    def run(self, tasks: Sequence[LogTask]) -> Iterable[LogAnswer]:
        """The answers to all tasks, in any order, each as soon as the engine can tell it. A task that fails answers
        with its error, and so does one whose process died (`TaskDied` where no other table can have killed it); this
        raises only when nobody can tell what became of the tasks, and `EngineLost` where it will run none any more
        (`EngineDied` where it went while it ran these)."""
        ...


class LocalEngine:
    """Threads of this process: for services that need no more than one machine, and no Spark."""

    def __init__(self, threads: int = 4) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="laketier-task")

    def run(self, tasks: Sequence[LogTask]) -> Iterator[LogAnswer]:
        """See `LogEngine.run`. The tasks start at once, whoever looks at the answers."""
        running = [self._pool.submit(run_log_task, task) for task in tasks]
        return (each.result() for each in as_completed(running))

    def close(self, *, wait: bool = True) -> None:
        """Take no more tasks, and end the threads: those of tasks that run, once these have ended."""
        self._pool.shutdown(wait=wait, cancel_futures=True)


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
