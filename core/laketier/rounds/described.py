"""Whether what a source says of its table is of the types that `laketier.spi.LogTable` has: text where a tuple of texts
belongs would be taken letter by letter, and a column be renamed by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from laketier.spi import BucketSpec, LogTable, PartitionField
from laketier.spi.visible import is_utf8


def _are_names(value: Any) -> bool:
    return isinstance(value, tuple | list) and all(map(is_utf8, value))


def _are_former(value: Any) -> bool:
    return isinstance(value, Mapping) and all(is_utf8(now) and _are_names(old) for now, old in value.items())


_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "primary_key": (_are_names, "a primary key is a tuple of the names of its columns"),
    "change_column": (lambda value: value is None or is_utf8(value), "a change column is a name, or None"),
    "former_names": (_are_former, "former names are a tuple of texts for each column"),
    "partition_by": (
        lambda value: isinstance(value, tuple | list) and all(isinstance(one, PartitionField) for one in value),
        "partitions are a tuple of PartitionField",
    ),
    "buckets": (lambda value: value is None or isinstance(value, BucketSpec), "buckets are a BucketSpec, or None"),
}


def misdescribed(table: LogTable) -> tuple[str, str] | None:
    """The first attribute that is of another type, and the rule for it; None where all are right. Driver."""
    for name, (is_right, rule) in _RULES.items():
        if not is_right(getattr(table, name)):
            return name, rule
    return None
