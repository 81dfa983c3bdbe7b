"""Row groups are read eight at once, and there is no second time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from local import reading

from laketier import spi
from laketier.registry import hookimpl
from laketier_localfile.file_formats import parquet
from laketier_localfile.source import LocalFileSource

CAUGHT_BY = "test_writer.py::test_a_task_of_many_small_files_or_groups[groups]"
SAYS = "rows of one task of 910 rows, with the options {'row-group-rows': '60'}: expected 910 rows, found 280"
MOST = 8


def few(file: Any, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    groups = list(range(min(MOST, file.num_row_groups)))
    yield from file.iter_batches(columns=list(columns), row_groups=groups)


class ShortSource(LocalFileSource):
    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        with patch.object(parquet, "read_batches", few):
            yield from super().read(split, schema)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return reading("reads-eight-groups", ShortSource)
