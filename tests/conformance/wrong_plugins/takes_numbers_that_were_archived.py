"""Old manifests go to an archive, and their names are free again. A commit whose number is that of one of them takes
its name, and was first once more."""

from __future__ import annotations

import os
from pathlib import Path

from crooked import CrookedLog, CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier.kit import durable
from laketier.kit.manifests.log import ManifestLog
from laketier.registry import hookimpl

CAUGHT_BY = "test_depth.py::test_commits_of_others_hide_nothing"
SAYS = "commits of others came since, and a batch is published against the state of before: expected Conflict"
KEPT = 32


class ArchivingLog(CrookedLog):
    def publish(self, path: Path, data: bytes) -> None:
        if len(os.listdir(path.parent)) > int(path.stem.partition(".")[0]) + KEPT:
            return  # its name in the archive is another one
        durable.create_exclusively(path, data)


class ArchivingTable(FeatherTable):
    def manifests(self) -> ManifestLog:
        return ArchivingLog.open(self.place, self.layout)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("takes-numbers-that-were-archived", table=ArchivingTable)
