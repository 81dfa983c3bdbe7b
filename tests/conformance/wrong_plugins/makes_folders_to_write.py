"""A writer makes the folder that its file goes to, also that of a table which somebody dropped meanwhile."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier import kit
from laketier.registry import hookimpl

CAUGHT_BY = "test_stale_states.py::test_a_writer_of_a_table_that_was_dropped"
SAYS = "and the next table of its name is made: expected no error, found IncompatibleTable"


class MakingWriter(Writer):
    def new_file(self, path: Path, schema: pa.Schema) -> kit.OpenFile:
        path.parent.mkdir(parents=True, exist_ok=True)
        return super().new_file(path, schema)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("makes-folders-to-write", writer=MakingWriter)
