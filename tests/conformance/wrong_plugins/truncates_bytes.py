"""A text is cut after bytes, as its buffer has them: letters of two bytes that begin alike are one partition."""

from __future__ import annotations

import pyarrow as pa
from local import partitioning_by

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_layout.py::test_a_split_has_one_value_of_a_transform[truncate-text]"
SAYS = "lie in one split, whose truncate(1, key) is told as"


def _cut(column: pa.Array, width: int) -> pa.Array:
    texts = [text if text is None else text.encode()[:width].decode("latin-1") for text in column.to_pylist()]
    return pa.array(texts, column.type)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return partitioning_by("truncates-bytes", "_truncated", _cut)
