"""A commit that only added columns changed no row, so it is no conflict: rows are put onto it."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_stale_states.py::test_a_schema_that_changed_between_open_and_publish"
SAYS = "files are published against a state from before a column was added"


class RebasingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        assert isinstance(state, kit.ManifestState)
        try:
            return super().publish(state, results, watermark)
        except spi.Conflict:
            now = self.open()
            between = (now.manifests.read(number) for number in range(state.head.number + 1, now.head.number + 1))
            if any(manifest.kind != "alter" for manifest in between):
                raise
            return super().publish(now, results, watermark)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("rebases-over-new-columns", committer=RebasingCommitter)
