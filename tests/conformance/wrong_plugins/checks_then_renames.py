"""Whether a manifest's name is free is asked first; then a rename takes it, whoever has it by now."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

from crooked import CrookedLog, CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier.kit.manifests import ManifestLog
from laketier.registry import hookimpl

CAUGHT_BY = "test_effects.py::test_a_rival_before_each_effect"
SAYS = "rows of the rival: expected"


class CheckingLog(CrookedLog):
    def publish(self, path: Path, data: bytes) -> None:
        if path.exists():
            raise FileExistsError(path)
        temporary = path.with_name(f".{uuid.uuid4().hex}.tmp")
        temporary.write_bytes(data)
        os.replace(temporary, path)


class CheckingTable(FeatherTable):
    def manifests(self) -> ManifestLog:
        return CheckingLog.open(self.location, self.layout)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("checks-then-renames", table=CheckingTable)
