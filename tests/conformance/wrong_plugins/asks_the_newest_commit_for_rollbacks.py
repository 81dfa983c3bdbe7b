"""Whether rows were taken back is asked of the table as it is by then, also by a state of before. A round that was
planned at that state is told that its rows are gone, and they are not."""

from __future__ import annotations

from crooked import CrookedPlugin
from feather_lake.plugin import FEATURES, FeatherTable
from looks_for_rollbacks_in_the_newest_commit import ROLLBACK
from looks_for_rollbacks_in_the_newest_commit import Harness as RollingBack

from laketier import kit, spi
from laketier.kit.manifests.chain import back_from
from laketier.registry import hookimpl

CAUGHT_BY = "test_capabilities.py::test_a_foreign_rollback_is_noticed"
SAYS = "the watermark of a state from before a rollback, which is asked for it after that: expected no error"


class PresentState(kit.ManifestState):
    def watermark(self, pipeline: str) -> spi.Watermark | None:
        newest, _ = self.manifests.head()
        if any(each.kind == ROLLBACK for each in back_from(self.manifests, newest, down_to=0)):
            raise spi.RolledBack("a commit took rows back", where=self.manifests.store.root)
        return super().watermark(pipeline)


class PresentTable(FeatherTable):
    def open(self) -> kit.ManifestState:
        return PresentState(**vars(super().open()))

    def state(self, info: spi.TableInfo) -> kit.ManifestState:
        return PresentState(**vars(super().state(info)))


class Harness(RollingBack):
    pass


@hookimpl
def laketier_format() -> CrookedPlugin:
    features = {**FEATURES, spi.Feature.ROLLBACK_DETECTION: spi.FULL}
    return CrookedPlugin("asks-the-newest-commit-for-rollbacks", features, table=PresentTable)
