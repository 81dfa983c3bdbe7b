"""An append is a conflict where its own pipeline went on, as in the transactions of Delta: beside other pipelines it is
put onto whatever the table is by then."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_stale_states.py::test_a_state_that_another_pipeline_made_stale[collection-empty]"
SAYS = "an epoch of rows is published against a state that another pipeline made stale: expected Conflict"


class RebasingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        try:
            return super().publish(state, results, watermark)
        except spi.Conflict:
            if watermark is None or self.context.mode is not spi.WriteMode.APPEND:
                raise
            now, pipeline = self.open(), watermark.token.pipeline
            same = (now.table_uuid, now.schema_fingerprint) == (state.table_uuid, state.schema_fingerprint)
            if not same or now.watermark(pipeline) != state.watermark(pipeline):
                raise
            return super().publish(now, results, watermark)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("commits-by-its-own-pipeline", committer=RebasingCommitter)
