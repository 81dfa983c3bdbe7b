"""Which columns a reader wants is found out once for each schema, and kept by Python's number of it. When the schema is
gone, the number is another one's."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_surroundings.py::test_numbers_of_objects_come_again"
SAYS = "which is used in turn with others, in the columns"
NAMES: dict[int, list[str]] = {}


class KeepingSource(Source):
    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        names = NAMES.setdefault(id(schema), schema.names)
        for batch in super().read(split, pa.schema([field for field in schema if field.name in names])):
            yield kit.conform(batch, schema)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("knows-schemas-by-their-numbers", source=KeepingSource)
