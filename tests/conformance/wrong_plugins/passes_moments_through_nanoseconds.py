"""Moments go through pandas, which counts nanoseconds in 64 bits: from 1677 to 2262."""

from __future__ import annotations

import pyarrow as pa
from changing import ChangingWriter
from crooked import CrookedPlugin

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_values.py::test_time_does_not_end_with_pythons[moments]"
SAYS = "moments beyond those of Python, as numbers"


class NanosecondWriter(ChangingWriter):
    def change(self, column: pa.Array) -> pa.Array:
        if not pa.types.is_timestamp(column.type) or column.type.unit == "ns":
            return column
        factor = {"s": 10**9, "ms": 10**6, "us": 10**3}[column.type.unit]
        counted = [
            None if each is None else (each * factor + 2**63) % 2**64 - 2**63
            for each in column.cast(pa.int64()).to_pylist()
        ]
        return pa.array([None if each is None else each // factor for each in counted], pa.int64())


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("passes-moments-through-nanoseconds", writer=NanosecondWriter)
