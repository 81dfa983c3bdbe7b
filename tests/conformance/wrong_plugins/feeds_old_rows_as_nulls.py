"""Rows that went are read from files whose columns are no longer the table's: what another type has is fed as null."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from crooked import CrookedPlugin
from richer import RicherSource, richer

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_feed.py::test_each_range_is_the_sum_of_its_versions"
SAYS = "rows that went, of files from before and after columns were changed: "


class StrictSource(RicherSource):
    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        if split.payload.kind != "-D":
            yield from super().read(split, schema)
            return
        with pa.ipc.open_file(str(Path(self.table.location) / split.payload.path)) as file:
            for batch in map(file.get_batch, range(file.num_record_batches)):
                told = batch.append_column(spi.CHANGE_TYPE, pa.array(["-D"] * len(batch), pa.string()))
                same = [field.name for field in schema if field in list(told.schema)]
                yield kit.conform(told.select(same), schema)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return richer("feeds-old-rows-as-nulls", source=StrictSource)
