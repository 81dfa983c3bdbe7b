"""A batch without rows and without a pipeline changes nothing, so nothing is committed."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_rounds.py::test_a_batch_without_rows_is_a_commit"
SAYS = "a batch without rows is published against a state that another one made stale: expected Conflict"


class Skipping(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        changes = any(result.files or result.replaced for result in results)
        if changes or watermark is not None or self.context.mode is spi.WriteMode.OVERWRITE:
            return super().publish(state, results, watermark)
        return spi.LakeCommitResult(snapshot_id=state.snapshot_id or 0, rows=0, files=0, bytes=0)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("skips-batches-without-rows", committer=Skipping)
