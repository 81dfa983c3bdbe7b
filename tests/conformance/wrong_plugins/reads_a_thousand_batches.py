"""A file's batches are numbered in a list of a fixed length, and what is behind its end is not read."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_writer.py::test_tiny_batches_do_not_become_tiny_files"
SAYS = "rows of tiny batches"
MOST = 1_024


class ShortSource(Source):
    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(super().read(split, schema)):
            if number < MOST:
                yield batch


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("reads-a-thousand-batches", source=ShortSource)
