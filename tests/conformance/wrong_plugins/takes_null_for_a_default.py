"""Null has the name that Hive gives it, and that name is null for whoever reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from crooked import CrookedPlugin
from richer import RicherWriter, richer

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_partition_values.py::test_filters_on_partitions[text]"
SAYS = "__HIVE_DEFAULT_PARTITION__"
HIVE = "__HIVE_DEFAULT_PARTITION__"


class HiveWriter(RicherWriter):
    def _file_of(self, number: int, names: Sequence[str], values: tuple[Any, ...], rows: pa.Table) -> spi.StagedFile:
        file = super()._file_of(number, names, values, rows)
        return replace(file, partition=tuple((n, None if t == HIVE else t) for n, t in file.partition))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return richer("takes-null-for-a-default", writer=HiveWriter)
