"""Maps are read as Python's dictionaries, in which a key is there once."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_values.py::test_maps_keep_each_entry"
SAYS = "the entries of maps"


class DictSource(Source):
    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for batch in super().read(split, schema):
            columns = [through_dicts(c) if pa.types.is_map(c.type) else c for c in batch.columns]
            yield pa.RecordBatch.from_arrays(columns, schema=schema) if columns else batch


def through_dicts(column: pa.Array) -> pa.Array:
    return pa.array([None if each is None else list(dict(each).items()) for each in column.to_pylist()], column.type)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("reads-maps-through-dictionaries", source=DictSource)
