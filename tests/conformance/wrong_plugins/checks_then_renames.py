"""Whether a manifest's name is free is asked first; then a rename takes it, whoever has it by now."""

from __future__ import annotations

import os
import uuid

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier import spi
from laketier.kit.manifests import Manifest, ManifestLog
from laketier.registry import hookimpl

CAUGHT_BY = "test_effects.py::test_a_rival_before_each_effect"
SAYS = "rows of the rival: expected"


class CheckingLog(ManifestLog):
    def append(self, manifest: Manifest) -> Manifest:
        path, document = self.path(manifest.number), manifest.encode()
        if path.exists():
            raise spi.Conflict("another writer was first", where=str(path))
        temporary = path.with_name(f".{uuid.uuid4().hex}.tmp")
        temporary.write_bytes(document)
        os.replace(temporary, path)
        return Manifest.decode(document, path, self.layout)


class CheckingTable(FeatherTable):
    def manifests(self) -> ManifestLog:
        return CheckingLog.open(self.location, self.layout)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("checks-then-renames", table=CheckingTable)
