"""A writer refuses nulls of columns that are not null. It does not look inside of structs, lists and maps."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer
from forgets_inner_not_nulls import nullable

from laketier import kit
from laketier.registry import hookimpl

CAUGHT_BY = "test_types.py::test_not_null_inside_of_a_type"
SAYS = "which is not null, is written: expected IncompatibleData, and no error was raised"


class ShallowWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        loose = pa.schema([field.with_type(nullable(field.type)) for field in self._table.schema])
        rows = kit.conform(batch, loose)
        self._file = self._file or self.new_file(self._path, loose)
        self._file.write_batch(rows)
        self._rows += len(rows)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("takes-inner-nulls", writer=ShallowWriter)
