"""The rows that commits appended, so that a table can be read as a log. A capability that a format may add."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from dataclasses import dataclass

from laketier.spi.errors import RowsChanged, SnapshotNotFound
from laketier.spi.source import ScanPlan

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class VersionBounds:
    """The versions with readable changes.

    Attributes:
        earliest: The first version. All that it did can still be read, also the rows that it removed where there is a
            `LakeFeed`.
        latest: The version after the last one.
        latest_at: When the newest version was committed, in ms since the epoch, UTC.
        lasting_id: The table's identity, where `TableInfo.table_uuid` depends on old versions that expire.
    """

    earliest: int
    latest: int
    latest_at: int | None = None
    lasting_id: str | None = None


class LakeChanges(ABC):
    """The rows that commits appended to one table. Made by `LakeStorage.changes`, for a format with
    `Feature.INCREMENTAL_READ`. All methods run on the driver. Picklable, as the log that contains it goes to executors,
    where `LakeSource.read` reads the splits.

    Commits have *versions*: integers from 0 that only grow and need not be dense.
    """

    @abstractmethod
    def versions(self) -> VersionBounds:
        """Look up the versions that can be read now, also where the object was made long ago. Its cost does not grow
        with the history, except for a listing of the retained versions.

        Returns:
            The first and the last version.

        Raises:
            TableNotFound: The table was dropped.
        """

    def snapshot_at(self, version: int) -> int | None:
        """Find the snapshot that was current when a version was the newest. By default the version is the snapshot's
        id, and `versions` tells whether the table has reached it; that it has expired, a plan of the snapshot tells.

        Args:
            version: The version.

        Returns:
            The snapshot's id (`ScanRequest.snapshot_id`). None when the table had no snapshot yet.

        Raises:
            SnapshotNotFound: The version has expired, or the table has not reached it.
            TableNotFound: The table was dropped.
        """
        latest = self.versions().latest
        if not 0 <= version < latest:
            raise SnapshotNotFound(f"the table has no version {version}", fix=f"The newest one is {latest - 1}.")
        return version

    def stamp(self, version: int) -> str | None:
        """Tell a version from another that got its number, after the table was put back from a backup. It is made of
        what the commit itself wrote and nothing changes later: a digest of its document, or an id that its writer
        drew. So it is the same whoever asks, also of a table that was copied as a whole, and never that of another
        commit. No time of a file and no place of it belongs in it. One look, whatever the history. A follower that
        meets another stamp than it noted stops (`OffsetsRewritten`); without stamps it loses rows there.

        Args:
            version: The version.

        Returns:
            The stamp: a short text. None, as by default, where the format has none, or the version has expired or was
            not reached.

        Raises:
            TableNotFound: The table was dropped.
        """
        return None

    @abstractmethod
    def plan(self, start: int, end: int, *, skip_changes: bool = False) -> ScanPlan:
        """Plan the rows that commits appended, in the columns that the table has now and in the order of the versions:
        of a table that is followed by a key, the last row of a key counts. The same versions give the same rows each
        time. Reads the files of these commits only, not the history before them.

        A commit that only moved rows to other files (compaction) or only changed the schema adds nothing.

        Args:
            start: The first version.
            end: The version after the last one.
            skip_changes: Skip a commit that deleted, updated or replaced rows, together with the rows that it added
                (`pass_over`).

        Returns:
            The plan. Its `ScanPlan.snapshot_id` is that of the last version of the range, or None.

        Raises:
            RowsChanged: A commit deleted, updated or replaced rows, or what ended at ``start`` was rolled back, and
                ``skip_changes`` is false.
            OffsetsExpired: A version is not retained any more.
            SnapshotNotFound: The table has not reached ``end``.
            TableNotFound: The table was dropped.
        """


def pass_over(version: int, operation: str, *, where: str, skip_changes: bool) -> None:
    """Refuse or skip a commit that changed rows, for `LakeChanges.plan`. A skipped commit is logged as a warning.

    Args:
        version: The version of the commit.
        operation: The name of its operation.
        where: The name of the table.
        skip_changes: Whether to skip it.

    Raises:
        RowsChanged: ``skip_changes`` is false.
    """
    if skip_changes:
        log.warning("version %d (%s) of %s changed rows, and is skipped", version, operation, where)
        return
    raise RowsChanged(
        f"version {version} ({operation}) deleted, updated or replaced rows, and only appended ones can be followed",
        where=where,
        fix="Set read.skip-changes to skip such commits, with the rows that they added; or read the table again "
        "into another one.",
    )
