"""A version that expired has no snapshot any more, so none is told: as of a table that had no rows yet."""

from __future__ import annotations

from typing import ClassVar

from crooked import CrookedPlugin, CrookedStorage

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_foreign_maintenance.py::test_an_expired_range_is_refused"
SAYS = "rows of the snapshot of the version after 1 epochs, where old ones expired"


class Harness:
    forgotten: ClassVar[dict[str, int]] = {}
    """By table: the first version that is left."""

    def expire(self, storage: spi.LakeStorage, table: spi.TableInfo) -> None:
        self.forgotten[table.location] = storage.changes(table).versions().latest - 1


class ExpiredChanges(kit.ManifestChanges):
    def _earliest(self) -> int:
        return Harness.forgotten.get(str(self.source.table.location), 0)

    def versions(self) -> spi.VersionBounds:
        return spi.VersionBounds(earliest=self._earliest(), latest=super().versions().latest)

    def snapshot_at(self, version: int) -> int | None:
        return version if version >= self._earliest() else None

    def plan(self, start: int, end: int, *, skip_changes: bool = False) -> spi.ScanPlan:
        if start < self._earliest():
            raise spi.OffsetsExpired(f"version {start} has expired", fix="Begin later.")
        return super().plan(start, end, skip_changes=skip_changes)


class ForgettingStorage(CrookedStorage):
    def changes(self, table: spi.TableInfo) -> kit.ManifestChanges:
        return ExpiredChanges(self.source(table))


class ForgettingPlugin(CrookedPlugin):
    def create_storage(self, config: spi.LakeStorageConfig) -> CrookedStorage:
        return ForgettingStorage(**vars(super().create_storage(config)))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return ForgettingPlugin("calls-an-expired-version-empty")
