"""All reads of a process go by one cursor, as the author's database gave one for each connection."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_executors.py::test_reads_of_a_source_leave_it_as_it_is"
SAYS = "rows of splits that are read at once, and each of them twice: expected 20 rows, found"
_CURSORS: dict[str, Iterator[pa.RecordBatch]] = {}


class CursorSource(Source):
    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        _CURSORS["only"] = super().read(split, schema)
        return iter(lambda: next(_CURSORS["only"], None), None)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("reads-by-one-cursor", source=CursorSource)
