"""What comes for a partition is kept until the task ends, so that each has one file."""

from __future__ import annotations

from typing import ClassVar

from richer import RicherWriter, richer

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_scale.py::test_memory_of_a_writer_of_partitions"
SAYS = "everything is held at once"


class CollectingWriter(RicherWriter):
    most: ClassVar[int] = 1 << 60


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return richer("collects-each-partition", writer=CollectingWriter)
