"""A rollback is told to the pipeline whose commit was the newest that it took away. Another one that lost rows goes on
after those that are gone."""

from __future__ import annotations

from crooked import CrookedPlugin
from feather_lake.plugin import FEATURES, FeatherTable
from looks_for_rollbacks_in_the_newest_commit import ROLLBACK
from looks_for_rollbacks_in_the_newest_commit import Harness as RollingBack

from laketier import kit, spi
from laketier.kit.manifests.chain import back_from
from laketier.registry import hookimpl

CAUGHT_BY = "test_capabilities.py::test_a_foreign_rollback_is_noticed_after_rounds_of_others"
SAYS = "epoch 1 of p is published after somebody took the table back, and others came then: expected RolledBack"


def _newest(manifest: kit.Manifest) -> str:
    marks = {name: spi.Watermark.from_json(text) for name, text in manifest.watermarks.items()}
    return max(marks, key=lambda name: marks[name].snapshot_id or 0)


class NamingState(kit.ManifestState):
    def watermark(self, pipeline: str) -> spi.Watermark | None:
        for each in back_from(self.manifests, self.head, down_to=0):
            goes_on = self.head.watermarks.get(pipeline) != each.watermarks.get(pipeline)
            if each.kind == ROLLBACK and not goes_on and _newest(self.manifests.read(each.number - 1)) == pipeline:
                raise spi.RolledBack("a commit took rows back", where=self.manifests.store.root)
        return super().watermark(pipeline)


class NamingTable(FeatherTable):
    def open(self) -> kit.ManifestState:
        return NamingState(**vars(super().open()))

    def state(self, info: spi.TableInfo) -> kit.ManifestState:
        return NamingState(**vars(super().state(info)))


class Harness(RollingBack):
    pass


@hookimpl
def laketier_format() -> CrookedPlugin:
    features = {**FEATURES, spi.Feature.ROLLBACK_DETECTION: spi.FULL}
    return CrookedPlugin("names-one-pipeline-of-a-rollback", features, table=NamingTable)
