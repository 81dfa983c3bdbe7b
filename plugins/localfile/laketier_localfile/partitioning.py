"""What a table is partitioned by: the value of each row, as text, and the folders that it names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from laketier.bucketing import assigner_for
from laketier.kit.partition import OddPartitionValues, check_partition_name, partition_text
from laketier.kit.time_spans import UNITS, TimeSpan, ordinals, takes
from laketier.spi import (
    BucketSpec,
    ConfigError,
    PartitionField,
    TableDescriptor,
    Transform,
    UnsupportedType,
)
from laketier_localfile.layout import escape, partition_folders
from laketier_localfile.outside import check_outside, outside_of
from laketier_localfile.pruning import decode
from laketier_localfile.time_pattern import TIME_PATTERN, TimePattern
from laketier_localfile.types import check_partition_type

Partition = Sequence[tuple[str, str | None]]


@dataclass(frozen=True)
class Partitioning:
    """The partition fields of a table with columns of ``schema``. ``pattern``: how the folders of the last field are
    named, where that is not Hive's way. ``outside``: the columns that files do not hold."""

    fields: tuple[PartitionField, ...]
    schema: pa.Schema
    pattern: TimePattern | None = None
    outside: tuple[str, ...] = ()

    @classmethod
    def of(cls, table: TableDescriptor) -> Partitioning:
        """Of a table that there is."""
        text = table.properties.get(TIME_PATTERN)
        pattern = None if text is None else TimePattern(text, table.partition_by[-1].transform)
        return cls(table.partition_by, table.schema, pattern, outside_of(table))

    @property
    def is_more(self) -> bool:
        """Whether a partition is more than the value of a column in the files; see `FileEntry.transformed`."""
        return bool(self.outside) or any(field.transform is not Transform.IDENTITY for field in self.fields)

    def keys(self, table: pa.Table) -> list[pa.ChunkedArray]:
        """The value of each row, for each field."""
        return [
            table.column(field.column)
            if field.transform is Transform.IDENTITY
            else pa.chunked_array([self.values(field, each) for each in table.column(field.column).chunks] or [[]])
            for field in self.fields
        ]

    def values(self, field: PartitionField, column: pa.Array) -> pa.Array:
        """The value of each row for one field: of time as the ordinal of `laketier.kit.time_spans`."""
        match field.transform:
            case Transform.IDENTITY:
                return column
            case Transform.BUCKET:
                return _assigner(field, self.schema).transform(pa.record_batch([column], names=[field.column]))
            case Transform.TRUNCATE:
                return _truncated(column, field.width or 1)
        return ordinals(column, field.transform)

    def texts_of(self, field: PartitionField, column: pa.Array) -> list[str | None]:
        """The values of one field for the rows of its column, as a manifest has them. For few rows."""
        return [text_of(field, value) for value in self.values(field, column).to_pylist()]

    def texts(self, values: Sequence[Any]) -> tuple[tuple[str, str | None], ...]:
        """The values of `keys` as a manifest has them."""
        return tuple((field.name, text_of(field, value)) for field, value in zip(self.fields, values, strict=True))

    def folders(self, partition: Partition, odd: OddPartitionValues = OddPartitionValues.ACCEPT) -> list[str]:
        """The folders of a partition, outermost first. See `laketier_localfile.layout.partition_folders`."""
        if self.pattern is None:
            return partition_folders(partition, odd)
        return [*partition_folders(partition[:-1], odd), *self.pattern.folders(partition[-1][1])]

    def odd_text(self, partition: Partition) -> str | None:
        """What no writer of laketier says of a file of the table, as a clause; None when there is no such thing."""
        names, wanted = [name for name, _ in partition], [field.name for field in self.fields]
        if names != wanted:
            return f"its partition names the columns {names}, and the table is partitioned by {wanted}"
        for field, (name, text) in zip(self.fields, partition, strict=True):
            if not is_text_of(text, field, self.schema.field(field.column).type):
                return f"its partition {text!a} is no value of {'column ' if name == field.column else ''}{name!r}"
        return None


