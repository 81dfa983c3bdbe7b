"""Days of partitions are spelled by `strftime`, which fills no years with zeros where the C library does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from typing import Any

import pyarrow as pa
from crooked import CrookedPlugin
from richer import RicherWriter, richer

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_layout.py::test_partitions[date]"
SAYS = "the partition that a split tells is that of its rows: expected {'0001-01-01'}, found '1-01-01'"


class YearWriter(RicherWriter):
    def _file_of(self, number: int, names: Sequence[str], values: tuple[Any, ...], rows: pa.Table) -> spi.StagedFile:
        file = super()._file_of(number, names, values, rows)
        days = {
            name: f"{value.year}-{value:%m-%d}"
            for name, value in zip(names, values, strict=True)
            if type(value) is date
        }
        return replace(file, partition=tuple((name, days.get(name, text)) for name, text in file.partition))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return richer("spells-years-as-c-does", writer=YearWriter)
