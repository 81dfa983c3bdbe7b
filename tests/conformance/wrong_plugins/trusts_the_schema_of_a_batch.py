"""A batch of the table's own schema is written as it is. Its id is called not null in it, and has nulls."""

from __future__ import annotations

from importlib import import_module
from unittest.mock import patch

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier.registry import hookimpl

CAUGHT_BY = "test_writer.py::test_what_does_not_fit_is_refused[null-in-what-is-called-not-null]"
SAYS = "a batch that does not fit is written: expected IncompatibleData, and no error was raised"


class TrustingWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        if not batch.schema.equals(self._table.schema):
            super().write(batch)
            return
        with patch.object(import_module("laketier.kit.conform"), "refuse_nulls", lambda _: None):
            super().write(batch)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("trusts-the-schema-of-a-batch", writer=TrustingWriter)
