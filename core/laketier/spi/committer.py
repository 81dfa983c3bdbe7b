"""The committing half of a format: runs on the driver."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

from laketier.spi.token import Watermark
from laketier.spi.writer import WR


class TableState(ABC):
    """One consistent, immutable view of a table. A state from `LakeCommitter.open` is valid for one publish attempt. A
    state from `LakeStorage.state` is for reading.

    Plugins subclass it, usually as a frozen dataclass, and add the handle that `publish` needs.
    """

    @property
    @abstractmethod
    def table_uuid(self) -> str:
        """The identity of the table. A dropped and recreated table has another one."""

    @property
    @abstractmethod
    def schema_fingerprint(self) -> str:
        """The fingerprint (`laketier.spi.schema_fingerprint`) of the schema that new files must have."""

    @property
    @abstractmethod
    def spec_id(self) -> int:
        """The partition spec that new files must have."""

    @property
    @abstractmethod
    def snapshot_id(self) -> int | None:
        """The current snapshot. None for a table that never had one."""

    @abstractmethod
    def watermark(self, pipeline: str) -> Watermark | None:
        """Read the last watermark of a pipeline. O(1): no history scan. A failure is never None.

        Args:
            pipeline: The name of the pipeline.

        Returns:
            The watermark. None if the pipeline never published into this table.

        Raises:
            RolledBack: The snapshot that carried the watermark left the table's history, or others removed what the
                table kept of the pipeline, where the format can tell. None would load its rows again.
            CorruptTable: The watermark is stored but can't be read.
        """

    def pipelines(self) -> Sequence[str] | None:
        """List the pipelines that may have a watermark. For people: no decision reads it.

        Returns:
            The names, in any order. None where the format can't list them.
        """
        return None

    @abstractmethod
    def landed(self, commit_id: str) -> bool:
        """Say whether a commit is part of the table's recent history.

        It resolves the unknown outcome of a batch without a pipeline, and decides after a conflict whether staged files
        may be deleted. So it may read as many commits as can have come since the first attempt.

        Args:
            commit_id: The id of the commit, of any pipeline or none.

        Returns:
            Whether the commit landed.

        Raises:
            UnknownOutcome: The history does not reach back far enough to say.
        """


@dataclass(frozen=True, kw_only=True)
class LakeCommitResult:
    """The snapshot, rows and files that a commit added.

    Attributes:
        snapshot_id: The snapshot that it made.
        rows: Added rows.
        files: Added data files.
        bytes: The bytes of the added files.
        folded: Small files of earlier commits that it also wrote as fewer.
    """

    snapshot_id: int
    rows: int
    files: int
    bytes: int
    folded: int = 0


class LakeCommitter(ABC, Generic[WR]):
    """Makes one *attempt* at the atomic step. Runs on the driver, used by one thread, made once per round attempt.

    The core calls `open`, decides, checks, and calls `publish` against that very state. After a `Conflict` or an
    unknown outcome it starts over with `open`. An author writes no loop and no retry, and switches off the library's
    own: a library that rebases and retries by itself publishes a replayed epoch twice.
    """

    @abstractmethod
    def open(self) -> TableState:
        """Read the table afresh, never from a cache. Where a commit has steps after its effect, such as names that
        other readers look for, this first finishes those of a process that died between them.

        Returns:
            The state of the table.

        Raises:
            TableNotFound: There is no such table.
            CorruptTable: Its metadata is damaged.
            UnsafeTable: The table's settings would let it forget the watermark.
        """

    @abstractmethod
    def publish(self, state: TableState, results: Sequence[WR], watermark: Watermark | None) -> LakeCommitResult:
        """Make all files of ``results`` visible and store ``watermark``, in one atomic step, only if the table is still
        as in ``state``. Durable before it returns.

        - The step is a compare-and-set also without files (an empty epoch moves the watermark) and without a watermark
          (a batch without a pipeline).
        - The commit's metadata holds the commit id of the context, where `TableState.landed` finds it.
        - With `WriteMode.UPSERT` the files in `WriteResult.replaced` leave the table in the same step. The core has
          checked that ``state`` is the snapshot that they were read from. A replaced file that ``state`` does not hold
          is a `CommitError`.
        - Watermarks of other pipelines stay, with every write mode.
        - Results are input from outside. All of them are checked before anything is published.

        Args:
            state: The state that `open` returned.
            results: What the tasks staged.
            watermark: The watermark to store. None for a batch without a pipeline.

        Returns:
            What the commit added.

        Raises:
            Conflict: Another commit came first, and it is **certain** that nothing of this one landed.
            NotBegun: A step before the effect failed, such as a look at the table, and it is **certain** that nothing
                of this attempt landed. `laketier.kit.before_effect` raises it for what fails within it.
            Refused: The attempt must not be published, and it is **certain** that nothing of it landed.
            OutsideTable: A path in a result leads out of the table, or names a file that its attempt did not stage.
            StagedFileLost: A file is missing or not as its writer left it, or is named twice.
            Exception: **Any other exception means that the outcome is unknown.** Never translate a time-out or a server
                error into one of the above, and never delete staged files here.
        """

    @abstractmethod
    def discard(self, results: Sequence[WR]) -> None:
        """Delete the files of ``results``. Called only when it is certain that they did not land.

        Best effort: a missing file is fine, and a failure is logged rather than raised; the files after it are deleted
        all the same. A path that leads out of the table, or names a file of another attempt or of the table's own, or
        one that any snapshot still needs, is such a failure: nothing is deleted there.

        Args:
            results: What the tasks staged.
        """

    def storage_time(self) -> int | None:
        """Ask for the time by the clock that dates the table's files, for example with `time_of_storage`. May write and
        delete a file of its own, and changes nothing else.

        Returns:
            Milliseconds since the epoch. None where the format can't ask: the time of the newest orphan is then used to
            compute the age of orphans.

        Raises:
            OSError: The storage does not answer.
            StorageError: The storage can't say.
        """
        return None

    def close(self) -> None:
        """Release the resources of `open`. Called once, at the end."""
