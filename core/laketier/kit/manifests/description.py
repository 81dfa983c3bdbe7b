"""The description of a table in a manifest: its columns, partitions, buckets and properties, as JSON's own types.

A manifest holds one where its commit changed it, and else names the manifest that does.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from laketier.kit.manifests.document import decode, text, texts, whole
from laketier.spi.errors import ConfigError
from laketier.spi.table import BucketSpec, PartitionField, TableDescriptor, Transform


@dataclass(frozen=True)
class Description:
    """What a manifest says of its table: the ``metadata``, if it has some. Its files, of which there may be many, are
    neither decoded nor checked, beyond the checksum of all."""

    table_uuid: str
    number: int
    metadata: TableDescriptor | None
    sha256: str

    @classmethod
    def decode(cls, data: bytes, path: Path | str) -> Description:
        """Of a manifest's document. Raises as `Manifest.decode`."""
        return decode(data, path, cls._from_body)

    @classmethod
    def _from_body(cls, body: dict[str, Any], sha256: str) -> Description:
        metadata = None if body["metadata"] is None else descriptor_from_plain(body["metadata"])
        return cls(body["table_uuid"], body["number"], metadata, sha256)


def descriptor_to_plain(descriptor: TableDescriptor) -> dict[str, Any]:
    fields = descriptor.partition_by
    transformed = any(field.transform is not Transform.IDENTITY for field in fields)
    buckets = descriptor.buckets
    return {
        # For people; the schema that counts is the one in Arrow's own encoding.
        "columns": [
            {"name": column.name, "type": str(column.type), "nullable": column.nullable} for column in descriptor.schema
        ],
        "arrow_schema": base64.b64encode(descriptor.schema.serialize()).decode("ascii"),
        "partition_by": [str(field) for field in fields],
        # A column's name may hold what `PartitionField.parse` would read as a transform.
        **({"partition_fields": [_field_to_plain(field) for field in fields]} if transformed else {}),
        "buckets": None
        if buckets is None
        else {"count": buckets.count, "keys": list(buckets.keys), "function": buckets.function},
        **({"primary_key": list(descriptor.primary_key)} if descriptor.primary_key else {}),
        "properties": dict(descriptor.properties),
        "comment": descriptor.comment,
    }


def _field_to_plain(field: PartitionField) -> dict[str, Any]:
    width = {} if field.width is None else {"width": field.width}
    return {"column": field.column, "transform": field.transform.value, **width}


def _field_from_plain(plain: Mapping[str, Any]) -> PartitionField:
    width = None if "width" not in plain else whole(plain["width"])
    try:
        return PartitionField(str(plain["column"]), Transform(plain["transform"]), width)
    except ConfigError as error:
        raise ValueError(error.what) from error


def descriptor_from_plain(plain: dict[str, Any]) -> TableDescriptor:
    buckets = plain["buckets"]
    return TableDescriptor(
        schema=pa.ipc.read_schema(pa.py_buffer(base64.b64decode(plain["arrow_schema"]))),
        partition_by=tuple(map(_field_from_plain, plain["partition_fields"]))
        if "partition_fields" in plain
        else tuple(PartitionField(text(name)) for name in plain["partition_by"]),
        buckets=None
        if buckets is None
        else BucketSpec(whole(buckets["count"]), tuple(map(text, buckets["keys"])), text(buckets["function"])),
        primary_key=tuple(map(text, plain.get("primary_key", ()))),
        properties=texts(plain["properties"]),
        comment=None if plain["comment"] is None else text(plain["comment"]),
    )
