"""A manifest gets its name first, and is synced then."""

from __future__ import annotations

import os
from pathlib import Path

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier import spi
from laketier.kit import durable
from laketier.kit.manifests.log import ManifestLog
from laketier.kit.manifests.manifest import Manifest
from laketier.registry import hookimpl

CAUGHT_BY = "test_power.py::test_nothing_is_torn"
SAYS = "after link warehouse/db/t/_feather_manifests/"


def linked_first(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        temporary.write_bytes(data)
        os.link(temporary, path)
        durable.fsync_file(path)
        durable.fsync_directory(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


class LateLog(ManifestLog):
    def append(self, manifest: Manifest) -> Manifest:
        path, document = self.path(manifest.number), manifest.encode()
        try:
            linked_first(path, document)
        except FileExistsError as error:
            raise spi.Conflict("another writer published it", where=str(path)) from error
        return Manifest.decode(document, path, self.layout)


class Late(FeatherTable):
    def manifests(self) -> ManifestLog:
        return LateLog.open(self.location, self.layout)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("syncs-after-the-link", table=Late)