def check_partitioning(table: TableDescriptor) -> None:
    """Refuse what folders can't be made of. Raises `ConfigError` and `UnsupportedType`."""
    names: set[str] = set()
    for field in table.partition_by:
        _check_type(field, table.schema)
        if field.name.startswith(("_", ".")):
            raise UnsupportedType(
                f"column {field.column!r} can't be a partition column",
                why="plain readers skip folders that begin with _ or .",
                fix="Rename the column.",
            )
        check_partition_name(field.name, escape(field.name))
        _refuse_taken(names, field.name)
    check_outside(table)
    pattern = _checked_pattern(table)
    for key in () if pattern is None else pattern.keys:
        _refuse_taken(names, key)
    hidden = {field.name for field in table.partition_by if field.transform is not Transform.IDENTITY}
    if pattern is not None:
        hidden = hidden - {table.partition_by[-1].name} | set(pattern.keys)
    for column in table.schema.names:
        if column.lower() in {name.lower() for name in hidden}:
            raise ConfigError(
                f"column {column!r} has the name of the folders of a partition",
                why=f"readers of folders named {column}=… would take their names for its values",
                fix="Rename the column, or set another lake.localfile.time-pattern.",
            )


def text_of(field: PartitionField, value: Any) -> str | None:
    """A value of `Partitioning.values` as a manifest has it."""
    if field.transform in UNITS:
        return None if value is None else TimeSpan(field.transform, value).text
    return partition_text(value)


def is_text_of(text: str | None, field: PartitionField, kind: pa.DataType) -> bool:
    """Whether `text_of` could have given it for a column of type ``kind``."""
    try:
        if text is None:
            return True
        if field.transform in UNITS:
            return TimeSpan.parse(text, field.transform).text == text
        if field.transform is Transform.BUCKET:
            return str(int(text)) == text and 0 <= int(text) < (field.width or 0)
        return partition_text(decode(text, kind)) == text
    except (ValueError, TypeError, ArithmeticError):
        return False


def _checked_pattern(table: TableDescriptor) -> TimePattern | None:
    text = table.properties.get(TIME_PATTERN)
    if text is None:
        return None
    times = [field for field in table.partition_by if field.transform in UNITS]
    if not times:
        raise ConfigError(
            f"{TIME_PATTERN} is {text!r}, which names folders by time, and no partition of the table is one",
            fix="Add it to lake.partition-by: year(ts), month(ts), day(ts), hour(ts) or minute(ts).",
        )
    if len(times) > 1 or table.partition_by[-1] != times[0]:
        raise ConfigError(
            "with a pattern of folders, the partition by time is the only one, and the last",
            why=f"the table is partitioned by {', '.join(map(str, table.partition_by))}",
            fix=f"Write lake.partition-by = {', '.join(map(str, _in_order(table, times[-1])))}.",
        )
    return TimePattern(text, times[0].transform)


def _in_order(table: TableDescriptor, last: PartitionField) -> list[PartitionField]:
    return [*(field for field in table.partition_by if field.transform not in UNITS), last]


def _check_type(field: PartitionField, schema: pa.Schema) -> None:
    kind = schema.field(field.column).type
    if field.transform is Transform.IDENTITY:
        check_partition_type(field.column, kind)
    elif field.transform is Transform.BUCKET:
        _assigner(field, schema)
    elif field.transform is Transform.TRUNCATE:
        if not (pt.is_signed_integer(kind) or pt.is_string(kind) or pt.is_large_string(kind)):
            _refuse_type(field, kind, "a signed integer or a string")
    elif not takes(kind, field.transform):
        _refuse_type(field, kind, "a timestamp, or from day on a date")


def _refuse_type(field: PartitionField, kind: pa.DataType, takes: str) -> None:
    raise UnsupportedType(
        f"{field.transform.value} does not take column {field.column!r} of type {kind}",
        why=f"it takes {takes}",
        fix="Partition by a column of another type.",
    )


def _refuse_taken(names: set[str], name: str) -> None:
    if name.lower() in names:
        raise ConfigError(f"two folders of a partition are named {name!r}", fix="Name each column once.")
    names.add(name.lower())


def _assigner(field: PartitionField, schema: pa.Schema) -> Any:
    """Iceberg's function, so that a bucket is the same in both formats."""
    buckets = BucketSpec(field.width or 1, (field.column,), "iceberg")
    return assigner_for(TableDescriptor(schema, buckets=buckets))


def _truncated(column: pa.Array, width: int) -> pa.Array:
    if not pt.is_integer(column.type):
        cut: Callable[..., pa.Array] = pc.utf8_slice_codeunits
        return cut(column, 0, width)
    wide = column.cast(pa.int64())
    rest = pc.subtract(wide, pc.multiply(pc.divide(wide, width), width))
    return pc.subtract(wide, pc.if_else(pc.less(rest, 0), pc.add(rest, width), rest))
