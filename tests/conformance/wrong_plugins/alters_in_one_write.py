"""A new schema is one call of the system: how much of it was written, nobody looks."""

from __future__ import annotations

import os
import uuid

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier.kit import durable
from laketier.kit.manifests import Manifest, ManifestLog
from laketier.registry import hookimpl

CAUGHT_BY = "test_operations.py::test_an_operation_is_cut_off[alter]"
SAYS = "the table can't be read"


class BriefLog(ManifestLog):
    def append(self, manifest: Manifest) -> Manifest:
        if manifest.kind != "alter":
            return super().append(manifest)
        path, document = self.path(manifest.number), manifest.encode()
        temporary = path.with_name(f".{uuid.uuid4().hex}.tmp")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            os.write(descriptor, document)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        path.hardlink_to(temporary)
        durable.fsync_directory(path.parent)
        temporary.unlink()
        return Manifest.decode(document, path, self.layout)


class BriefTable(FeatherTable):
    def manifests(self) -> ManifestLog:
        return BriefLog.open(self.location, self.layout)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("alters-in-one-write", table=BriefTable)
