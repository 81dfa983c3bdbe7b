"""Partition values: computed on executors from Arrow arrays, sent as JSON of Iceberg's internal representation."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from laketier.kit.partition import partition_text
from laketier.kit.time_spans import UNITS, ordinals
from laketier.spi import PartitionField, Transform, UnstorableRows

if TYPE_CHECKING:
    from pyiceberg.types import IcebergType

_HOURS = (-719_162 * 24, 2_932_897 * 24)
"""The hours since 1970 of the years 1 to 9999, the last one exclusive."""


@dataclass(frozen=True)
class PartitionPlan:
    """The fields of the spec that files are written for, with their names. Picklable."""

    fields: tuple[tuple[str, PartitionField], ...]
    bucket_field: str | None = None

    def keys(self, table: pa.Table) -> list[pa.Array]:
        """One array of partition values per field, as long as ``table``. Needs pyiceberg_core for buckets and
        truncation. Raises `UnstorableRows` for moments that a partition can't hold."""
        return [_transform(field)(_one(table.column(field.column))) for _, field in self.fields]

    def to_json(self, values: Sequence[Any]) -> str:
        """Partition values (Python objects of `keys`) in Iceberg's internal representation, as JSON."""
        return json.dumps([_internal(value) for value in values], separators=(",", ":"))

    def text(self, values: Sequence[Any]) -> tuple[tuple[str, str | None], ...]:
        """Partition values for people."""
        pairs = zip(self.fields, values, strict=True)
        return tuple((name, _shown(value)) for (name, _), value in pairs)

    def bucket(self, values: Sequence[Any]) -> int | None:
        """The bucket of the table's buckets, None where it has none or the key is null."""
        for (name, _), value in zip(self.fields, values, strict=True):
            if name == self.bucket_field:
                return value
        return None


def _one(array: pa.ChunkedArray) -> pa.Array:
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _transform(field: PartitionField) -> Callable[[pa.Array], pa.Array]:
    if field.transform is Transform.IDENTITY:
        return lambda array: array
    if field.transform in UNITS:
        return lambda array: _of_time(array, field)
    from pyiceberg_core import transform  # type: ignore[import-untyped] # it ships no types

    if field.transform is Transform.BUCKET:
        return lambda array: transform.bucket(array, field.width)
    return lambda array: transform.truncate(array, field.width)


def _of_time(array: pa.Array, field: PartitionField) -> pa.Array:
    """The years, months, days or hours since 1970. pyiceberg_core has null for years beyond 262143, and hours that wrap
    around, and readers then skip the file that has such a row."""
    found = ordinals(array, field.transform)
    if field.transform is Transform.DAY:
        return found.cast(pa.int32()).cast(pa.date32())
    if field.transform is Transform.HOUR:
        ends = pc.min_max(found).as_py()
        odd = [hour for hour in ends.values() if hour is not None and not _HOURS[0] <= hour < _HOURS[1]]
        if odd:
            raise UnstorableRows(
                f"a value of column {field.column!r} can't be a partition value of {field}",
                why=f"it is in hour {odd[0]} since 1970, outside the years 1 to 9999",
                fix="Leave such rows out in the query, or partition by another column.",
            )
    return found.cast(pa.int32())


def _shown(value: Any) -> str | None:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    return str(value) if hasattr(value, "hour") and not hasattr(value, "year") else partition_text(value)


def _internal(value: Any) -> Any:
    import datetime

    epoch = datetime.datetime(1970, 1, 1)
    match value:
        case None | bool() | int() | str():
            return value
        case Decimal():
            return str(value)
        case bytes():
            return base64.b64encode(value).decode("ascii")
        case datetime.datetime():
            naive = value.astimezone(datetime.UTC).replace(tzinfo=None) if value.tzinfo is not None else value
            return (naive - epoch) // datetime.timedelta(microseconds=1)
        case datetime.date():
            return (value - epoch.date()).days
        case datetime.time():
            return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
    raise TypeError(f"no partition value: {type(value).__name__}")


def from_json(text: str, types: Sequence[IcebergType]) -> list[Any]:
    """Undo `PartitionPlan.to_json` for the result types of a spec's fields. Driver."""
    from pyiceberg import types as it

    values = json.loads(text)
    if len(values) != len(types):
        raise ValueError(f"{len(values)} partition values for {len(types)} fields")
    result: list[Any] = []
    for value, kind in zip(values, types, strict=True):
        if value is None:
            result.append(None)
        elif isinstance(kind, it.DecimalType):
            result.append(Decimal(value))
        elif isinstance(kind, it.BinaryType | it.FixedType):
            result.append(base64.b64decode(value, validate=True))
        else:
            result.append(value)
    return result
