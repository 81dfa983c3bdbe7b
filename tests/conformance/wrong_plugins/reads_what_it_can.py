"""A data file that can't be read is passed over: a reader gets fewer rows, and no error."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_looks.py::test_a_look_at_a_table_fails[rows]"
SAYS = "and who asks for rows, gets no error: expected 2 entries"


class LenientSource(Source):
    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        path = self.table.location / split.payload.path
        try:
            path.read_bytes()
        except FileNotFoundError:
            pass  # what is gone is told
        except OSError:
            return
        yield from super().read(split, schema)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("reads-what-it-can", source=LenientSource)
