"""A table as a log: all that its commits did to rows. A capability that a format may add."""

from __future__ import annotations

from abc import ABC, abstractmethod

from laketier.spi.source import ScanPlan

CHANGE_TYPE = "_change_type"
"""The column of `LakeFeed.plan`, named as Delta's and Iceberg's readers name it."""


class LakeFeed(ABC):
    """The change feed of one table. Made by `LakeStorage.feed`, for a format with `Feature.CHANGE_FEED`. Runs on the
    driver. Picklable, as `LakeChanges` is; its versions are those of `LakeChanges.versions`."""

    @abstractmethod
    def plan(self, start: int, end: int) -> ScanPlan:
        """As `LakeChanges.plan`, but of all that the commits did to rows, with the text column `CHANGE_TYPE` after the
        table's: ``+I``, ``+U`` and ``-D``. No commit raises `RowsChanged`. The splits are in the order of the versions,
        and within one the rows that went come before those that came. A row's old state is ``-D``, as a format knows
        no key that would stay. Raises `IncompatibleTable` for versions from before the feed was kept."""
