"""Rounds that read logs, on Spark: one job for the tasks of many tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from laketier.rounds import LogAnswer, LogTask, run_log_task
from laketier.rounds.log_engine import balanced
from laketier.spark.classic import context_of
from laketier.spi import StorageError

_TASKS_PER_CORE = 2


class SparkLogEngine:
    """Each Spark task runs the log tasks of several small tables, or one of a big table. A `LogEngine`."""

    def __init__(self, spark: SparkSession) -> None:
        self._context = context_of(spark, "a service")

    def run(self, tasks: Sequence[LogTask]) -> Sequence[LogAnswer]:
        """See `laketier.rounds.log_engine.LogEngine.run`."""
        if not tasks:
            return []
        groups = balanced(tasks, self._context.defaultParallelism * _TASKS_PER_CORE)
        try:
            return self._context.parallelize(groups, len(groups)).flatMap(_run_all).collect()
        except Exception as error:
            why = error.getMessage() if isinstance(error, PySparkException) else None
            raise StorageError(
                "the Spark job ended without answers",
                why=(why or str(error)).partition("\n")[0],
                fix="The staged files stay invisible. The rounds are run again.",
            ) from error


def _run_all(tasks: list[LogTask]) -> Iterator[LogAnswer]:
    return (run_log_task(task) for task in tasks)
