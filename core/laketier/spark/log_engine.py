"""Rounds that read logs, on Spark: one job for the tasks of many tables."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain

from pyspark.sql import SparkSession

from laketier.rounds import LogAnswer, LogTask
from laketier.rounds.log_engine import (
    Answers,
    EngineDied,
    EngineLost,
    LogEngine,
    TaskDied,
    TaskThreads,
    balanced,
    raised,
)
from laketier.rounds.silence import Heard, run_unless_silent
from laketier.rounds.threads import Permits, RoundPlaces, Threads
from laketier.spark.classic import context_of
from laketier.spark.failures import GONE, GONE_FIX, is_of_a_death, why_ended, why_gone
from laketier.spi import StorageError

log = logging.getLogger(__name__)

_TASKS_PER_CORE = 2
_FAILURES_PER_HALVING = 2
_PATIENCE_SECONDS = 120.0
"""Longer than for threads: what is left behind has to be done again, and the end of a big file may take a minute."""
_LONGEST_SILENCE_SECONDS = 1800.0
"""Much longer than any client waits for an answer. A round that only is slow would fail at it each time."""

_Told = Sequence[tuple[LogTask, Heard]]


class SparkLogEngine(LogEngine):
    """Each Spark task runs the log tasks of several small tables, or one of a big table. A `LogEngine`.

    A log task that is silent for ``patience_seconds`` has a place of the cluster, and keeps those of its Spark task and
    of its job waiting. It is left behind then, and run again in a job of its own. At most half of the places are for
    such, and for all tasks of a table that was late the last time. There, one fails that is silent for
    ``longest_silence_seconds``: Spark has no place to spare for it."""

    def __init__(
        self,
        spark: SparkSession,
        patience_seconds: float = _PATIENCE_SECONDS,
        longest_silence_seconds: float = _LONGEST_SILENCE_SECONDS,
    ) -> None:
        self._context = context_of(spark, "a service")
        self._patience_seconds = patience_seconds
        self._longest_seconds = longest_silence_seconds
        self._threads = Threads()
        at_once = max(1, self._context.defaultParallelism // 2)
        permits = Permits(at_once, longest_silence_seconds)  # who has a place has one of Spark's, too, for as long
        self._late = TaskThreads(RoundPlaces(permits, permits, patience_seconds), at_once, self._run_late)

    @property
    def late_count(self) -> int:
        """See `LogEngine.late_count`."""
        return self._late.late_count

    def run(self, tasks: Sequence[LogTask]) -> Iterator[LogAnswer]:
        """See `laketier.rounds.log_engine.LogEngine.run`.

        Spark fails a whole job where a task kills its Python process, needs too much memory, or has a plugin that an
        executor lacks. Nobody knows then which table did it: the job is halved until each such table fails alone.
        """
        answers = Answers()
        late = [task for task in tasks if self._late.is_known_late(task)]
        self._late.begin(late, answers)
        if in_time := [task for task in tasks if not self._late.is_known_late(task)]:
            self._threads.start("shared job", self._run_shared, in_time, answers)
        return (raised(answers.get()) for _ in tasks)

    def _run_shared(self, tasks: Sequence[LogTask], answers: Answers) -> None:
        silent = []
        try:
            for task, heard in self._heard_of_shared(tasks):
                if heard.answer is not None:
                    answers.put(heard.answer)
                else:
                    silent.append(task)
        except BaseException as error:  # noqa: BLE001 - for whoever takes the answers
            answers.put(error)
        else:
            if silent:
                tables = len({task.table for task in silent})
                log.warning(
                    "%d tasks of %d tables had no batch for %s s, as their sources or lakes may not answer: they get "
                    "jobs of their own", len(silent), tables, self._patience_seconds,
                )  # fmt: skip
            self._late.begin(silent, answers)

    def _run_late(self, task: LogTask, works: Callable[..., None]) -> LogAnswer:
        ((_, heard),) = _told([task], self._job([task.begun()], self._longest_seconds))
        works(heard.silent_seconds)
        return heard.answer or _failed(task, _silence(task, heard.silent_seconds))

    def _heard_of_shared(self, tasks: Sequence[LogTask]) -> Iterator[tuple[LogTask, Heard]]:
        by_table: dict[str, list[LogTask]] = {}
        for task in tasks:
            by_table.setdefault(task.table, []).append(task)
        heard = self._job(tasks, self._patience_seconds)
        if isinstance(heard, StorageError) and len(by_table) > 1:
            log.warning("a job of %d tables failed, and is halved to find those that fail it: %s", len(by_table), heard)
            yield from self._halved(list(by_table.values()))
        else:
            yield from _told(tasks, heard)

    def _halved(self, tables: Sequence[list[LogTask]]) -> Iterator[tuple[LogTask, Heard]]:
        """Of tables of a failed job. Where halves fail again and again it is not one table of many: each that is left
        gets a job of its own then, which costs fewer jobs than to go on."""
        waiting = _halves(tables)
        failures, most = 0, _FAILURES_PER_HALVING * len(tables).bit_length()
        while waiting:
            some = waiting.pop()
            again = [task.begun() for tasks in some for task in tasks]
            heard = self._job(again, self._patience_seconds)
            if len(some) == 1 or not isinstance(heard, StorageError):
                yield from _told(again, heard)
                continue
            failures += 1
            waiting += _halves(some) if failures < most else [[tasks] for tasks in some]

    def _job(self, tasks: Sequence[LogTask], patience_seconds: float) -> _Told | StorageError:
        """What is heard of each of the tasks of one job, or why there is nothing. Raises `EngineLost`."""
        self._require_spark(EngineLost)
        groups = balanced(tasks, self._context.defaultParallelism * _TASKS_PER_CORE)
        run = partial(_run_all, patience_seconds)
        try:
            heard = self._context.parallelize(groups, len(groups)).flatMap(run).collect()
            return list(zip(chain.from_iterable(groups), heard, strict=True))
        except Exception as error:  # noqa: BLE001 - whatever Spark raises is told as the answer of the tasks
            self._require_spark(EngineDied)
            is_alone = len({task.table for task in tasks}) == 1
            failure = (TaskDied if is_alone and is_of_a_death(error) else StorageError)(
                "the Spark job ended without answers",
                why=why_ended(error),
                fix="The staged files stay invisible. The rounds are run again. If it comes back, a task may need more "
                "memory than it has, or a library may crash in it: see the executors' logs. max-offsets-per-round "
                "makes rounds smaller.",
            )
            failure.__cause__ = error
            return failure

    def _require_spark(self, gone: type[EngineLost]) -> None:
        why = why_gone(self._context)
        if why is not None:
            raise gone(GONE, why=why, fix=GONE_FIX)


def _halves(tables: Sequence[list[LogTask]]) -> list[Sequence[list[LogTask]]]:
    middle = len(tables) // 2
    return [tables[:middle], tables[middle:]]


def _told(tasks: Sequence[LogTask], told: _Told | StorageError) -> Iterator[tuple[LogTask, Heard]]:
    if isinstance(told, StorageError):
        return ((task, Heard(_failed(task, told), 0.0)) for task in tasks)
    return iter(told)


def _failed(task: LogTask, error: StorageError) -> LogAnswer:
    return LogAnswer(task.table, error=error, index=task.index)


def _silence(task: LogTask, seconds: float) -> StorageError:
    return StorageError(
        f"a task had no batch for {round(seconds)} s, and is waited for no longer",
        where=task.log.table.name,
        why="its source or its lake does not answer",
        fix="What it staged stays invisible, and the round is run again. See whether the executors reach the source "
        "and the lake, and give the clients of both timeouts. Where they are only slow, max-offsets-per-round "
        "makes rounds smaller.",
    )


def _run_all(patience_seconds: float, tasks: list[LogTask]) -> Iterator[Heard]:
    return (run_unless_silent(task, patience_seconds) for task in tasks)
