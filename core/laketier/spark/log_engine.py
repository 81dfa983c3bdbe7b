"""Rounds that read logs, on Spark: one job for the tasks of many tables."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from pyspark.sql import SparkSession

from laketier.rounds import LogAnswer, LogTask, run_log_task
from laketier.rounds.log_engine import EngineDied, EngineLost, LogEngine, TaskDied, balanced
from laketier.spark.classic import context_of
from laketier.spark.failures import GONE, GONE_FIX, is_of_a_death, why_ended, why_gone
from laketier.spi import StorageError

log = logging.getLogger(__name__)

_TASKS_PER_CORE = 2
_FAILURES_PER_HALVING = 2


class SparkLogEngine(LogEngine):
    """Each Spark task runs the log tasks of several small tables, or one of a big table. A `LogEngine`."""

    def __init__(self, spark: SparkSession) -> None:
        self._context = context_of(spark, "a service")

    def run(self, tasks: Sequence[LogTask]) -> Iterator[LogAnswer]:
        """See `laketier.rounds.log_engine.LogEngine.run`.

        Spark fails a whole job where a task kills its Python process, needs too much memory, or has a plugin that an
        executor lacks. Nobody knows then which table did it: the job is halved until each such table fails alone.
        """
        if not tasks:
            return
        by_table: dict[str, list[LogTask]] = {}
        for task in tasks:
            by_table.setdefault(task.table, []).append(task)
        answers = self._answers(tasks)
        if isinstance(answers, StorageError) and len(by_table) > 1:
            log.warning(
                "a job of %d tables failed, and is halved to find those that fail it: %s", len(by_table), answers
            )
            yield from self._halved(list(by_table.values()))
        else:
            yield from _told(tasks, answers)

    def _halved(self, tables: Sequence[list[LogTask]]) -> Iterator[LogAnswer]:
        """The answers of tables of a failed job. Where halves fail again and again it is not one table of many: each
        that is left gets a job of its own then, which costs fewer jobs than to go on."""
        waiting = _halves(tables)
        failures, most = 0, _FAILURES_PER_HALVING * len(tables).bit_length()
        while waiting:
            some = waiting.pop()
            again = [task.begun() for tasks in some for task in tasks]
            answers = self._answers(again)
            if len(some) == 1 or not isinstance(answers, StorageError):
                yield from _told(again, answers)
                continue
            failures += 1
            waiting += _halves(some) if failures < most else [[tasks] for tasks in some]

    def _answers(self, tasks: Sequence[LogTask]) -> Sequence[LogAnswer] | StorageError:
        """Those of one job, or why there are none. Raises `EngineLost`."""
        self._require_spark(EngineLost)
        groups = balanced(tasks, self._context.defaultParallelism * _TASKS_PER_CORE)
        try:
            return self._context.parallelize(groups, len(groups)).flatMap(_run_all).collect()
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


def _told(tasks: Sequence[LogTask], answers: Sequence[LogAnswer] | StorageError) -> Iterator[LogAnswer]:
    if isinstance(answers, StorageError):
        return (LogAnswer(task.table, error=answers, index=task.index) for task in tasks)
    return iter(answers)


def _run_all(tasks: list[LogTask]) -> Iterator[LogAnswer]:
    return (run_log_task(task) for task in tasks)
