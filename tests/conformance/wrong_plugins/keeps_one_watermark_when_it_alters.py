"""A new schema is a commit like any other: it keeps the watermark of the commit before."""

from __future__ import annotations

from dataclasses import replace

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier import spi
from laketier.kit.manifests import Manifest
from laketier.kit.manifests.log import ManifestLog
from laketier.registry import hookimpl

CAUGHT_BY = "test_catalog.py::test_watermarks_survive_a_change"
SAYS = "the outcome of another pipeline's epoch that is run again after a column was added"


class AlteringLog(ManifestLog):
    def append(self, manifest: Manifest) -> Manifest:
        if manifest.kind == "alter":
            manifest = replace(manifest, watermarks=dict(list(manifest.watermarks.items())[-1:]))
        return super().append(manifest)


class AlteringTable(FeatherTable):
    def manifests(self) -> ManifestLog:
        return AlteringLog.open(self.location, self.layout)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("keeps-one-watermark-when-it-alters", table=AlteringTable)
