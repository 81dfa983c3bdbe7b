"""The driver notes the columns of each table in the module, and a writer looks there. On an executor nobody did, and
those of the batch are taken."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from crooked import CrookedPlugin, CrookedStorage
from feather_lake.plugin import Writer

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_executors.py::test_an_executor_is_on_another_host"
SAYS = "found {'took': 'a column that the table does not have'}"

NOTED: dict[str, pa.Schema] = {}


class AskingWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        schema = NOTED.get(self._table.location, batch.schema)
        descriptor = replace(self._table.descriptor, schema=schema)
        self._table = replace(self._table, descriptor=descriptor)
        super().write(batch)


class NotingStorage(CrookedStorage):
    def tiering_factory(self, table: spi.TableInfo) -> spi.LakeTieringFactory[spi.WriteResult]:  # type: ignore[override]
        NOTED[table.location] = table.schema
        return super().tiering_factory(table)


class NotingPlugin(CrookedPlugin):
    def create_storage(self, config: spi.LakeStorageConfig) -> NotingStorage:
        made = super().create_storage(config)
        return NotingStorage(made.warehouse, made.parts)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return NotingPlugin("asks-the-driver-for-columns", writer=AskingWriter)
