"""A column of before is found by its name, or by its place and type: one that got another name and a wider type is
nulls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import pyarrow as pa
from bounds_columns_by_their_former_names import RENAMING, RenamingSource
from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_changes.py::test_rows_from_before_a_column_was_renamed_and_widened[renamed]"
SAYS = "values of it in changes from before a column was renamed and widened"
WIDENING = {**RENAMING, spi.Feature.WIDEN_TYPE: spi.FULL}


class WideningTable(FeatherTable):
    features: ClassVar = WIDENING


class NamedSource(RenamingSource):
    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        path = str(self.table.location / self.table.layout.data_path(split.payload.path, where="a split"))
        with kit.naming_damage(path), pa.ipc.open_file(path) as file:
            for batch in map(file.get_batch, range(file.num_record_batches)):
                named = batch.rename_columns(list(split.payload.names))
                found = []
                for name, before in zip(named.schema.names, batch.schema, strict=True):
                    if name in schema.names and (name == before.name or before.type == schema.field(name).type):
                        found.append(name)
                yield kit.conform(named.select(found), schema)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("finds-columns-by-name-or-place", features=WIDENING, table=WideningTable, source=NamedSource)
