"""Somebody drops a table while a driver opens it. That its files are gone is told as damage, for which a user looks for
a backup."""

from __future__ import annotations

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_dropped.py::test_a_table_is_dropped_beside_a_look[driver]"
SAYS = (
    "by who asks for its driver: expected {'told': {'epoch': 0, 'landed': True, 'landed of nobody': False}} as before"
)


class AlarmedTable(FeatherTable):
    def open(self) -> kit.ManifestState:
        self.manifests()
        try:
            return super().open()
        except spi.TableNotFound as error:
            raise spi.CorruptTable("files of the table are missing", where=str(self.location)) from error


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("calls-a-dropped-table-damaged", table=AlarmedTable)
