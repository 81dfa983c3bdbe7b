"""A name that exists is a lost race, so the staged files go: on a mounted file system the name may be one's own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from crooked import CrookedLog, CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier import kit, spi
from laketier.kit import durable, staged
from laketier.kit.manifests import ManifestLog
from laketier.registry import hookimpl

CAUGHT_BY = "test_effects.py::test_a_file_system_is_odd[done-twice]"
SAYS = "a data file is missing, because"


class HastyLog(CrookedLog):
    def publish(self, path: Path, data: bytes) -> None:
        durable.create_exclusively(path, data)


class HastyTable(FeatherTable):
    def manifests(self) -> ManifestLog:
        return HastyLog.open(self.location, self.layout)


class TidyCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        try:
            return super().publish(state, results, watermark)
        except spi.Conflict:
            own = staged.own_paths(results, self.table.layout.attempt_of, where=str(self.table.location))
            staged.remove(self.table.folder, own)
            raise


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("takes-its-own-link-for-a-rivals", table=HastyTable, committer=TidyCommitter)
