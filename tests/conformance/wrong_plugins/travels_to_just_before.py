"""The snapshot of a moment is the last one that was made before it: one that was made just then is not."""

from __future__ import annotations

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier.kit.manifests import Manifest, ManifestLog
from laketier.registry import hookimpl

CAUGHT_BY = "test_history.py::test_each_can_be_read"
SAYS = "the moment at which it was committed"


class ExclusiveLog(ManifestLog):
    def as_of(self, moment: int, head: Manifest) -> Manifest:
        return super().as_of(moment - 1, head)


class ExclusiveTable(FeatherTable):
    def manifests(self) -> ManifestLog:
        return ExclusiveLog.open(self.location, self.layout)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("travels-to-just-before", table=ExclusiveTable)
