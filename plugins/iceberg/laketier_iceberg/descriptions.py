"""Tables in the words of the SPI, and in Iceberg's. Driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laketier.spi import (
    BucketSpec,
    FeatureNotSupported,
    IncompatibleTable,
    TableDescriptor,
    TableInfo,
    TablePath,
)
from laketier_iceberg.spec import BUCKETS_PROPERTY, FORMAT, bucket_field, named_fields
from laketier_iceberg.types import to_arrow

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table

RESERVED = "laketier."
"""Table properties below this prefix are ours."""

KEY_ORDER = f"{RESERVED}primary-key"
"""The field ids of a primary key of several columns, in its order. To Iceberg, identifier fields are a set: what
runs on the JVM writes them in an order of its own."""

CREATED_WITH: dict[str, str] = {
    # Without merging, planning reads one manifest per epoch; without deletion, each epoch leaves a metadata file.
    "commit.manifest-merge.enabled": "true",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
    "write.parquet.compression-codec": "zstd",
}
"""Properties of new tables, where the descriptor does not say otherwise."""


def info_of(path: TablePath, table: Table) -> TableInfo:
    """What the SPI says of a table. Raises `UnsupportedType` and `IncompatibleTable` for what it has no word for."""
    metadata = table.metadata
    schema = table.schema()
    bucketed = metadata.properties.get(BUCKETS_PROPERTY)
    partition_by = []
    buckets = None
    for name, field in named_fields(table.spec(), schema):
        if name == bucketed:
            buckets = BucketSpec(field.width or 0, (field.column,), FORMAT)
        else:
            partition_by.append(field)
    current = metadata.current_snapshot()
    return TableInfo(
        path=path,
        descriptor=TableDescriptor(
            schema=to_arrow(schema, where=str(path)),
            partition_by=tuple(partition_by),
            buckets=buckets,
            primary_key=_primary_key(schema, metadata.properties.get(KEY_ORDER, "")),
            properties={k: v for k, v in metadata.properties.items() if not k.startswith(RESERVED)},
            comment=metadata.properties.get("comment"),
        ),
        table_uuid=str(metadata.table_uuid),
        location=metadata.location,
        snapshot_id=None if current is None else current.snapshot_id,
        spec_id=metadata.default_spec_id,
    ).with_handle(table)


def _primary_key(schema: Schema, order: str) -> tuple[str, ...]:
    """The identifier fields, in the ``order`` that the table was made with, if it is one of these; none where one of
    them is inside another column, which no `TableDescriptor` can say."""
    names = {field.field_id: field.name for field in schema.fields}
    ids = schema.identifier_field_ids
    if not all(i in names for i in ids):
        return ()
    ordered = {str(i): i for i in ids}
    told = order.split(",")
    if sorted(told) == sorted(ordered):
        ids = [ordered[i] for i in told]
    return tuple(names[i] for i in ids)


def properties_of(descriptor: TableDescriptor) -> dict[str, str]:
    """The properties of a new table. Raises `IncompatibleTable` for laketier's own names, and `FeatureNotSupported` for
    another version than pyiceberg writes."""
    given = dict(descriptor.properties)
    reserved = sorted(key for key in given if key.startswith(RESERVED))
    if reserved:
        raise IncompatibleTable(f"the properties {reserved} are laketier's own", fix="Leave them out.")
    if given.get("format-version", "2") != "2":
        raise FeatureNotSupported(
            f"format-version {given['format-version']}",
            format=FORMAT,
            reason="pyiceberg writes tables of version 2",
            fix="Leave format-version out.",
        )
    properties: dict[str, str] = {**CREATED_WITH, **given, "format-version": "2"}
    if descriptor.comment is not None:
        properties["comment"] = descriptor.comment
    if len(descriptor.primary_key) > 1:
        properties[KEY_ORDER] = _order(descriptor)
    bucket = bucket_field(descriptor.buckets)
    if bucket is not None:
        properties[BUCKETS_PROPERTY] = bucket.name
    return properties


def _order(descriptor: TableDescriptor) -> str:
    """By the ids that columns of a new table have: catalogs give them anew, to the columns first and then to what is
    inside them."""
    ids = {name: str(number) for number, name in enumerate(descriptor.schema.names, start=1)}
    return ",".join(ids[name] for name in descriptor.primary_key)
