"""A moment is kept to the microsecond. One within a list goes another way, which knows milliseconds."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from within import within

from laketier.registry import hookimpl

CAUGHT_BY = "test_types.py::test_nested[list-of-moments]"
SAYS = "values of list<item: timestamp[us]> come back as written: expected"


def _cut(values: pa.Array) -> pa.Array:
    if values.type != pa.timestamp("us"):
        return values
    return values.cast(pa.timestamp("ms"), safe=False).cast(values.type)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return within("cuts-moments-within-lists", _cut)
