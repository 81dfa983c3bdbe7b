"""Properties are changed by writing the table's description anew, and watermarks lie in it."""

from __future__ import annotations

from dataclasses import replace

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier import spi
from laketier.kit.manifests import Manifest
from laketier.kit.manifests.log import ManifestLog
from laketier.registry import hookimpl

CAUGHT_BY = "test_properties.py::test_a_property_is_changed_alone"
SAYS = "the watermark after a property was changed"


class ForgettingLog(ManifestLog):
    def append(self, manifest: Manifest) -> Manifest:
        if manifest.kind == "alter" and manifest.metadata is not None:
            before = self.metadata(self.read(manifest.number - 1))
            if before.properties != manifest.metadata.properties:
                manifest = replace(manifest, watermarks={})
        return super().append(manifest)


class ForgettingTable(FeatherTable):
    def manifests(self) -> ManifestLog:
        return ForgettingLog.open(self.location, self.layout)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("forgets-watermarks-with-a-property", table=ForgettingTable)
