"""All changes that commits made to rows, so that a table can be read as a log of changes. A capability that a format
may add."""

from __future__ import annotations

from abc import ABC, abstractmethod

from laketier.spi.source import ScanPlan

CHANGE_TYPE = "_change_type"
"""The name of the column that `LakeFeed.plan` adds, as in Delta's and Iceberg's readers."""


class LakeFeed(ABC):
    """The change feed of one table. Made by `LakeStorage.feed`, for a format with `Feature.CHANGE_FEED`. Runs on the
    driver. Picklable, as `LakeChanges` is. Its versions are those of `LakeChanges.versions`."""

    @abstractmethod
    def plan(self, start: int, end: int) -> ScanPlan:
        """Plan all changes that commits made to rows. The text column `CHANGE_TYPE` follows the table's columns and
        holds ``+I``, ``+U`` or ``-D``.

        The old state of a changed row is ``-D``, as the format does not know whether its key stays. Splits are in the
        order of the versions. Within a version, removed rows come before added ones. No commit raises `RowsChanged`.
        A table is no set: of equal rows as many are told as came or went.

        Args:
            start: The first version.
            end: The version after the last one.

        Returns:
            The plan.

        Raises:
            IncompatibleTable: The table kept no feed yet at a version.
            OffsetsExpired: A version is not retained any more.
            SnapshotNotFound: The table has not reached ``end``.
            TableNotFound: The table was dropped.
        """
