"""A plan opens each file, to see that it is there, and leaves them open for the reader. Its process has lived
long: descriptors are free between those that are open."""

from __future__ import annotations

import os
from pathlib import Path

from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_surroundings.py::test_many_files_are_read_with_few_descriptors"
SAYS = "is needed"
_OPENED = [os.open(os.devnull, os.O_RDONLY) for _ in range(64)]
for _descriptor in _OPENED[:-1]:
    os.close(_descriptor)


class OpeningSource(Source):
    def plan(self, request: spi.ScanRequest) -> spi.ScanPlan:
        plan = super().plan(request)
        opened = [(Path(self.table.location) / split.payload.path).open("rb") for split in plan.splits]
        for file in opened:
            file.close()
        return plan


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("opens-all-files", source=OpeningSource)
