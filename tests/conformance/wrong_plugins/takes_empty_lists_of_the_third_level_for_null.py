"""Levels of repetition are counted right for lists of lists, and one short below."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from changing import ChangingWriter
from crooked import CrookedPlugin

from laketier.registry import hookimpl

CAUGHT_BY = "test_large_values.py::test_nothing_on_the_inner_levels"
SAYS = "what is null or empty within list<"


class ShortWriter(ChangingWriter):
    def change(self, column: pa.Array) -> pa.Array:
        kind = column.type
        deep = pa.types.is_list(kind) and pa.types.is_list(kind.value_type)
        return pa.array([counted(each, 0) for each in column.to_pylist()], kind) if deep else column


def counted(value: Any, level: int) -> Any:
    if isinstance(value, dict):
        return {name: counted(each, level) for name, each in value.items()}
    if not isinstance(value, list):
        return value
    return [counted(each, level + 1) for each in value] if value or level < 2 else None


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("takes-empty-lists-of-the-third-level-for-null", writer=ShortWriter)
