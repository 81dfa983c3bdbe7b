"""Commits whose clock stands still share a moment. Time travel to it finds the first of them, and not the last."""

from __future__ import annotations

from dataclasses import replace

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier import spi
from laketier.kit.manifests import Manifest, ManifestLog
from laketier.registry import hookimpl

CAUGHT_BY = "test_clocks.py::test_rounds_of_hosts_whose_clocks_differ"
SAYS = "clocks differ, as of its newest commit: expected"


class SharingLog(ManifestLog):
    def append(self, manifest: Manifest) -> Manifest:
        head, _ = self.head()
        return super().append(replace(manifest, at=max(spi.host_time(), head.at)))

    def as_of(self, moment: int, head: Manifest) -> Manifest:
        found = super().as_of(moment, head)
        while found.number and self.at(found.number - 1, head).at == found.at:
            found = self.at(found.number - 1, head)
        return found


class SharingTable(FeatherTable):
    def manifests(self) -> ManifestLog:
        return SharingLog.open(self.location, self.layout)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("travels-to-the-first-of-a-moment", table=SharingTable)
