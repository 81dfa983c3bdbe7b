"""A column goes through pandas. Where integers have nulls among them, pandas makes floats of all."""

from __future__ import annotations

import pyarrow as pa
from changing import ChangingWriter
from crooked import CrookedPlugin

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_types.py::test_flat[int64]"
SAYS = "values of int64 come back as written"


class PandasWriter(ChangingWriter):
    def change(self, column: pa.Array) -> pa.Array:
        if not pa.types.is_integer(column.type) or not column.null_count:
            return column
        return column.cast(pa.float64(), safe=False).cast(column.type, safe=False)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("passes-integers-with-nulls-through-floats", writer=PandasWriter)
