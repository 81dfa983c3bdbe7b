"""The messages of laketier's Spark tasks to the driver."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from laketier.spark.arrow_batches import MAX_BYTES, is_costly
from laketier.spark.triggers import MICRO_BATCHES
from laketier.spi import CommitError, LakeTieringFactory, WriteMode, WriterInitContext, new_attempt_id
from laketier.tiering import write_task

_QUERY_ID = "sql.streaming.queryId"
_BATCH_ID = "streaming.sql.batchId"
_START = "spark.jobGroup.id"


@dataclass(frozen=True)
class LakeCommitMessage(WriterCommitMessage):
    """One task's answer.

    - ``result``: what it staged, as `laketier.tiering.write_task` packed it; None where nothing was to be written,
      because the epoch is in the table already.
    - ``query_id``: the stream's id as the task saw it, which is also its checkpoint's.
    - ``start``: this start of the stream, as the task saw it. A query that is started again has another one.
    - ``costly``: the task's batches came under Spark's bound on bytes (see `laketier.spark.arrow_batches`).
    - ``factory``: in streams, with partition 0, the factory that the tasks used, so that the commit, which starts
      from nothing, need not load the table to make another one.
    """

    result: bytes | None
    query_id: str | None = None
    start: str | None = None
    costly: bool = False
    factory: LakeTieringFactory[Any] | None = None


def task_epoch() -> int | None:
    """The streaming epoch that this task belongs to; None for batches."""
    context = TaskContext.get()
    text = context.getLocalProperty(_BATCH_ID) if context else None
    return int(text) if text is not None else None


def task_setting(key: str) -> str | None:
    """A setting of the session in whose query this task runs. None where it is not set, or this is no task."""
    context = TaskContext.get()
    return context.getLocalProperty(key) if context else None


def stage(
    factory: LakeTieringFactory[Any],
    batches: Iterable[pa.RecordBatch],
    *,
    mode: WriteMode,
    partition: int | None = None,
    attempts_after: int = 0,
) -> bytes:
    """Write a task's batches, and pack what was staged. Executor. ``attempts_after``: see `TieringRound`."""
    if partition is None:
        context = TaskContext.get()
        partition = context.partitionId() if context else 0
    attempt = new_attempt_id(attempts_after)
    return write_task(factory, batches, WriterInitContext(attempt=attempt, split_index=partition, mode=mode))


def answer(result: bytes | None, factory: LakeTieringFactory[Any] | None = None) -> LakeCommitMessage:
    """The message of the data source's task that runs now. Executor."""
    context = TaskContext.get()
    if context is None:
        return LakeCommitMessage(result, factory=factory)
    return LakeCommitMessage(
        result,
        query_id=context.getLocalProperty(_QUERY_ID),
        start=context.getLocalProperty(_START),
        costly=is_costly(context.getLocalProperty(MAX_BYTES)),
        factory=factory if context.partitionId() == 0 else None,
    )


def complete(messages: Sequence[WriterCommitMessage | None], table: str) -> list[LakeCommitMessage]:
    """The answers of all tasks, for a commit. Raises `CommitError` where one is missing: its rows would be lost."""
    answers = present(messages)
    if len(answers) < len(messages):
        raise CommitError(
            f"{len(messages) - len(answers)} of {len(messages)} tasks gave no answer, and Spark commits all the same",
            where=table,
            why="rows of theirs may not be written yet",
            fix=MICRO_BATCHES,
        )
    return answers


def present(messages: Sequence[WriterCommitMessage | None]) -> list[LakeCommitMessage]:
    """The messages of the tasks that answered."""
    return [message for message in messages if isinstance(message, LakeCommitMessage)]
