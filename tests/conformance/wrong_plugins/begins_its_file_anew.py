"""A file is closed at a million rows. The next one has the same name, which holds the attempt only."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier.registry import hookimpl

CAUGHT_BY = "test_scale.py::test_more_than_a_million_rows_of_one_task"
SAYS = "each is read once"


class RollingWriter(Writer):
    in_file = 0

    def write(self, batch: pa.RecordBatch) -> None:
        if self._file is not None and self.in_file + len(batch) > 1_000_000:
            self._file.close()
            self._file, self.in_file = None, 0
        self.in_file += len(batch)
        super().write(batch)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("begins-its-file-anew", writer=RollingWriter)
