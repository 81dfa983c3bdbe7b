"""A commit has the time of the host that made it, and the snapshot of a moment is looked for as if these times grew."""

from __future__ import annotations

import time
from dataclasses import replace

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier.kit.manifests import Manifest, ManifestLog
from laketier.registry import hookimpl

CAUGHT_BY = "test_clocks.py::test_rounds_of_hosts_whose_clocks_differ"
SAYS = "the moments of commits never go back"


class DatingLog(ManifestLog):
    def append(self, manifest: Manifest) -> Manifest:
        return super().append(replace(manifest, at=int(time.time() * 1000)))


class DatingTable(FeatherTable):
    def manifests(self) -> ManifestLog:
        return DatingLog.open(self.location, self.layout)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("dates-by-its-own-clock", table=DatingTable)
