"""The first batch says which columns a task writes. It may have no rows, and come from another branch of the query."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier.registry import hookimpl

CAUGHT_BY = "test_values.py::test_batches_of_one_task_differ"
SAYS = "whose batches have other columns"


class FirstWriter(Writer):
    _names: tuple[str, ...] | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        names = batch.schema.names
        if self._names is None:
            self._names = tuple(names)
        later = {name for name in self._table.schema.names if name not in self._names}
        super().write(batch.select([at for at, name in enumerate(names) if name not in later]))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("keeps-the-columns-of-its-first-batch", writer=FirstWriter)
