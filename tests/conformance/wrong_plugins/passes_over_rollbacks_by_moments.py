"""The rows of a moment are those of the newest snapshot that a writer had made by then. After somebody took the table
back, the rows that they took away are there again."""

from __future__ import annotations

from crooked import CrookedPlugin
from feather_lake.plugin import FEATURES, Source
from looks_for_rollbacks_in_the_newest_commit import ROLLBACK, NewestTable
from looks_for_rollbacks_in_the_newest_commit import Harness as RollingBackHarness

from laketier import spi
from laketier.kit.manifests import ManifestSnapshot
from laketier.registry import hookimpl

CAUGHT_BY = "test_capabilities.py::test_a_foreign_rollback_is_noticed"
SAYS = "rows of a moment after a table was taken back"


class Harness(RollingBackHarness):
    pass


class MomentarySource(Source):
    def _snapshot(self, request: spi.ScanRequest) -> ManifestSnapshot:
        found = super()._snapshot(request)
        if request.as_of is None or found.manifest.kind != ROLLBACK:
            return found
        return super()._snapshot(spi.ScanRequest(snapshot_id=found.manifest.number - 1))


@hookimpl
def laketier_format() -> CrookedPlugin:
    features = {**FEATURES, spi.Feature.ROLLBACK_DETECTION: spi.FULL}
    return CrookedPlugin("passes-over-rollbacks-by-moments", features, table=NewestTable, source=MomentarySource)
