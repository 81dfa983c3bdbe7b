"""What a writer and a committer are told when they are made."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class WriteMode(Enum):
    """What a round does to the rows that are there."""

    APPEND = "append"
    OVERWRITE = "overwrite"
    """Replace all rows, atomically. Watermarks of other pipelines stay."""
    UPSERT = "upsert"
    """Rows for others: what the core merged by primary key takes the place of whole files of the base snapshot, which
    the results name (`WriteResult.replaced`)."""


@dataclass(frozen=True)
class WriterInitContext:
    """For `LakeTieringFactory.create_writer`; made on an executor, once per task attempt.

    - ``attempt``: unguessable and unique to this task attempt. Names of staged files carry it.
    - ``split_index``: the task's number within the round, from 0.
    - ``epoch``: of the round, None for a batch without a pipeline. For names and logs only.
    - ``base_snapshot``: the snapshot that the round was planned against, where the mode needs one.
    - ``staging``: a folder or prefix below the table where files may be staged; None lets the format choose.
    - ``buckets``: the buckets that this writer will be given, None when unaware.
    - ``partition``: the partition values that this writer will be given, None when any may come.
    """

    attempt: str
    split_index: int = 0
    epoch: int | None = None
    mode: WriteMode = WriteMode.APPEND
    base_snapshot: int | None = None
    staging: str | None = None
    buckets: tuple[int, ...] | None = None
    partition: tuple[str | None, ...] | None = None


@dataclass(frozen=True)
class CommitterInitContext:
    """For `LakeTieringFactory.create_committer`; made on the driver, once per round attempt.

    - ``commit_id``: unique to the round attempt. `LakeCommitter.publish` stores it in the commit's metadata, and
      `TableState.landed` finds it there.
    - ``pipeline``: None for a batch without one.
    """

    commit_id: str
    mode: WriteMode = WriteMode.APPEND
    pipeline: str | None = None
