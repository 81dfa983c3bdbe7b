"""It adds a column, and finds out then that it does not know what another tool has done to the table."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin
from marked_by_others import DELETED_FROM, deleted_from, marked_by_others, marks_of
from richer import RicherTable

from laketier import kit, spi
from laketier.kit.manifests import files_at
from laketier.registry import hookimpl
from laketier_conformance.foreign_tables import ADD_COLUMN

CAUGHT_BY = "test_foreign_tables.py::test_a_column_is_added_to_a_foreign_table"
SAYS = "a column is added: the files of the warehouse after the refusal"


class Harness:
    foreign_tables = {DELETED_FROM: deleted_from(ADD_COLUMN)}  # noqa: RUF012 - as an author writes it


class LateCatalog(kit.ManifestCatalog):
    def alter_table(self, path: spi.TablePath, changes: Sequence[spi.SchemaChange]) -> spi.TableInfo:
        table = super().alter_table(path, changes)
        manifests = RicherTable(self.warehouse / path.database / path.table).manifests()
        head, _ = manifests.current()
        if any(map(marks_of, files_at(manifests, head.number))):
            raise spi.IncompatibleTable("another tool has marked rows as deleted", where=table.location)
        return table


@hookimpl
def laketier_format() -> CrookedPlugin:
    return marked_by_others("refuses-when-it-has-changed-a-foreign-table", catalog=LateCatalog)
