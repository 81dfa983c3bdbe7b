"""A reader closes its file after the last row: one that is given up halfway stays open."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_process.py::test_work_leaves_nothing_open"
SAYS = "open descriptors after 5 more rounds"
OPEN: list[Any] = []


class OpenSource(Source):
    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        file = open(self.table.location / split.payload.path, "rb")  # noqa: SIM115 - the mistake
        OPEN.append(file)
        reader = pa.ipc.open_file(file)
        for batch in map(reader.get_batch, range(reader.num_record_batches)):
            yield kit.conform(batch.select([n for n in schema.names if n in batch.schema.names]), schema)
        file.close()
        OPEN.remove(file)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("keeps-readers-files-open", source=OpenSource)
