"""The library that tells the year of a moment has years to 262143, and null for a later one: such a row is in the
partition of nulls, where no filter looks for it."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from local import partitioning_by

from laketier import spi
from laketier.kit.time_spans import ordinals
from laketier.registry import hookimpl

CAUGHT_BY = "test_filters.py::test_moments_that_calendars_do_not_reach[year]"
SAYS = "rows were read by the filter v"


def _to_262143(column: pa.Array, unit: spi.Transform) -> pa.Array:
    found = ordinals(column, unit)
    return pc.if_else(pc.less(pc.abs(found), 262_143 - 1970), found, None) if unit is spi.Transform.YEAR else found


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return partitioning_by("knows-no-far-years", "ordinals", _to_262143)
