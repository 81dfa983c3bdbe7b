"""A reader loads a file, and gives the table's batches."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_scale.py::test_memory_of_a_writer_and_of_a_reader"
SAYS = "reading 512 MiB in batches of 4 MiB may take"


class LoadingSource(Source):
    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        yield from list(super().read(split, schema))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("reads-whole-files", source=LoadingSource)
