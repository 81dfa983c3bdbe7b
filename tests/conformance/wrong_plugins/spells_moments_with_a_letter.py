"""Moments in partitions are written by `isoformat`, with a T between day and time, and those of others without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import pyarrow as pa
from crooked import CrookedPlugin
from richer import RicherWriter, richer

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_layout.py::test_partitions[timestamp]"
SAYS = "the partitions that a result names, in canonical text"


class SpellingWriter(RicherWriter):
    def _file_of(self, number: int, names: Sequence[str], values: tuple[Any, ...], rows: pa.Table) -> spi.StagedFile:
        file = super()._file_of(number, names, values, rows)
        spelt = [
            text.replace(" ", "T") if isinstance(value, datetime) and text else text
            for value, (_, text) in zip(values, file.partition, strict=True)
        ]
        return replace(file, partition=tuple(zip(names, spelt, strict=True)))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return richer("spells-moments-with-a-letter", writer=SpellingWriter)
