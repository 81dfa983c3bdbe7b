"""A process looks at each version since the last one that it read, for columns that changed. Where these expired, it
refuses a range of what is left."""

from __future__ import annotations

from typing import ClassVar

from clamps_expired_ranges import Harness as Forgetting
from crooked import CrookedPlugin, CrookedStorage

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_foreign_maintenance.py::test_an_expired_range_is_refused"
SAYS = "whose commits appended or moved rows, are planned: found OffsetsExpired"


class RememberingChanges(kit.ManifestChanges):
    read: ClassVar[dict[str, int]] = {}
    """By table: the version after those that this process read."""

    def _earliest(self) -> int:
        return Forgetting.forgotten.get(str(self.source.table.location), 0)

    def versions(self) -> spi.VersionBounds:
        return spi.VersionBounds(earliest=self._earliest(), latest=super().versions().latest)

    def plan(self, start: int, end: int, *, skip_changes: bool = False) -> spi.ScanPlan:
        where = str(self.source.table.location)
        if min(start, self.read.get(where, start)) < self._earliest():
            raise spi.OffsetsExpired("versions have expired", where=where)
        found = super().plan(start, end, skip_changes=skip_changes)
        self.read[where] = max(end, self.read.get(where, 0))
        return found


class RememberingStorage(CrookedStorage):
    def changes(self, table: spi.TableInfo) -> kit.ManifestChanges:
        return RememberingChanges(self.source(table))


class RememberingPlugin(CrookedPlugin):
    def create_storage(self, config: spi.LakeStorageConfig) -> CrookedStorage:
        right = super().create_storage(config)
        return RememberingStorage(**vars(right))


class Harness(Forgetting):
    pass


@hookimpl
def laketier_format() -> CrookedPlugin:
    return RememberingPlugin("reads-on-from-what-it-had-read")
