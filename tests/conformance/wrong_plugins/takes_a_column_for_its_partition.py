"""What a split's partition is called tells which column it is: the day of one column is read as another one, which has
the name that the format gives to such days."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from forgetful import forgetful, replace

from laketier import spi
from laketier.registry import hookimpl
from laketier_localfile.plugin import LocalFilePlugin
from laketier_localfile.source import LocalFileSource

CAUGHT_BY = "test_names.py::test_a_column_with_the_name_of_a_partition[a-column]"
SAYS = "with a column 'at_day'"


class PartedSource(LocalFileSource):
    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        texts = {name: text for name, text in split.partition if name in schema.names and text is not None}
        for batch in super().read(split, schema):
            columns = [
                pa.array([texts[field.name]] * len(batch), field.type)
                if field.name in texts and pa.types.is_string(field.type)
                else batch.column(field.name)
                for field in schema
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema) if columns else batch


class TakingPlugin(LocalFilePlugin):
    """Takes such a table, which local files refuse."""

    def create_storage(self, config: spi.LakeStorageConfig) -> spi.LakeStorage:
        storage: Any = super().create_storage(config)
        sources = storage.source
        replace(storage, "source", lambda table: PartedSource(sources(table).table))
        return storage  # type: ignore[no-any-return]


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    named, check = "takes-a-column-for-its-partition", "laketier_localfile.table.check_partitioning"
    return forgetful(TakingPlugin, named, catalog=check)
