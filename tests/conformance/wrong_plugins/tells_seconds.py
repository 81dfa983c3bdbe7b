"""The history tells when commits were made in seconds, as the author's file system does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crooked import CrookedPlugin, CrookedStorage

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_history.py::test_the_newest_come_first"
SAYS = "in ms since the epoch"


class SecondsHistory(kit.ManifestHistory):
    def snapshots(self, limit: int) -> Sequence[spi.SnapshotInfo]:
        return [replace(line, committed_at=(line.committed_at or 0) // 1000) for line in super().snapshots(limit)]


class SecondsStorage(CrookedStorage):
    def history(self, table: spi.TableInfo) -> kit.ManifestHistory:
        return SecondsHistory(self.parts.at(table))


class SecondsPlugin(CrookedPlugin):
    def create_storage(self, config: spi.LakeStorageConfig) -> CrookedStorage:
        return SecondsStorage(**vars(super().create_storage(config)))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return SecondsPlugin("tells-seconds")
