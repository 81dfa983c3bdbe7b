"""What the table was at a moment is read from the manifest of that time. That it is of the history that the newest one
ends, nobody asks: a backup was put back once, and this one is of what came before."""

from __future__ import annotations

from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import spi
from laketier.kit.manifests import ManifestSnapshot
from laketier.registry import hookimpl

CAUGHT_BY = "test_older_files.py::test_a_file_of_a_history_that_was_taken_back"
SAYS = "is of a history that was taken back: rows of the moment of snapshot 2, which are told and not refused"


class TrustingSource(Source):
    def _snapshot(self, request: spi.ScanRequest) -> ManifestSnapshot:
        if request.as_of is None:
            return super()._snapshot(request)
        manifests = self.table.manifests()
        head, settled = manifests.current()
        return ManifestSnapshot(manifests, head, manifests.as_of(request.as_of, head), settled)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("trusts-older-moments", source=TrustingSource)
