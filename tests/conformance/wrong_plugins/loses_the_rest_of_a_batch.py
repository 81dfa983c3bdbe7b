"""A batch is written in slices of a thousand rows. How many there are is a division of whole numbers."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_scale.py::test_more_than_a_million_rows_of_one_task"
SAYS = "one task wrote 1100001 rows, and its result and its files count them"


class SlicingWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        slices = max(1, len(batch) // 1000)
        for number in range(slices):
            super().write(batch.slice(number * 1000, 1000))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("loses-the-rest-of-a-batch", writer=SlicingWriter)
