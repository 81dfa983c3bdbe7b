"""Values are written in the unit that an option says, and read in the one that the reader's option says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa
import pyarrow.compute as pc
from feather_lake.plugin import Source, Writer
from optioned import optioned

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_options.py::test_rows_are_the_same_under_each_option"
SAYS = "made under values-in = 'hundredths' is read without it: expected 10 rows"


class Unit(Enum):
    ONES = "ones"
    HUNDREDTHS = "hundredths"


@dataclass(frozen=True)
class Options:
    values_in: Unit = spi.option(Unit.ONES, "The unit in which files hold values.")


def _times(batch: pa.RecordBatch, factor: float) -> pa.RecordBatch:
    if "value" not in batch.schema.names:
        return batch
    at = batch.schema.get_field_index("value")
    return batch.set_column(at, batch.schema.field(at), pc.multiply(batch.column(at), factor))


class ScalingWriter(Writer):
    options: Options

    def write(self, batch: pa.RecordBatch) -> None:
        super().write(_times(batch, 100.0 if self.options.values_in is Unit.HUNDREDTHS else 1.0))


class ScalingSource(Source):
    options: Options

    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for batch in super().read(split, schema):
            yield _times(batch, 0.01 if self.options.values_in is Unit.HUNDREDTHS else 1.0)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return optioned("reads-by-its-own-options", Options, writer=ScalingWriter, source=ScalingSource)
