"""A rollback that is in the history refuses the pipelines of before for ever, whatever was decided about them since."""

from __future__ import annotations

from crooked import CrookedPlugin
from feather_lake.plugin import FEATURES, FeatherTable
from looks_for_rollbacks_in_the_newest_commit import ROLLBACK
from looks_for_rollbacks_in_the_newest_commit import Harness as RollingBack

from laketier import kit, spi
from laketier.kit.manifests.chain import back_from
from laketier.registry import hookimpl

CAUGHT_BY = "test_capabilities.py::test_a_foreign_rollback_is_noticed_after_rounds_of_others"
SAYS = "the pipeline whose rows were taken back is adopted at the epoch that is left, and goes on: expected no error"


class UnforgivingState(kit.ManifestState):
    def watermark(self, pipeline: str) -> spi.Watermark | None:
        for each in back_from(self.manifests, self.head, down_to=0):
            if each.kind == ROLLBACK and pipeline in each.watermarks:
                raise spi.RolledBack("a commit took rows back", where=self.manifests.store.root)
        return super().watermark(pipeline)


class UnforgivingTable(FeatherTable):
    def open(self) -> kit.ManifestState:
        return UnforgivingState(**vars(super().open()))

    def state(self, info: spi.TableInfo) -> kit.ManifestState:
        return UnforgivingState(**vars(super().state(info)))


class Harness(RollingBack):
    pass


@hookimpl
def laketier_format() -> CrookedPlugin:
    features = {**FEATURES, spi.Feature.ROLLBACK_DETECTION: spi.FULL}
    return CrookedPlugin("refuses-what-was-adopted-since", features, table=UnforgivingTable)
