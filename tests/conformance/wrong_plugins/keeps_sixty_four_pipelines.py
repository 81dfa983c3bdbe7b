"""A commit has the watermarks of the 64 pipelines that came last, as its header has room for no more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_depth.py::test_commits_of_others_hide_nothing"
SAYS = "300 commits of others came after the pipeline's, and `open` forgot it"


class CuttingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        assert isinstance(state, kit.ManifestState)
        kept = state.head.watermarks
        newest = sorted(kept, key=lambda pipeline: spi.Watermark.from_json(kept[pipeline]).snapshot_id or 0)[-63:]
        head = replace(state.head, watermarks={pipeline: kept[pipeline] for pipeline in newest})
        state = replace(state, head=head)
        return super().publish(state, results, watermark)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("keeps-sixty-four-pipelines", committer=CuttingCommitter)
