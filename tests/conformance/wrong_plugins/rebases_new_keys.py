"""An upsert that replaces no file collides with none, so it is put onto whatever the table is by then."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_upsert_races.py::test_of_two_pipelines_one_brings_a_new_key[new]"
SAYS = "an upsert brings a key, against a state from before another pipeline brought it: expected Conflict"


class RebasingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        try:
            return super().publish(state, results, watermark)
        except spi.Conflict:
            inserts = self.context.mode is spi.WriteMode.UPSERT and not any(result.replaced for result in results)
            if not inserts or self.open().table_uuid != state.table_uuid:
                raise
            return super().publish(self.open(), results, watermark)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("rebases-new-keys", committer=RebasingCommitter)
