"""The rows of a file are those of its last batch: a plus is missing."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_writer.py::test_what_a_result_says"
SAYS = "a result counts the rows of its files, ten in all"


class CountingWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        super().write(batch)
        self._rows = len(batch) or self._rows


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("counts-the-last-batch", writer=CountingWriter)
