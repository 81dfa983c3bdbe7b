"""The committing half of a format: runs on the driver."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

from laketier.spi.token import Watermark
from laketier.spi.writer import WR


class TableState(ABC):
    """One consistent, immutable view of the table. What `LakeCommitter.open` saw is valid for one publish attempt; what
    `LakeStorage.state` gives is for reading.

    Plugins subclass it (usually a frozen dataclass) and add the handle that `publish` needs.
    """

    @property
    @abstractmethod
    def table_uuid(self) -> str:
        """Identity of the table; a dropped and recreated table has another one."""

    @property
    @abstractmethod
    def schema_fingerprint(self) -> str:
        """`laketier.spi.schema_fingerprint` of the schema that new files must have."""

    @property
    @abstractmethod
    def spec_id(self) -> int:
        """The partition spec that new files must have."""

    @property
    @abstractmethod
    def snapshot_id(self) -> int | None:
        """The current snapshot, None for a table that never had one."""

    @abstractmethod
    def watermark(self, pipeline: str) -> Watermark | None:
        """The last watermark of ``pipeline``, None if it never published here. O(1): no history scan.

        Raises `RolledBack` when the format can tell that the snapshot that carried it left the table's history, and
        `CorruptTable` when it is stored but can't be read. Never None for a failure.
        """

    def pipelines(self) -> Sequence[str] | None:
        """The names under which `watermark` may find one, in any order; None where the format can't list them. For
        people: no decision reads it."""
        return None

    @abstractmethod
    def landed(self, commit_id: str) -> bool:
        """Whether a commit with this id, of any pipeline or none, is part of the table's recent history.

        Resolves the unknown outcome of a batch without a pipeline, and decides after a conflict whether staged files
        may be deleted; so it may look at as many commits as can have come since the first attempt. Raises
        `UnknownOutcome` when the history does not reach back far enough to say."""


@dataclass(frozen=True, kw_only=True)
class LakeCommitResult:
    """What a commit did. ``rows``, ``files`` and ``bytes`` count what this commit added."""

    snapshot_id: int
    rows: int
    files: int
    bytes: int


class LakeCommitter(ABC, Generic[WR]):
    """One *attempt* at the atomic step. Runs on the driver, used by one thread, made once per round attempt.

    The core calls ``open``, decides, checks, calls ``publish`` against that very state, and starts over from
    ``open`` after a `Conflict` or an unknown outcome. An author writes no loop and no retry, and switches off the
    library's own: a library that rebases and retries on its own publishes a replayed epoch twice.
    """

    @abstractmethod
    def open(self) -> TableState:
        """A fresh view of the table, never from a cache. Raises `TableNotFound`, `CorruptTable`, or `UnsafeTable`
        where the table's settings would forget the watermark."""

    @abstractmethod
    def publish(self, state: TableState, results: Sequence[WR], watermark: Watermark | None) -> LakeCommitResult:
        """Make all files of ``results`` visible and store ``watermark``, in one atomic step, only if the table is
        still as in ``state``.

        - A compare-and-set also without files (an empty epoch moves the watermark) and without a watermark (a batch
          without a pipeline; the context's commit id goes into the commit's metadata).
        - With `WriteMode.UPSERT` the files that results name as ``replaced`` leave in the same step. The core made sure
          that ``state`` is still the snapshot that they were read from; one that is not in it all the same is a
          `CommitError`.
        - Other pipelines' watermarks stay, with every write mode.
        - Results are input from outside: a path in one that leads out of the table, or names a file that its attempt
          did not stage, is `OutsideTable`; a file that is not there as its writer left it, or is named twice, is
          `StagedFileLost`. All are found before anything is published.
        - Raises `Conflict` or `Refused` only when it is certain that nothing landed. **Any other exception
          means: unknown**, so never translate a time-out or a server error into these, and never clean up here.
        - Durable before it returns.
        """

    @abstractmethod
    def discard(self, results: Sequence[WR]) -> None:
        """Delete the files of ``results``. Called only when it is certain that they did not land. Best effort: a
        file that is gone is fine, a failure is logged, not raised. A path that leads out of the table, or names a file
        of another attempt or of the table's own, is such a failure: nothing is deleted there."""

    def storage_time(self) -> int | None:
        """What time it is by the clock that dates the table's files, ms since the epoch: `time_of_storage` tells.
        May write, and delete, a file of its own; changes nothing else. Raises `OSError` or `StorageError`.

        None where the format can't ask. Orphans are then as old as the newest of them makes them.
        """
        return None

    def close(self) -> None:
        """Release what ``open`` holds. Called once, at the end."""
