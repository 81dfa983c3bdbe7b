"""Partition specs: what a descriptor asks for, as Iceberg's hidden partitioning, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as pt

from laketier.spi import (
    BucketSpec,
    ConfigError,
    Feature,
    FeatureNotSupported,
    IncompatibleTable,
    PartitionField,
    TableDescriptor,
    Transform,
    UnsupportedType,
)

if TYPE_CHECKING:
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema

FORMAT = "iceberg"
BUCKETS_PROPERTY = "laketier.bucket-field"
"""The table property that names the partition field which stands for `TableDescriptor.buckets`."""

_TEXTUAL = (pt.is_string, pt.is_large_string, pt.is_string_view, pt.is_binary, pt.is_large_binary, pt.is_binary_view)
_DATED = (pt.is_date32, pt.is_timestamp)
_TAKES: dict[Transform, tuple[Any, ...]] = {
    Transform.IDENTITY: (
        pt.is_boolean, pt.is_int32, pt.is_int64, pt.is_decimal, pt.is_time, pt.is_fixed_size_binary, *_DATED, *_TEXTUAL
    ),
    Transform.BUCKET: (
        pt.is_int32, pt.is_int64, pt.is_decimal, pt.is_time, pt.is_fixed_size_binary, *_DATED, *_TEXTUAL
    ),
    Transform.TRUNCATE: (pt.is_int32, pt.is_int64, pt.is_decimal, *_TEXTUAL),
    Transform.YEAR: _DATED,
    Transform.MONTH: _DATED,
    Transform.DAY: _DATED,
    Transform.HOUR: (pt.is_timestamp,),
}  # fmt: skip


def fields_of(descriptor: TableDescriptor) -> tuple[PartitionField, ...]:
    """All partition fields of the table: those asked for, then the one of its buckets. Raises `ConfigError`,
    `FeatureNotSupported` and `UnsupportedType`."""
    fields = descriptor.partition_by
    bucket = bucket_field(descriptor.buckets)
    if bucket is not None:
        fields = (*fields, bucket)
    seen: set[tuple[str, str]] = set()
    names: set[str] = set()
    for field in fields:
        _check(field, descriptor.schema)
        kind = "time" if field.transform in _TIMED else field.transform.value
        if (field.column, kind) in seen or field.name in names:
            raise ConfigError(f"{field.column!r} is partitioned twice by {field.transform.value}", fix="Drop one.")
        if field.transform is not Transform.IDENTITY and field.name in descriptor.schema.names:
            raise ConfigError(
                f"the partition field {field.name!r} has the name of a column",
                fix="Rename the column: Iceberg's engines derive the partition field's name.",
            )
        seen.add((field.column, kind))
        names.add(field.name)
    return fields


_TIMED = (Transform.YEAR, Transform.MONTH, Transform.DAY, Transform.HOUR)


def bucket_field(buckets: BucketSpec | None) -> PartitionField | None:
    """The partition field that stands for ``buckets``."""
    if buckets is None:
        return None
    if buckets.function != FORMAT:
        raise FeatureNotSupported(
            Feature.BUCKETING.value,
            format=FORMAT,
            reason=f"the specification has a bucket function of its own, which is not {buckets.function!r}",
            fix=f"Write lake.bucket-by = iceberg:bucket({buckets.count}, {buckets.keys[0]}).",
        )
    if len(buckets.keys) != 1:
        raise FeatureNotSupported(
            Feature.BUCKETING.value,
            format=FORMAT,
            reason="its bucket transform takes one column",
            fix="Bucket by one column, or add a column that joins the keys.",
        )
    return PartitionField(buckets.keys[0], Transform.BUCKET, buckets.count)


def _check(field: PartitionField, schema: pa.Schema) -> None:
    if field.transform not in _TAKES:
        raise UnsupportedType(
            f"{field} is no partition of an Iceberg table",
            why=f"its specification has {', '.join(each.value for each in _TAKES)}",
            fix=f"Write hour({field.column}).",
        )
    kind = schema.field(field.column).type
    if not any(test(kind) for test in _TAKES[field.transform]):
        raise UnsupportedType(
            f"{field.transform.value} does not take column {field.column!r} of type {kind}",
            why="an Iceberg table can't be partitioned that way",
            fix="Partition by a column of another type.",
        )


def to_spec(fields: tuple[PartitionField, ...], schema: Schema) -> PartitionSpec:
    """Iceberg's partition spec for ``fields`` over ``schema``."""
    from pyiceberg import partitioning, transforms

    made: dict[Transform, Callable[[Any], Any]] = {
        Transform.IDENTITY: lambda _: transforms.IdentityTransform(),
        Transform.BUCKET: transforms.BucketTransform,
        Transform.TRUNCATE: transforms.TruncateTransform,
        Transform.YEAR: lambda _: transforms.YearTransform(),
        Transform.MONTH: lambda _: transforms.MonthTransform(),
        Transform.DAY: lambda _: transforms.DayTransform(),
        Transform.HOUR: lambda _: transforms.HourTransform(),
    }
    return partitioning.PartitionSpec(
        *[
            partitioning.PartitionField(
                source_id=schema.find_field(field.column).field_id,
                field_id=1000 + index,
                transform=made[field.transform](field.width),
                name=field.name,
            )
            for index, field in enumerate(fields)
        ]
    )


def named_fields(spec: PartitionSpec, schema: Schema) -> Iterator[tuple[str, PartitionField]]:
    """The fields of a spec with their names, as the SPI spells them, in order; ``void`` fields are left out.

    Raises `IncompatibleTable` for a transform or a nested column that the SPI has no word for.
    """
    for field in spec.fields:
        text = str(field.transform)
        if text == "void":
            continue
        name, _, rest = text.partition("[")
        column = schema.find_column_name(field.source_id)
        top_level = any(f.field_id == field.source_id for f in schema.fields)
        if column is None or not top_level or name not in {t.value for t in _TAKES}:
            raise IncompatibleTable(
                f"partition field {field.name!r} ({text} of {column or field.source_id}) is not known here",
                fix="Write this table with the engine that made it.",
            )
        yield field.name, PartitionField(column, Transform(name), int(rest[:-1]) if rest else None)
