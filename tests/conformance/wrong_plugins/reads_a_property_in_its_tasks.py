"""A number that others left in a property is read by each task, and no driver looked at it."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer
from propertied import ROWS, PropertiedHarness

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_settings.py::test_a_property_that_others_left"
SAYS = "a round after others set the property acme.rows-per-file to '': expected it, or a refusal, found ValueError"


class Harness(PropertiedHarness):
    pass


class CountingWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        int(self._table.descriptor.properties.get(ROWS, "1"))
        super().write(batch)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("reads-a-property-in-its-tasks", writer=CountingWriter)
