"""Expired versions are counted by the last of them, and a feed from there on begins with it: its changes are told once
more."""

from __future__ import annotations

from typing import ClassVar

from richer import RicherFeed, richer

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_feed.py::test_each_range_is_the_sum_of_its_versions"
SAYS = "which can be read after an expiry"


class Harness:
    ended: ClassVar[dict[str, int]] = {}
    """By table: the last version that is gone."""

    def expire(self, storage: spi.LakeStorage, table: spi.TableInfo) -> None:
        self.ended[table.location] = storage.changes(table).versions().latest - 2


def earliest(location: object) -> int:
    return Harness.ended.get(str(location), -1) + 1


class EndingChanges(kit.ManifestChanges):
    def versions(self) -> spi.VersionBounds:
        return spi.VersionBounds(earliest=earliest(self.source.table.location), latest=super().versions().latest)

    def plan(self, start: int, end: int, *, skip_changes: bool = False) -> spi.ScanPlan:
        if start < earliest(self.source.table.location):
            raise spi.OffsetsExpired("these versions have expired", where=str(self.source.table.location))
        return super().plan(start, end, skip_changes=skip_changes)


class EarlyFeed(RicherFeed):
    def plan(self, start: int, end: int) -> spi.ScanPlan:
        first = earliest(self.source.table.location)
        if start < first:
            raise spi.OffsetsExpired("these versions have expired", where=str(self.source.table.location))
        return super().plan(Harness.ended[str(self.source.table.location)] if start == first > 0 else start, end)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return richer("feeds-the-version-before", told=EarlyFeed, changes=EndingChanges)
