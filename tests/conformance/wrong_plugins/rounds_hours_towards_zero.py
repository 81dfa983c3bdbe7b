"""An hour is a whole division, which goes towards zero: the hours before and after 1970 began are one partition."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc
from local import tiering

from laketier import spi
from laketier.kit.time_spans import ordinals
from laketier.registry import hookimpl
from laketier_localfile import partitioning
from laketier_localfile.storage import LocalFileTieringFactory

CAUGHT_BY = "test_layout.py::test_a_split_has_one_value_of_a_transform[hour]"
SAYS = "lie in one split, whose hour(key) is told as '1970-01-01-00': expected one value"


def _towards_zero(column: pa.Array, unit: spi.Transform) -> pa.Array:
    if unit is not spi.Transform.HOUR:
        return ordinals(column, unit)
    return pc.divide(column.view(pa.int64()), 3_600_000_000)


class RoundingWriter(spi.LakeWriter[spi.WriteResult]):
    def __init__(self, own: spi.LakeWriter[spi.WriteResult]) -> None:
        self._own = own

    def write(self, batch: pa.RecordBatch) -> None:
        self._own.write(batch)

    def complete(self) -> Any:
        with patch.object(partitioning, "ordinals", _towards_zero):
            return self._own.complete()

    def abort(self) -> None:
        self._own.abort()


class Factory(LocalFileTieringFactory):
    def create_writer(self, context: spi.WriterInitContext) -> spi.LakeWriter[spi.WriteResult]:
        return RoundingWriter(super().create_writer(context))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return tiering("rounds-hours-towards-zero", Factory)
