"""A writer collects its batches, and writes one file of them in the end."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_scale.py::test_memory_of_a_writer_and_of_a_reader"
SAYS = "writing 512 MiB in batches of 4 MiB may take"


class HoardingWriter(Writer):
    held: tuple[pa.RecordBatch, ...] = ()

    def write(self, batch: pa.RecordBatch) -> None:
        self.held = (*self.held, batch)

    def complete(self) -> spi.WriteResult:
        for batch in self.held:
            super().write(batch)
        return super().complete()


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("holds-all-rows", writer=HoardingWriter)
