"""The name of a moment's partition is made of its seconds since 1970, as a float."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from numbers_partitions_in_64_bits import SkippingSource
from richer import RicherWriter, richer

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_partition_values.py::test_filters_on_partitions[instant]"
SAYS = "rows were read by the filter key = datetime.datetime(9999, 12, 31, 8, 30, 15, 123459"


class FloatingWriter(RicherWriter):
    def _file_of(self, number: int, names: Sequence[str], values: tuple[Any, ...], rows: pa.Table) -> spi.StagedFile:
        return super()._file_of(number, names, tuple(map(_by_seconds, values)), rows)


def _by_seconds(value: Any) -> Any:
    return datetime.fromtimestamp(value.timestamp(), UTC) if isinstance(value, datetime) and value.tzinfo else value


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return richer("names-partitions-by-floats-of-moments", writer=FloatingWriter, source=SkippingSource)
