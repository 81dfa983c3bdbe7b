"""Which jobs find the tables that fail a job of many. Jobs of Spark's are in tests/spark/test_union.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from laketier.rounds import LogAnswer
from laketier.rounds.silence import Heard
from laketier.spark.log_engine import SparkLogEngine
from laketier.spi import StorageError


@dataclass(frozen=True)
class Task:
    table: str
    index: int
    begins: int = 0

    def begun(self) -> Task:
        return Task(self.table, self.index, self.begins + 1)


class Jobs(SparkLogEngine):
    """Without Spark: a job fails that has one of the ``bad`` tables."""

    def __init__(self, bad: set[str]) -> None:
        self.bad = bad
        self.sizes: list[int] = []
        self._patience_seconds = 30.0

    def _job(self, tasks: Sequence[Any], patience_seconds: float) -> Sequence[tuple[Any, Heard]] | StorageError:
        self.sizes.append(len({task.table for task in tasks}))
        if any(task.table in self.bad for task in tasks):
            return StorageError("the job failed")
        return [(task, Heard(LogAnswer(task.table, index=task.index), 0.0)) for task in tasks]


@pytest.mark.parametrize(
    ("tables", "bad", "most"),
    [(64, 0, 1), (64, 1, 13), (64, 2, 23), (64, 64, 81), (63, 1, 13), (2, 1, 3), (1, 1, 1), (3, 3, 6)],
)
def test_a_job_that_fails_is_halved_until_each_bad_table_is_alone(tables: int, bad: int, most: int) -> None:
    names = [f"t{number}" for number in range(tables)]
    guilty = {names[number * (tables - 1) // max(1, bad - 1)] for number in range(bad)}
    tasks: list[Any] = [Task(name, index) for name in names for index in range(2)]
    engine = Jobs(guilty)
    answers = [heard.answer for _, heard in engine._heard_of_shared(tasks) if heard.answer is not None]
    assert sorted((each.table, each.index) for each in answers) == sorted((each.table, each.index) for each in tasks)
    assert {each.table for each in answers if each.error is not None} == guilty
    assert len(engine.sizes) <= most, engine.sizes
