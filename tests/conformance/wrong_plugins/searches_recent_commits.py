"""The watermark is looked for in the newest 256 commits, which is quick and was always enough."""

from __future__ import annotations

from dataclasses import dataclass

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_depth.py::test_commits_of_others_hide_nothing"
SAYS = "commits of others came after the pipeline's, and `open` forgot it"


@dataclass(frozen=True)
class ScanningState(kit.ManifestState):
    def watermark(self, pipeline: str) -> spi.Watermark | None:
        mark = super().watermark(pipeline)
        return mark if mark is not None and (mark.snapshot_id or 0) > self.head.number - 256 else None


class ScanningTable(FeatherTable):
    def open(self) -> kit.ManifestState:
        state = super().open()
        return ScanningState(state.manifests, state.head, state.metadata)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("searches-recent-commits", table=ScanningTable)
