"""An append without a pipeline collides with nothing, so it is added to whatever the table is by then."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_stale_states.py::test_a_batch_and_a_stale_pipeline"
SAYS = "a batch without a pipeline is published against a state that a round made stale: expected Conflict"


class Rebasing(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        appends = any(result.files for result in results) and self.context.mode is spi.WriteMode.APPEND
        return super().publish(self.open() if appends and watermark is None else state, results, watermark)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("appends-beside-anything", committer=Rebasing)
