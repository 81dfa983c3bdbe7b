"""Files hold moments of UTC, and Python takes a moment without a zone for one of the zone where the process runs."""

from __future__ import annotations

from datetime import UTC

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier.registry import hookimpl

CAUGHT_BY = "test_surroundings.py::test_moments_of_processes_in_other_zones[clock]"
SAYS = "values of timestamp[us], written in EST5EDT,M3.2.0,M11.1.0, read in"


class LocalWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        columns = [self._in_utc(column) for column in batch.columns]
        super().write(pa.RecordBatch.from_arrays(columns, schema=batch.schema))

    @staticmethod
    def _in_utc(column: pa.Array) -> pa.Array:
        if not pa.types.is_timestamp(column.type) or column.type.tz is not None:
            return column
        moments = [each and each.astimezone(UTC).replace(tzinfo=None) for each in column.to_pylist()]
        return pa.array(moments, column.type)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("takes-clocks-for-local-ones", writer=LocalWriter)
