"""A manifest never changes once it has its name, so each process reads it once. A backup that is put back gives its
name to another one."""

from __future__ import annotations

from typing import ClassVar

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier.kit.manifests.log import ManifestLog
from laketier.kit.manifests.manifest import Manifest
from laketier.registry import hookimpl

CAUGHT_BY = "test_torn.py::test_a_backup_is_put_back_and_goes_on"
SAYS = "One that knew nothing was asked for the same (tell): expected that it is refused, too, and found"


class RememberingLog(ManifestLog):
    seen: ClassVar[dict[str, Manifest]] = {}

    def read(self, number: int) -> Manifest:
        name = str(self.path(number))
        if name not in self.seen:
            self.seen[name] = super().read(number)
        return self.seen[name]


class RememberingTable(FeatherTable):
    def manifests(self) -> ManifestLog:
        return RememberingLog.open(self.place, self.layout)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("remembers-manifests", table=RememberingTable)
