"""An epoch without rows is not committed, so the next one finds a gap."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_rounds.py::test_an_empty_epoch_moves_the_watermark"
SAYS = "the epoch of the watermark after an epoch without rows: expected 1, found 0"


class SkippingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        if not any(result.files for result in results):
            return spi.LakeCommitResult(snapshot_id=state.snapshot_id or 0, rows=0, files=0, bytes=0)
        return super().publish(state, results, watermark)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("skips-empty-epochs", committer=SkippingCommitter)
