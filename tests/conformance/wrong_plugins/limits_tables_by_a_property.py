"""The property is understood for tables of the columns that the author has, and is a limit for those of others."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer
from propertied import ROWS, PropertiedHarness

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_settings.py::test_any_series_under_settings[plain]"
SAYS = "a table, after"


class Harness(PropertiedHarness):
    pass


class LimitedWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        text = self._table.descriptor.properties.get(ROWS)
        is_own = len(batch.schema) <= 3
        super().write(batch if text is None or is_own else batch.slice(0, int(text)))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("limits-tables-by-a-property", writer=LimitedWriter)
