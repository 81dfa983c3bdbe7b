"""A reader finds columns by a cleaned form of their names, as the engine below takes letters, digits and _ only."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_names.py::test_columns_with_odd_names"
SAYS = "columns with odd names come back as written"


def clean(name: str) -> str:
    return re.sub(r"\W", "_", name)


class CleaningSource(Source):
    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        path = self.table.location / self.table.layout.data_path(split.payload.path, where="a split")
        with pa.ipc.open_file(str(path)) as file:
            for batch in map(file.get_batch, range(file.num_record_batches)):
                found = {clean(name): batch.column(name) for name in batch.schema.names}
                columns = [found[clean(name)] for name in schema.names]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("cleans-column-names", source=CleaningSource)
