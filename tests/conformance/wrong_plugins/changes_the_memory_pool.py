"""Arrow's memory is the system's, as the author's tool for leaks can't see another one."""

from __future__ import annotations

import pyarrow as pa
from at_work import when_reading
from crooked import CrookedPlugin

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_process.py::test_work_changes_no_settings"
SAYS = "the memory pool of Arrow"


def act() -> None:
    pa.set_memory_pool(pa.system_memory_pool())


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("changes-the-memory-pool", source=when_reading(act))
