"""An overwrite deletes all files that no snapshot of the table names: what a round has staged is among them."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin
from feather_lake.plugin import NAMES

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_overwrite.py::test_an_append_planned_before_an_overwrite"
SAYS = "a round is published that had staged its rows before another one's overwrite: expected no error"


class TidyCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        published = super().publish(state, results, watermark)
        if self.context.mode is spi.WriteMode.OVERWRITE:
            now = self.table.open()
            known = self.table.published(now.manifests, now.head)
            for path in self.table.location.iterdir():
                if NAMES.attempt_of(path.name) is not None and path.name not in known:
                    path.unlink()
        return published


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("clears-its-folder-for-an-overwrite", committer=TidyCommitter)
