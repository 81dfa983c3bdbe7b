"""`os.path.exists` answers no where it could not look: readers, drivers and watermarks then get an older table."""

from __future__ import annotations

import os

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier.kit.manifests import Manifest, ManifestLog
from laketier.registry import hookimpl

CAUGHT_BY = "test_looks.py::test_a_look_at_a_table_fails[driver]"
SAYS = "and who asks for driver, gets no error"


class AskingLog(ManifestLog):
    def head(self) -> tuple[Manifest, bool]:
        number = 0
        while os.path.exists(self.path(number + 1)):
            number += 1
        _, finished = super().head()
        return self.read(number), finished


class AskingTable(FeatherTable):
    def manifests(self) -> ManifestLog:
        return AskingLog.open(self.location, self.layout)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("asks-whether-it-exists", table=AskingTable)
