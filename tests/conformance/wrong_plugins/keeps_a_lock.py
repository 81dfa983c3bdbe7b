"""A source makes a lock when it reads first, for a library that is not safe in threads. A lock can't be pickled."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import cached_property

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_executors.py::test_reads_of_a_source_leave_it_as_it_is"
SAYS = "cannot pickle '_thread.lock' object"


class LockedSource(Source):
    @cached_property
    def lock(self) -> threading.Lock:
        return threading.Lock()

    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        with self.lock:
            return iter(list(super().read(split, schema)))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("keeps-a-lock", source=LockedSource)
