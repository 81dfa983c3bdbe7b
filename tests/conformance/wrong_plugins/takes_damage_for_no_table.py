"""A folder is a table if its `table.json` can be read. One that can't be is none, as of somebody else's folders."""

from __future__ import annotations

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier import spi
from laketier.kit.manifests.log import ManifestLog
from laketier.registry import hookimpl

CAUGHT_BY = "test_damage.py::test_each_file_is_written_over"
SAYS = "an error that says that there is no table, where whoever asks makes one anew: TableNotFound"


class LookingTable(FeatherTable):
    def manifests(self) -> ManifestLog:
        try:
            return super().manifests()
        except spi.CorruptTable as error:
            raise spi.TableNotFound("there is no table", where=str(self.location)) from error


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("takes-damage-for-no-table", table=LookingTable)
