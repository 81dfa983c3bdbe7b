"""The value of a partition is a name of a folder, so a hundred letters of it are kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from richer import RicherWriter, richer

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_partition_values.py::test_filters_on_partitions[text]"
SAYS = "the partition that a split tells, whose rows have ['xxxxxxxxxxxx"


class CuttingWriter(RicherWriter):
    def _file_of(self, number: int, names: Sequence[str], values: tuple[Any, ...], rows: pa.Table) -> spi.StagedFile:
        file = super()._file_of(number, names, values, rows)
        return replace(file, partition=tuple((name, text and text[:100]) for name, text in file.partition))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return richer("cuts-values-of-partitions", writer=CuttingWriter)
