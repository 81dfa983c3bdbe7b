"""A range that begins before what is retained begins where that does, and nobody is told."""

from __future__ import annotations

from typing import ClassVar

from crooked import CrookedPlugin, CrookedStorage

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_foreign_maintenance.py::test_an_expired_range_is_refused"
SAYS = "expected OffsetsExpired, and no error was raised"


class Harness:
    forgotten: ClassVar[dict[str, int]] = {}
    """By table: the first version that is left."""

    def expire(self, storage: spi.LakeStorage, table: spi.TableInfo) -> None:
        self.forgotten[table.location] = storage.changes(table).versions().latest - 1


class ClampedChanges(kit.ManifestChanges):
    def _earliest(self) -> int:
        return Harness.forgotten.get(str(self.source.table.location), 0)

    def versions(self) -> spi.VersionBounds:
        return spi.VersionBounds(earliest=self._earliest(), latest=super().versions().latest)

    def plan(self, start: int, end: int, *, skip_changes: bool = False) -> spi.ScanPlan:
        return super().plan(min(max(start, self._earliest()), end), end, skip_changes=skip_changes)


class ForgettingStorage(CrookedStorage):
    def changes(self, table: spi.TableInfo) -> kit.ManifestChanges:
        return ClampedChanges(self.source(table))


class ForgettingPlugin(CrookedPlugin):
    def create_storage(self, config: spi.LakeStorageConfig) -> CrookedStorage:
        return ForgettingStorage(**vars(super().create_storage(config)))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return ForgettingPlugin("clamps-expired-ranges")
