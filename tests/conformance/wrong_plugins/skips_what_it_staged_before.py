"""A task of a stream's batch that was staged before is not written again: a note says so, by the number of the batch
and of its partition. Another query has the same numbers."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_spark.py::test_a_stream_and_the_replay_of_an_epoch"
SAYS = "rows of two streams into one table"


class SkippingWriter(Writer):
    def _note(self) -> Path | None:
        pyspark = sys.modules.get("pyspark")
        if pyspark is None or (task := pyspark.TaskContext.get()) is None:
            return None
        batch = task.getLocalProperty("streaming.sql.batchId")
        return None if batch is None else self._path.parent / f"_staged-{batch}-{task.partitionId()}"

    def write(self, batch: pa.RecordBatch) -> None:
        if (note := self._note()) is None or not note.exists():
            super().write(batch)

    def complete(self) -> spi.WriteResult:
        result = super().complete()
        if result.files and (note := self._note()) is not None:
            note.touch()
        return result


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("skips-what-it-staged-before", writer=SkippingWriter)
