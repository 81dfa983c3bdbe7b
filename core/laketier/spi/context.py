"""The parameters with which writers and committers are made."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from laketier.spi.open_files import OpenFilesSlot


class WriteMode(Enum):
    """The effect of a round on the existing rows."""

    APPEND = "append"
    OVERWRITE = "overwrite"
    """Replace all rows, atomically. Watermarks of other pipelines stay."""
    UPSERT = "upsert"
    """Replace whole files of the base snapshot, which the results name (`WriteResult.replaced`), by files with the rows
    that the core merged by primary key."""


@dataclass(frozen=True)
class WriterInitContext:
    """The parameter of `LakeTieringFactory.create_writer`. Made on an executor, once per task attempt.

    Attributes:
        attempt: An unguessable id, unique to this task attempt. The names of staged files contain it.
        split_index: The task's number within the round, from 0.
        mode: What the round does to the existing rows.
        open_files: Where the writer may leave files open for the next epoch. None where the process ends with the
            epoch, as Spark's tasks do, and for all but one of a round's tasks.
    """

    attempt: str
    split_index: int = 0
    mode: WriteMode = WriteMode.APPEND
    open_files: OpenFilesSlot | None = field(default=None, compare=False)


@dataclass(frozen=True)
class CommitterInitContext:
    """The parameter of `LakeTieringFactory.create_committer`. Made on the driver, once per round attempt.

    Attributes:
        commit_id: An id unique to the round attempt. `LakeCommitter.publish` stores it in the commit's metadata, where
            `TableState.landed` finds it.
        mode: What the round does to the existing rows.
    """

    commit_id: str
    mode: WriteMode = WriteMode.APPEND
