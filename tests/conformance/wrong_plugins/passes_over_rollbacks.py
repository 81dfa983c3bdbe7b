"""A rollback adds no rows, so who reads the table as a log goes on behind it, and keeps rows that were taken back."""

from __future__ import annotations

from crooked import CrookedPlugin
from feather_lake.plugin import FEATURES
from looks_for_rollbacks_in_the_newest_commit import ROLLBACK
from refuses_what_was_adopted_since import Harness as RollingBack
from refuses_what_was_adopted_since import UnforgivingTable

from laketier import kit, spi
from laketier.kit.manifests.chain import back_from
from laketier.registry import hookimpl

CAUGHT_BY = "test_capabilities.py::test_a_foreign_rollback_is_noticed_after_rounds_of_others"
SAYS = "what came since is read as a log, by who has read rows that were taken back: expected RowsChanged"


class ForwardChanges(kit.ManifestChanges):
    def plan(self, start: int, end: int, *, skip_changes: bool = False) -> spi.ScanPlan:
        manifests = self._manifests()
        newest, _ = manifests.head()
        kinds = {each.kind for each in back_from(manifests, newest, down_to=0) if start <= each.number < end}
        return super().plan(start, end, skip_changes=skip_changes or ROLLBACK in kinds)


class Harness(RollingBack):
    pass


@hookimpl
def laketier_format() -> CrookedPlugin:
    features = {**FEATURES, spi.Feature.ROLLBACK_DETECTION: spi.FULL}
    return CrookedPlugin("passes-over-rollbacks", features, table=UnforgivingTable, changes=ForwardChanges)
