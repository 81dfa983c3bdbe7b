"""A data file that is gone was compacted by somebody, so its reader is told of a conflict."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from crooked import CrookedPlugin, Source

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_torn.py::test_a_file_of_the_newest_commit_is_damaged[gone]"
SAYS = "is told by no error for damage but by a read: Conflict"


class ContestedSource(Source):
    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        try:
            yield from super().read(split, schema)
        except spi.CorruptTable as error:
            raise spi.Conflict("a file was compacted meanwhile", fix="Read again.") from error


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("calls-a-missing-file-a-conflict", source=ContestedSource)
