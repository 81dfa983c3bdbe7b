"""The manifest of an append is synced before it gets its name; that of a new schema is only synced after it."""

from __future__ import annotations

import uuid

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier.kit import durable
from laketier.kit.manifests import Manifest
from laketier.kit.manifests.log import ManifestLog
from laketier.registry import hookimpl

CAUGHT_BY = "test_operations.py::test_an_operation_is_cut_off[alter]"
SAYS = "alter, a power cut after link"


class LateLog(ManifestLog):
    def append(self, manifest: Manifest) -> Manifest:
        if manifest.kind != "alter":
            return super().append(manifest)
        path, document = self.path(manifest.number), manifest.encode()
        temporary = path.with_name(f".{uuid.uuid4().hex}.tmp")
        temporary.write_bytes(document)
        path.hardlink_to(temporary)
        durable.fsync_file(path)
        durable.fsync_directory(path.parent)
        temporary.unlink()
        return Manifest.decode(document, path, self.layout)


class LateTable(FeatherTable):
    def manifests(self) -> ManifestLog:
        return LateLog.open(self.location, self.layout)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("syncs-a-schema-later", table=LateTable)
