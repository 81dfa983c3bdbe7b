"""The parts of a task are kept by their values: two moments of a zone whose clock shows both alike are the same key."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pyarrow as pa
from numbers_partitions_in_64_bits import SkippingSource
from richer import RicherWriter, richer

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_partition_values.py::test_filters_on_partitions[instant]"
SAYS = "found []"


class KeepingWriter(RicherWriter):
    def _flush(self) -> None:
        rows = pa.Table.from_batches(self._parts)
        self._parts, self._bytes = [], 0
        names = [field.column for field in self._table.descriptor.partition_by]
        parts: defaultdict[tuple[Any, ...], list[int]] = defaultdict(list)
        for at, values in enumerate(zip(*(rows[name].to_pylist() for name in names), strict=True)):
            parts[values].append(at)
        for values, places in parts.items():
            self._files.append(self._file_of(len(self._files), names, values, rows.take(places)))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return richer("keeps-partitions-by-pythons-moments", writer=KeepingWriter, source=SkippingSource)
