"""A column whose sample has one value alone is written as that value."""

from __future__ import annotations

import pyarrow as pa
from changing import ChangingWriter
from crooked import CrookedPlugin

from laketier.registry import hookimpl

CAUGHT_BY = "test_large_values.py::test_values_that_are_the_same_but_for_one"
SAYS = "the values of a column that are not 7, of 5000 rows, by their row: expected {2711: 8}, found {}"


class SamplingWriter(ChangingWriter):
    def change(self, column: pa.Array) -> pa.Array:
        sample = {repr(column[at]) for at in range(0, len(column), max(1, len(column) // 100))}
        return pa.array([column[0].as_py()] * len(column), column.type) if len(sample) == 1 else column


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("takes-a-sample-for-a-column", writer=SamplingWriter)
