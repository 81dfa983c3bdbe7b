"""Rows are synced, and a new schema is not: it is only some bytes."""

from __future__ import annotations

import uuid

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier.kit.manifests import Manifest, ManifestLog
from laketier.registry import hookimpl

CAUGHT_BY = "test_operations.py::test_an_operation_is_cut_off[alter]"
SAYS = "alter, a power cut after link"


class LightLog(ManifestLog):
    def append(self, manifest: Manifest) -> Manifest:
        if manifest.kind != "alter":
            return super().append(manifest)
        path, document = self.path(manifest.number), manifest.encode()
        temporary = path.with_name(f".{uuid.uuid4().hex}.tmp")
        temporary.write_bytes(document)
        path.hardlink_to(temporary)
        temporary.unlink()
        return Manifest.decode(document, path, self.layout)


class LightTable(FeatherTable):
    def manifests(self) -> ManifestLog:
        return LightLog.open(self.location, self.layout)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("alters-without-a-sync", table=LightTable)
