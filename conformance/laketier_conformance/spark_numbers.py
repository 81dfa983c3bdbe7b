"""What Spark tells a task of itself, in a process that is none of its workers: numbers that come again.

They are unique in one application, and not in two. And a stage that is run again, as a result of it was lost, has the
same numbers as its first run, of which tasks may still go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.util import find_spec
from typing import Any

import pytest

OF_A_BATCH = {"spark.sql.execution.id": "0"}
OF_A_STREAM = {
    **OF_A_BATCH,
    "sql.streaming.queryId": "00000000-0000-4000-8000-000000000000",
    "streaming.sql.batchId": "0",
}
"""What a task finds as properties of its job."""


def is_there() -> bool:
    """Whether a plugin could ask pyspark."""
    return find_spec("pyspark") is not None


def task(partition: int, properties: Mapping[str, str]) -> AbstractContextManager[None]:
    """The block runs as the first attempt at a partition of the first stage."""
    return _told(partition, properties) if is_there() else nullcontext()


@contextmanager
def _told(partition: int, properties: Mapping[str, str]) -> Iterator[None]:
    from pyspark import TaskContext

    numbers = {"stageId": 0, "partitionId": partition, "attemptNumber": 0, "taskAttemptId": partition}
    answers: dict[str, Callable[..., Any]] = {name: _always(number) for name, number in numbers.items()}
    answers["getLocalProperty"] = lambda _, key: properties.get(key)
    told: TaskContext = object.__new__(type("Task", (TaskContext,), answers))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TaskContext, "get", staticmethod(lambda: told))
        yield


def _always(number: int) -> Callable[[object], int]:
    return lambda _: number
