"""A batch without rows is the end, as it is in the protocol that the author knows."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_writer.py::test_slices_and_odd_chunks"
SAYS = "rows of slices: expected 1000 rows, found 1"


class EndingWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        self._ended = getattr(self, "_ended", False) or not len(batch)
        if not self._ended:
            super().write(batch)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("ends-at-a-batch-without-rows", writer=EndingWriter)
