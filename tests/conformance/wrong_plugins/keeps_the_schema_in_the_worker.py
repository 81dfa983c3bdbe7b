"""A process keeps the columns of a table that it wrote to, and a writer takes these of a batch. The driver forgets them
when it alters the table. Its workers do not."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_executors.py::test_a_worker_outlives_what_it_knows"
SAYS = "after the driver added a column"

_COLUMNS: dict[str, list[str]] = {}


class KeepingWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        table = self._table.schema.names
        known = _COLUMNS.setdefault(self._table.table_uuid, table)
        unknown = [name for name in table if name not in known]
        super().write(batch.drop_columns([name for name in unknown if name in batch.schema.names]))


class Catalog(kit.ManifestCatalog):
    def alter_table(self, path: spi.TablePath, *changes: Any, **more: Any) -> spi.TableInfo:
        _COLUMNS.clear()
        return super().alter_table(path, *changes, **more)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("keeps-the-schema-in-the-worker", writer=KeepingWriter, catalog=Catalog)
