"""A manifest is written under another name and linked to its own; the other name stays for ever."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

from crooked import CrookedLog, CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier.kit.durable import fsync_directory
from laketier.kit.manifests import ManifestLog
from laketier.registry import hookimpl

CAUGHT_BY = "test_orphans.py::test_what_went_well_leaves_no_orphans"
SAYS = "the orphans of a table after rounds, a refused commit and an overwrite that went well"


class LitteringLog(CrookedLog):
    def publish(self, path: Path, data: bytes) -> None:
        temporary = path.with_name(f".{uuid.uuid4().hex}.tmp")
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.link(temporary, path)
        fsync_directory(path.parent)


class LitteringTable(FeatherTable):
    def manifests(self) -> ManifestLog:
        return LitteringLog.open(self.location, self.layout)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("leaves-its-temporary-files", table=LitteringTable)
