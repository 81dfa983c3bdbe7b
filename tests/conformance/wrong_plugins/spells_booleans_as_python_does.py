"""Values of partitions are written as Python's `str` has them, so those of booleans begin with a capital letter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from crooked import CrookedPlugin
from richer import RicherWriter, richer

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_layout.py::test_partitions[bool]"
SAYS = "the partition that a split tells is that of its rows: expected {'true'}, found 'True'"


class SpellingWriter(RicherWriter):
    def _file_of(self, number: int, names: Sequence[str], values: tuple[Any, ...], rows: pa.Table) -> spi.StagedFile:
        file = super()._file_of(number, names, values, rows)
        spelt = [
            str(value) if isinstance(value, bool) else text
            for value, (_, text) in zip(values, file.partition, strict=True)
        ]
        return replace(file, partition=tuple(zip(names, spelt, strict=True)))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return richer("spells-booleans-as-python-does", writer=SpellingWriter)
