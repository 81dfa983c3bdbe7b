"""An hour is a whole division, which goes towards zero: the hours before and after 1970 began are one partition."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from local import partitioning_by

from laketier import spi
from laketier.kit.time_spans import ordinals
from laketier.registry import hookimpl

CAUGHT_BY = "test_layout.py::test_a_split_has_one_value_of_a_transform[hour]"
SAYS = "lie in one split, whose hour(key) is told as '1970-01-01-00': expected one value"


def _towards_zero(column: pa.Array, unit: spi.Transform) -> pa.Array:
    if unit is not spi.Transform.HOUR:
        return ordinals(column, unit)
    return pc.divide(column.view(pa.int64()), 3_600_000_000)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return partitioning_by("rounds-hours-towards-zero", "ordinals", _towards_zero)
