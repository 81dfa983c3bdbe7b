"""An append that finds its name taken leaves its files to the caller. An overwrite tidies up at once: on
a mounted file system the name may be its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from crooked import CrookedLog, CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier import kit, spi
from laketier.kit import durable, staged
from laketier.kit.manifests import ManifestLog
from laketier.registry import hookimpl

CAUGHT_BY = "test_operations.py::test_an_operation_is_cut_off[overwrite]"
SAYS = "the table can't be read"


class PlainLog(CrookedLog):
    def publish(self, path: Path, data: bytes) -> None:
        durable.create_exclusively(path, data)


class PlainTable(FeatherTable):
    def manifests(self) -> ManifestLog:
        return PlainLog.open(self.location, self.layout)


class TidyCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        try:
            return super().publish(state, results, watermark)
        except spi.Conflict:
            if self.context.mode is spi.WriteMode.OVERWRITE:
                own = staged.own_paths(results, self.table.layout.attempt_of, where=str(self.table.location))
                staged.remove(self.table.folder, own)
            raise


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("deletes-an-overwrite-that-landed", table=PlainTable, committer=TidyCommitter)
