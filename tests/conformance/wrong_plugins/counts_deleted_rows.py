"""Rows that others delete are listed beside their file, and readers leave them out. A split still tells the number of
rows that its file was published with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_foreign_maintenance.py::test_rows_that_others_deleted_are_gone"
SAYS = "a split has 4 rows, and tells 5: others deleted some"
DELETED = "deleted.ids"


class Harness:
    """Lists the deleted rows of all files together."""

    def delete_rows(self, storage: spi.LakeStorage, table: spi.TableInfo, ids: Sequence[int]) -> None:
        (Path(table.location) / DELETED).write_text(" ".join(map(str, ids)))


class LeavingSource(Source):
    def gone(self) -> pa.Array:
        listed = Path(self.table.location) / DELETED
        return pa.array([int(each) for each in listed.read_text().split()] if listed.exists() else [], pa.int64())

    def rows_of(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        return super().read(split, schema)

    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        wider = schema if "id" in schema.names else schema.append(pa.field("id", pa.int64()))
        for batch in self.rows_of(split, wider):
            yield batch.filter(pc.invert(pc.is_in(batch["id"], self.gone()))).select(schema.names)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("counts-deleted-rows", source=LeavingSource)
