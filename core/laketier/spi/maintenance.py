"""Maintenance of tables: orphan files and findings. A capability that a format may add. Driver only."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from laketier.spi.errors import FeatureNotSupported

COLLECTOR = "laketier-orphans"
"""The pipeline whose watermark stores the horizon of orphan collection. No pipeline of a user may have this name."""


@dataclass(frozen=True, order=True)
class OrphanFile:
    """A file below a table that none of its snapshots needs, or an empty folder.

    Attributes:
        path: The path relative to the table's location, with ``/``.
        bytes: The size.
        modified_at: Milliseconds since the epoch, UTC, by the storage's clock.
        kind: The purpose of the file: ``data``, or a word of the format's own (``manifest``, ``record``).
        attempt: The attempt in the name of a file that a `LakeWriter` staged. Such a file is deleted only when its
            attempt can't be published any more. None for all other files: a commit that starts over writes them again.
    """

    path: str
    bytes: int
    modified_at: int
    kind: str = "data"
    attempt: str | None = None


@dataclass(frozen=True)
class TableFinding:
    """A defect in a table's metadata that disturbs other readers or writers, but no round.

    Attributes:
        what: The defect, as one clause that stands alone.
        why: The cause and the effect.
        fix: The next step where `LakeMaintenance.repair` can't repair the defect. Empty where it can.
    """

    what: str
    why: str
    fix: str = ""


@dataclass(frozen=True, order=True)
class OpenDataFile:
    """A data file that the process of a pipeline leaves open across epochs, as the table knows it.

    Attributes:
        pipeline: The pipeline whose epochs it grows by.
        path: The path relative to the table's location, with ``/``, which it gets once it is finished.
        rows: The rows that were recorded.
        bytes: The length that was recorded. What lies behind it belongs to nobody.
        began_at: When it was begun, by the clock of the host that did so, in ms since the epoch. None if unknown.
        epoch: The last epoch of the pipeline in the table. None if the table knows none.
        committed_at: When that epoch was committed, by its driver's clock, in ms since the epoch. None if unknown.
    """

    pipeline: str
    path: str
    rows: int
    bytes: int
    began_at: int | None = None
    epoch: int | None = None
    committed_at: int | None = None


@dataclass(frozen=True)
class Expiry:
    """The oldest snapshots of a table that end, and the files that only they needed.

    Attributes:
        earliest: The oldest snapshot that can still be read, or could be if this were done.
        newest: The newest snapshot.
        files: The files that no snapshot from ``earliest`` on needs, and that are older than the retention.
        removed: Those of them that are gone. Empty where they were only listed.
    """

    earliest: int
    newest: int
    files: tuple[OrphanFile, ...] = ()
    removed: tuple[OrphanFile, ...] = ()


class LakeMaintenance(ABC):
    """The maintenance of one table. Made by `LakeStorage.maintenance`, for a format with `Feature.ORPHAN_COLLECTION`.
    Driver."""

    @abstractmethod
    def orphans(self, modified_before: int) -> Sequence[OrphanFile]:
        """List the unreferenced files that are older than a moment. Reads the table afresh.

        A file is unreferenced when no readable snapshot needs it, no newest commit that is to be rolled forward needs
        it, and no rule of the format keeps it (such as a tombstone within its retention). Unknown files, such as a
        user's, and files that the format's own clean-up deletes are left out. A staged file of a live round is listed
        like any other; `laketier.maintenance.orphans` tells the two apart.

        Args:
            modified_before: The moment, in ms since the epoch by the storage's clock.

        Returns:
            The orphans.
        """

    @abstractmethod
    def remove_orphans(self, orphans: Sequence[OrphanFile]) -> Sequence[OrphanFile]:
        """Delete orphans that `orphans` listed.

        Args:
            orphans: The files to delete.

        Returns:
            The files that are gone, also those that another process deleted. A file that can't be deleted is logged and
            left out.
        """

    def findings(self) -> Sequence[TableFinding]:
        """Look for defects in the table's metadata. Reads the table afresh, and changes nothing.

        Returns:
            The defects.
        """
        return ()

    def repair(self) -> Sequence[TableFinding]:
        """Repair the findings without a ``fix``, in one atomic commit that keeps snapshots and watermarks.

        Returns:
            The findings that are left.

        Raises:
            Conflict: Other commits came first each time.
            FeatureNotSupported: The format has no findings to repair.
        """
        raise FeatureNotSupported("repair", reason="it has no findings that could be repaired")

    def expire(self, *, retention: int, keep: int, delete: bool) -> Expiry:
        """End the oldest snapshots, and delete the files that only they needed. The rows of the table, its watermarks
        and the snapshots that stay are as before. Safe beside writers. A read of a snapshot that ends fails.

        Args:
            retention: How long a snapshot stays after another one took its place, in ms by the storage's clock. Longer
                than any read.
            keep: How many of the newest snapshots stay, whatever their age. At least 1.
            delete: False only lists, by this host's clock, and changes nothing.

        Returns:
            What was found, and what was deleted.

        Raises:
            Conflict: Other commits came first each time, or the table was dropped.
            FeatureNotSupported: The format has tools of its own, or keeps all snapshots.
        """
        raise FeatureNotSupported(
            "expiry",
            reason="laketier ends no snapshots of this format",
            fix="Use the format's own tools.",
        )

    def open_files(self) -> Sequence[OpenDataFile]:
        """List the data files that pipelines left open, each that a commit recorded and none since finished. Reads the
        table afresh, and changes nothing.

        Returns:
            The files. None of them in a format whose files do not stay open across epochs.
        """
        return ()

    def finish_open_files(self, pipelines: Sequence[str]) -> Sequence[OpenDataFile]:
        """Finish the files that pipelines left open, as each pipeline's next commit would, in one atomic commit without
        rows that keeps all watermarks. Where none of them is open, nothing is committed. The processes need not be
        dead: one that lives, or wakes up, writes its next epoch into another file.

        Args:
            pipelines: Whose files to finish.

        Returns:
            The files of these pipelines that are still open, for which the storage had no room.

        Raises:
            Conflict: Other commits came first each time.
            CorruptTable: What was recorded of a file is not there.
        """
        return ()
