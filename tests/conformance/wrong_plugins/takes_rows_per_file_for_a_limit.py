"""Files have at most so many rows, and what is more of a batch is for the next file, which nobody begins."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from feather_lake.plugin import Writer
from optioned import optioned

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_options.py::test_rows_are_the_same_under_each_option"
SAYS = "made under rows-per-file = 1 is read without it: expected 10 rows, found 2"


@dataclass(frozen=True)
class Options:
    rows_per_file: int = spi.option(1_000_000, "Rows per file, at most.", least=1)


class LimitedWriter(Writer):
    options: Options

    def write(self, batch: pa.RecordBatch) -> None:
        super().write(batch.slice(0, self.options.rows_per_file))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return optioned("takes-rows-per-file-for-a-limit", Options, writer=LimitedWriter)
