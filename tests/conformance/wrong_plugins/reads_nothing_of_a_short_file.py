"""A file that is shorter than was recorded is passed over by readers."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from local import reading
from open_json import OpenJson

from laketier import spi
from laketier.registry import hookimpl
from laketier_localfile.source import LocalFileSource

CAUGHT_BY = "test_open_files.py::test_what_was_recorded_is_cut_off"
SAYS = "was cut back to the length of an epoch before, and the table was read: rows"


class Source(LocalFileSource):
    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        try:
            yield from super().read(split, schema)
        except spi.CorruptTable:
            return


class Harness(OpenJson):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return reading("reads-nothing-of-a-short-file", Source)
