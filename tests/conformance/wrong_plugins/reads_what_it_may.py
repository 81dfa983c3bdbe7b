"""A data file of another user, which this one may not open, is passed over with a line in the log."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_looks.py::test_a_look_at_a_table_fails[rows]"
SAYS = "and who asks for rows, gets no error: expected 2 entries, found 2; 1 is other than expected"


class PoliteSource(Source):
    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        try:
            with open(self.table.location / split.payload.path, "rb"):
                pass
        except PermissionError:
            return
        yield from super().read(split, schema)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("reads-what-it-may", source=PoliteSource)
