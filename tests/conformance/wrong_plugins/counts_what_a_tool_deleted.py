"""Rows are counted by what each file tells of itself, also those that another tool has marked as deleted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
from crooked import CrookedPlugin
from marked_by_others import ForeignHarness, MarkedFile, MarkedSource, marked_by_others

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_foreign_tables.py::test_a_foreign_table_is_read_as_its_tool_reads_it"
SAYS = "the number of rows that are read without a column"


class Harness(ForeignHarness):
    pass


class CountingSource(MarkedSource):
    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        yield from super().read(
            split if len(schema) else replace(split, payload=MarkedFile(split.payload.path)), schema
        )


@hookimpl
def laketier_format() -> CrookedPlugin:
    return marked_by_others("counts-what-a-tool-deleted", source=CountingSource)
