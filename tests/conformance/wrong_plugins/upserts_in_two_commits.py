"""An upsert is two commits: one removes the old files, and the next one adds the new ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_operations.py::test_an_operation_is_cut_off[upsert]"
SAYS = "a part is there"


class RemovingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        if any(result.replaced for result in results):
            super().publish(state, [replace(result, files=()) for result in results], None)
            state, results = self.open(), [replace(result, replaced=()) for result in results]
        return super().publish(state, results, watermark)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("upserts-in-two-commits", committer=RemovingCommitter)
