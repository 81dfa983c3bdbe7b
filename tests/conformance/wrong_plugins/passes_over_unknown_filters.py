"""A filter on a column that there is not is nothing that could be pushed down, so it is left out."""

from __future__ import annotations

from dataclasses import replace

from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_filters.py::test_a_name_with_a_dot_is_no_path"
SAYS = "a filter names s.a, and the table has no such column"


class ForgivingSource(Source):
    def plan(self, request: spi.ScanRequest) -> spi.ScanPlan:
        names = self.table.open().metadata.schema.names
        known = tuple(f for f in request.filters if not isinstance(f, spi.Leaf) or f.column in names)
        return super().plan(replace(request, filters=known))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("passes-over-unknown-filters", source=ForgivingSource)
