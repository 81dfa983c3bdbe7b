"""Whatever comes of reading a manifest is damage, also rights that are missing and a mount that went away: whoever runs
it puts a backup back."""

from __future__ import annotations

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier import spi
from laketier.kit.manifests import Manifest, ManifestLog
from laketier.registry import hookimpl

CAUGHT_BY = "test_looks.py::test_a_look_at_a_table_fails[rows]"
SAYS = "is told how the table is, though nobody could see it"


class BlamingLog(ManifestLog):
    def head(self) -> tuple[Manifest, bool]:
        try:
            return super().head()
        except OSError as error:
            raise spi.CorruptTable("the newest manifest is damaged", where=str(self.folder)) from error


class BlamingTable(FeatherTable):
    def manifests(self) -> ManifestLog:
        return BlamingLog.open(self.location, self.layout)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("takes-each-error-for-damage", table=BlamingTable)
