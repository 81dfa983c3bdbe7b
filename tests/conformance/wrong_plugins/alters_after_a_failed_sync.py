"""A new schema is synced once more where its first sync failed. The second one has nothing to do, so it succeeds."""

from __future__ import annotations

import uuid
from contextlib import suppress

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier.kit import durable
from laketier.kit.manifests import Manifest, ManifestLog
from laketier.registry import hookimpl

CAUGHT_BY = "test_operations.py::test_an_operation_is_cut_off[alter]"
SAYS = "then a power cut now (nothing is there that was not synced); not synced: the bytes of warehouse/db/t/"


class StubbornLog(ManifestLog):
    def append(self, manifest: Manifest) -> Manifest:
        if manifest.kind != "alter":
            return super().append(manifest)
        path, document = self.path(manifest.number), manifest.encode()
        temporary = path.with_name(f".{uuid.uuid4().hex}.tmp")
        temporary.write_bytes(document)
        with suppress(OSError):
            durable.fsync_file(temporary)
        durable.fsync_file(temporary)
        path.hardlink_to(temporary)
        durable.fsync_directory(path.parent)
        temporary.unlink()
        return Manifest.decode(document, path, self.layout)


class StubbornTable(FeatherTable):
    def manifests(self) -> ManifestLog:
        return StubbornLog.open(self.location, self.layout)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("alters-after-a-failed-sync", table=StubbornTable)
