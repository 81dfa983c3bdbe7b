"""Its own writer writes a file anew without the rows that are deleted, so it looks for no marks of another tool."""

from __future__ import annotations

from crooked import CrookedPlugin
from marked_by_others import ForeignHarness, MarkedSource, marked_by_others

from laketier.kit.manifests import FileEntry
from laketier.registry import hookimpl

CAUGHT_BY = "test_foreign_tables.py::test_a_foreign_table_is_read_as_its_tool_reads_it"
SAYS = "(with rows that are marked as deleted): rows that are read for the first time"


class Harness(ForeignHarness):
    pass


class UnmarkedSource(MarkedSource):
    def deleted(self, entry: FileEntry) -> tuple[int, ...]:
        return ()


@hookimpl
def laketier_format() -> CrookedPlugin:
    return marked_by_others("brings-back-what-a-tool-deleted", source=UnmarkedSource)
