"""A manifest is written under its name, and not under another one that is linked when all is there."""

from __future__ import annotations

import os
from pathlib import Path

from crooked import CrookedLog, CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier.kit import durable
from laketier.kit.manifests.log import ManifestLog
from laketier.registry import hookimpl

CAUGHT_BY = "test_power.py::test_nothing_is_torn"
SAYS = "half of the bytes that were not synced): the table can't be read"


class InPlaceLog(CrookedLog):
    def publish(self, path: Path, data: bytes) -> None:
        with open(path, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        durable.fsync_directory(path.parent)


class InPlace(FeatherTable):
    def manifests(self) -> ManifestLog:
        return InPlaceLog.open(self.location, self.layout)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("tears-its-manifest", table=InPlace)
