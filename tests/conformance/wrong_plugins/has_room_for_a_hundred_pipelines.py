"""A commit has the watermarks of a hundred pipelines, as its header has room for no more. Those that come later have
none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_depth.py::test_commits_of_others_hide_nothing"
SAYS = "pipelines published, and `open` does not know 'other "


class CuttingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        assert isinstance(state, kit.ManifestState)
        kept = state.head.watermarks
        oldest = sorted(kept, key=lambda pipeline: spi.Watermark.from_json(kept[pipeline]).snapshot_id or 0)[:99]
        head = replace(state.head, watermarks={pipeline: kept[pipeline] for pipeline in oldest})
        return super().publish(replace(state, head=head), results, watermark)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("has-room-for-a-hundred-pipelines", committer=CuttingCommitter)
