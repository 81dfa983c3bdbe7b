"""An overwrite without rows of a table without files changes nothing, so it is no commit, and its watermark is not
stored: the next epoch finds none."""

from __future__ import annotations

from collections.abc import Sequence

from lasting import LastingHarness, lasting

from laketier import kit, spi
from laketier.kit.manifests import files_at
from laketier.registry import hookimpl

CAUGHT_BY = "test_series.py::test_any_series[partitioned]"
SAYS = "the step 'round': expected no error, found WatermarkLost"


class Harness(LastingHarness):
    pass


class LazyCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        assert isinstance(state, kit.ManifestState)
        nothing = self.context.mode is spi.WriteMode.OVERWRITE and not any(result.files for result in results)
        if nothing and not files_at(state.manifests, state.head.number, state.head):
            return spi.LakeCommitResult(snapshot_id=state.head.number, rows=0, files=0, bytes=0)
        return super().publish(state, results, watermark)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return lasting("overwrites-nothing-with-nothing", committer=LazyCommitter)
