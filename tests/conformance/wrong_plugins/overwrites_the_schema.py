"""An overwrite begins with the table as it was made: columns that came later are gone with the rows."""

from __future__ import annotations

from dataclasses import replace

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier.kit.manifests import Manifest, ManifestLog
from laketier.registry import hookimpl

CAUGHT_BY = "test_overwrite.py::test_the_table_stays_the_same"
SAYS = "the columns of a table after an overwrite"


class FirstLog(ManifestLog):
    def append(self, manifest: Manifest) -> Manifest:
        return super().append(replace(manifest, metadata_at=0) if manifest.kind == "overwrite" else manifest)


class FirstTable(FeatherTable):
    def manifests(self) -> ManifestLog:
        return FirstLog.open(self.location, self.layout)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("overwrites-the-schema", table=FirstTable)
