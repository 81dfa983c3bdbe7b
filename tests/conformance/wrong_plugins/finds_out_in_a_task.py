"""A number goes to the writer as it is, whose header has 32 bits for it: each task fails, and no driver told why."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import pyarrow as pa
from feather_lake.plugin import Writer
from optioned import optioned

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_options.py::test_rows_are_the_same_under_each_option"
SAYS = "which no driver refused: expected no error"


@dataclass(frozen=True)
class Options:
    page_bytes: int = spi.option(65_536, "Bytes per page.", least=1)


class PagedWriter(Writer):
    options: Options

    def write(self, batch: pa.RecordBatch) -> None:
        struct.pack("<I", self.options.page_bytes)
        super().write(batch)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return optioned("finds-out-in-a-task", Options, writer=PagedWriter)
