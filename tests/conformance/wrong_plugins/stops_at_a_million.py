"""A split has a million rows at most, so a reader that has seen so many is done."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_scale.py::test_filters_at_the_edges_of_row_groups[ge]"
SAYS = "1100001 rows are filtered by"


class CappedSource(Source):
    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        seen = 0
        for batch in super().read(split, schema):
            seen += len(batch)
            yield batch
            if seen >= 1_000_000:
                return


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("stops-at-a-million", source=CappedSource)
