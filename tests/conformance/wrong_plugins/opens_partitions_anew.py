"""Of many partitions the files of some are closed to save memory. Rows that come later open them anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import pyarrow as pa
from richer import RicherWriter, richer

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_scale.py::test_many_rows_in_several_files_of_one_task"
SAYS = "the files of each partition count its rows"


class ReopeningWriter(RicherWriter):
    most: ClassVar[int] = 1 << 16

    def _file_of(self, number: int, names: Sequence[str], values: tuple[Any, ...], rows: pa.Table) -> spi.StagedFile:
        opened: dict[tuple[Any, ...], int] = self.__dict__.setdefault("_opened", {})
        return super()._file_of(opened.setdefault(values, len(opened)), names, values, rows)

    def complete(self) -> spi.WriteResult:
        result = super().complete()
        return replace(result, files=tuple({file.path: file for file in result.files}.values()))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return richer("opens-partitions-anew", writer=ReopeningWriter)
