"""A table as a log: what its commits appended. A capability that a format may add."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from dataclasses import dataclass

from laketier.spi.errors import RowsChanged
from laketier.spi.source import ScanPlan

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class VersionBounds:
    """Which versions' changes can be read: from ``earliest`` to ``latest`` (exclusive). ``latest_at``: when the newest
    was committed (ms since the epoch, UTC). ``lasting_id``: the table's identity, where `TableInfo.table_uuid` is one
    that old versions take with them when they expire."""

    earliest: int
    latest: int
    latest_at: int | None = None
    lasting_id: str | None = None


class LakeChanges(ABC):
    """What the commits of one table appended. Made by `LakeStorage.changes`, for a format with
    `Feature.INCREMENTAL_READ`. Every method runs on the driver. Picklable, as the log that holds it goes to executors;
    there `LakeSource.read` reads the splits.

    Commits have *versions*: integers from 0 that only grow and need not be dense.
    """

    @abstractmethod
    def versions(self) -> VersionBounds:
        """Which versions there are now. Costs no more for a long history than for a short one, but for a listing of
        what is retained."""

    def snapshot_at(self, version: int) -> int | None:
        """The id (`ScanRequest.snapshot_id`) of the snapshot that was current when ``version`` was the newest; None
        when the table had none yet. By default the version is the id. Raises `SnapshotNotFound`."""
        return version

    @abstractmethod
    def plan(self, start: int, end: int, *, skip_changes: bool = False) -> ScanPlan:
        """Plan the rows that the commits ``start`` to ``end`` (exclusive) appended, in the columns that the table has
        now. The same versions give the same rows each time. Reads what these commits wrote, not the history before
        them.

        Commits that moved rows to other files (compaction) or changed the schema alone add nothing. One that deleted,
        updated or replaced rows raises `RowsChanged`; with ``skip_changes`` it is passed over whole, with the rows
        that it added (`pass_over`). Raises `OffsetsExpired` when a version is retained no more, and `SnapshotNotFound`
        when the table has not come to ``end``.
        """


def pass_over(version: int, operation: str, *, where: str, skip_changes: bool) -> None:
    """What `LakeChanges.plan` does of a commit that changed rows: raises `RowsChanged`, or passes it over and says so
    in the log."""
    if skip_changes:
        log.warning("version %d (%s) of %s changed rows, and is passed over", version, operation, where)
        return
    raise RowsChanged(
        f"version {version} ({operation}) deleted, updated or replaced rows, and only appended ones can be followed",
        where=where,
        fix="Set read.skip-changes to pass such commits over, with the rows that they added; or read the table anew "
        "into another one.",
    )
