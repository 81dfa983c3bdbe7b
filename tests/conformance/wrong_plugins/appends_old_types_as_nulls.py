"""Changes are read with a reader of their own. It takes the columns whose type is the table's, and makes nulls of the
others, as it does for columns that came later."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from crooked import CrookedPlugin
from richer import FedFile, RicherSource, richer

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_changes.py::test_rows_have_the_types_that_the_table_has_now"
SAYS = "values of changes from before columns were widened: "


class StrictSource(RicherSource):
    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        if split.payload.kind != "appended":
            yield from super().read(split, schema)
            return
        with pa.ipc.open_file(str(Path(self.table.location) / split.payload.path)) as file:
            for batch in map(file.get_batch, range(file.num_record_batches)):
                same = [field.name for field in schema if field in list(batch.schema)]
                yield kit.conform(batch.select(same), schema)


class StrictChanges(kit.ManifestChanges):
    def plan(self, start: int, end: int, *, skip_changes: bool = False) -> spi.ScanPlan:
        plan = super().plan(start, end, skip_changes=skip_changes)
        splits = [replace(split, payload=FedFile(split.payload.path, "appended")) for split in plan.splits]
        return replace(plan, splits=tuple(splits))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return richer("appends-old-types-as-nulls", source=StrictSource, changes=StrictChanges)
