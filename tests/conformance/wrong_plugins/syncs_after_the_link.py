"""A manifest gets its name first, and is synced then."""

from __future__ import annotations

import os
from pathlib import Path

from crooked import CrookedLog, CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier.kit import durable
from laketier.kit.manifests.log import ManifestLog
from laketier.registry import hookimpl

CAUGHT_BY = "test_power.py::test_nothing_is_torn"
SAYS = "after link warehouse/db/t/_feather_manifests/"


class LateLog(CrookedLog):
    def publish(self, path: Path, data: bytes) -> None:
        temporary = path.with_name(f".{path.name}.tmp")
        try:
            temporary.write_bytes(data)
            os.link(temporary, path)
            durable.fsync_file(path)
            durable.fsync_directory(path.parent)
        finally:
            temporary.unlink(missing_ok=True)


class Late(FeatherTable):
    def manifests(self) -> ManifestLog:
        return LateLog.open(self.location, self.layout)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("syncs-after-the-link", table=Late)
