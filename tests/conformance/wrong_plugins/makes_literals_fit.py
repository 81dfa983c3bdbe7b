"""A number of a filter becomes one of the column's type: what is too small for it is the least."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from crooked import CrookedPlugin
from sieving import SievingSource, sieving

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_filters.py::test_filters_by_integers_beyond_a_column"
SAYS = "rows of v > -2147483649 on a column of 32 bits"


class Fitting(SievingSource):
    def passing(self, split: spi.LakeSplit, batch: pa.RecordBatch) -> pa.RecordBatch:
        column = split.payload.column
        if column not in batch.schema.names or not pa.types.is_int32(batch[column].type):
            return super().passing(split, batch)
        return batch.filter(pc.greater(batch[column], max(split.payload.number, -(2**31))))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return sieving("makes-literals-fit", Fitting)
