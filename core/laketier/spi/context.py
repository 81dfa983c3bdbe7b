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
    """

    attempt: str
    split_index: int = 0
    mode: WriteMode = WriteMode.APPEND


@dataclass(frozen=True)
class CommitterInitContext:
    """For `LakeTieringFactory.create_committer`; made on the driver, once per round attempt.

    - ``commit_id``: unique to the round attempt. `LakeCommitter.publish` stores it in the commit's metadata, and
      `TableState.landed` finds it there.
    """

    commit_id: str
    mode: WriteMode = WriteMode.APPEND
