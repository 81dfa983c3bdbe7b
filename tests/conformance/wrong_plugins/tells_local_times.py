"""The history's moments are UTC without a zone, which Python takes for local time. The author's machine was in UTC."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from crooked import CrookedPlugin, CrookedStorage

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_history.py::test_the_newest_come_first"
SAYS = "a snapshot says when it was committed, in ms since the epoch"


class LocalHistory(kit.ManifestHistory):
    def snapshots(self, limit: int) -> Sequence[spi.SnapshotInfo]:
        return [replace(line, committed_at=_local(line.committed_at or 0)) for line in super().snapshots(limit)]


def _local(at: int) -> int:
    return int(datetime.fromtimestamp(at / 1000, UTC).replace(tzinfo=None).timestamp() * 1000)


class LocalStorage(CrookedStorage):
    def history(self, table: spi.TableInfo) -> kit.ManifestHistory:
        return LocalHistory(self.parts.at(table))


class LocalPlugin(CrookedPlugin):
    def create_storage(self, config: spi.LakeStorageConfig) -> CrookedStorage:
        return LocalStorage(**vars(super().create_storage(config)))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return LocalPlugin("tells-local-times")
