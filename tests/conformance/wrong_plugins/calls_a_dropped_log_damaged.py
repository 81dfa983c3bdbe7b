"""A log without a commit is a damaged one for who asks for its versions, also where somebody dropped the table."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_dropped.py::test_a_table_is_dropped_beside_who_opened_it"
SAYS = "versions are told of a table that was dropped since it was opened: expected TableNotFound"


class StrictChanges(kit.ManifestChanges):
    def versions(self) -> spi.VersionBounds:
        try:
            return super().versions()
        except spi.TableNotFound as error:
            raise spi.CorruptTable("the log has no commit", where=self.source.table.location) from error


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("calls-a-dropped-log-damaged", changes=StrictChanges)
