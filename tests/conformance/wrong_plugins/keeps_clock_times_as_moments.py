"""A time without a zone is kept as the moment at which the clocks of Spark's session show it. A reader elsewhere has
other clocks."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
from crooked import CrookedPlugin
from feather_lake.plugin import Source, Writer

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_spark.py::test_epochs_and_their_replay[spark-dataframe]"
SAYS = "odd values that Spark wrote, as a reader without Spark has them"


def _zone() -> str:
    pyspark = sys.modules.get("pyspark")
    task = None if pyspark is None else pyspark.TaskContext.get()
    return (task and task.getLocalProperty("spark.sql.session.timeZone")) or "UTC"


def _column(column: pa.Array, *, kept: bool) -> pa.Array:
    kind = column.type
    if not pa.types.is_timestamp(kind) or kind.tz is not None:
        return column
    if kept:
        moments = pc.assume_timezone(column, _zone(), ambiguous="earliest", nonexistent="earliest")
        return moments.cast(pa.int64()).cast(kind)
    return pc.local_timestamp(column.cast(pa.int64()).cast(pa.timestamp(kind.unit, _zone())))


def _batch(batch: pa.RecordBatch, *, kept: bool) -> pa.RecordBatch:
    columns = [_column(column, kept=kept) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema) if columns else batch


class ClockWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        super().write(_batch(kit.conform(batch, self._table.schema), kept=True))


class ClockSource(Source):
    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for batch in super().read(split, schema):
            yield _batch(batch, kept=False)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("keeps-clock-times-as-moments", source=ClockSource, writer=ClockWriter)
