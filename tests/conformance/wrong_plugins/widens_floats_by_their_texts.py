"""A float of 32 bits is made a double by its text, which has fewer digits: 0.1 becomes the double that is nearest to
0.1, and was another number."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.types as pt
from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_reshape.py::test_wider_types"
SAYS = "'ratio' is [0.1, 0.25, None], expected [0.10000000149011612, 0.25, None]"


class SpellingSource(Source):
    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        path = str(self.table.location / self.table.layout.data_path(split.payload.path, where="a split"))
        with kit.naming_damage(path), pa.ipc.open_file(path) as file:
            for batch in map(file.get_batch, range(file.num_record_batches)):
                there = batch.select([name for name in schema.names if name in batch.schema.names])
                yield kit.conform(_spelled(there, schema), schema)


def _spelled(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    for place, field in enumerate(batch.schema):
        if pt.is_float32(field.type) and pt.is_float64(schema.field(field.name).type):
            texts = batch.column(place).cast(pa.string())
            batch = batch.set_column(place, field.with_type(pa.float64()), texts.cast(pa.float64()))
    return batch


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("widens-floats-by-their-texts", source=SpellingSource)
