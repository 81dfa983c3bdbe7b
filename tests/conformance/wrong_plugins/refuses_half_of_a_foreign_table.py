"""It can't read what another tool has marked as deleted, and says so; but to count rows it opens no file."""

from __future__ import annotations

from crooked import CrookedPlugin
from marked_by_others import DELETED_FROM, MarkedSource, deleted_from, marked_by_others, marks_of

from laketier import spi
from laketier.kit.manifests import files_at
from laketier.registry import hookimpl
from laketier_conformance.foreign_tables import READ

CAUGHT_BY = "test_foreign_tables.py::test_a_foreign_table_is_read_as_its_tool_reads_it"
SAYS = "it is read with {'columns': ()}, which the harness says is refused: expected FeatureNotSupported or"


class Harness:
    foreign_tables = {DELETED_FROM: deleted_from(READ)}  # noqa: RUF012 - as an author writes it


class UnwillingSource(MarkedSource):
    def plan(self, request: spi.ScanRequest) -> spi.ScanPlan:
        manifests = self.table.manifests()
        head, _ = manifests.current()
        if request.columns != () and any(map(marks_of, files_at(manifests, head.number))):
            raise spi.IncompatibleTable("another tool has marked rows as deleted", where=str(self.table.location))
        return super().plan(request)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return marked_by_others("refuses-half-of-a-foreign-table", source=UnwillingSource)
