"""The table is as it was if it has the files that it had. Commits without files went unseen."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.kit.manifests import files_at
from laketier.registry import hookimpl

CAUGHT_BY = "test_rounds.py::test_a_batch_without_rows_is_a_commit"
SAYS = "a batch without rows is published against a state that another one made stale"


class ComparingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        assert isinstance(state, kit.ManifestState)
        try:
            return super().publish(state, results, watermark)
        except spi.Conflict:
            now = self.open()
            if files_at(now.manifests, now.head.number) != files_at(state.manifests, state.head.number):
                raise
            return super().publish(now, results, watermark)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("compares-files-alone", committer=ComparingCommitter)
