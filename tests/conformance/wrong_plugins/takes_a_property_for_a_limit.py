"""Files have at most so many rows as a property of the table says, and nobody begins the next one."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer
from propertied import ROWS, PropertiedHarness

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_settings.py::test_rows_are_the_same_under_each_property"
SAYS = "a read under acme.rows-per-file = '1': expected"


class Harness(PropertiedHarness):
    pass


class LimitedWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        text = self._table.descriptor.properties.get(ROWS)
        super().write(batch if text is None else batch.slice(0, int(text)))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("takes-a-property-for-a-limit", writer=LimitedWriter)
