"""Manifests are made by `tempfile`, which lets nobody else read them, and get their names by a link."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from crooked import CrookedLog, CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier.kit import durable
from laketier.registry import hookimpl

CAUGHT_BY = "test_process.py::test_files_are_for_whom_the_mask_says"
SAYS = "under the mask 0027 a group can't read the table: warehouse/db/"


class ClosedLog(CrookedLog):
    def publish(self, path: Path, data: bytes) -> None:
        durable.create_exclusively(path, data)
        os.chmod(path, 0o600)


@dataclass(frozen=True)
class ClosedTable(FeatherTable):
    def manifests(self) -> ClosedLog:
        return ClosedLog.open(self.place, self.layout)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("commits-for-its-user-alone", table=ClosedTable)
