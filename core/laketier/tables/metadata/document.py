"""What the disk holds of a table: one checked JSON document. Never pickle; whatever does not fit is not believed."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field

from laketier.spi import BucketSpec, PartitionField, TableDescriptor, TableInfo, TablePath, Transform
from laketier.spi.redaction import holds_secret, is_secret

LARGEST = 4 * 1024 * 1024
"""Bytes of a document; tables of ten thousand columns fit."""
_DIGEST = 64
_SECRET = re.compile(r"(?i)passw|pwd|api[-_.]?key|sas\b|signature|bearer|authorization")
"""Names that are no secret for sure, and may be one: whatever is not written down can't be read by others."""


@dataclass(frozen=True)
class Saved:
    """A description with what it is believed by.

    Attributes:
        key: `TableKey.text`.
        version: What `LakeCatalog.table_version` said.
        saved_at: By the clock of this host, in ms since 1970.
        locations: The table's location, by `TableKey.alias`.
        table: The description, without a handle.
    """

    key: str
    version: str
    saved_at: int
    locations: Mapping[str, str]
    table: TableInfo


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, hide_input_in_errors=True)


class _Partition(_Strict):
    column: str
    transform: str
    width: int | None


class _Buckets(_Strict):
    count: int
    keys: list[str]
    function: str


class _Table(_Strict):
    name: str
    uuid: str
    location: str
    snapshot_id: int | None
    spec_id: int
    arrow_schema: str
    partition_by: list[_Partition]
    buckets: _Buckets | None
    primary_key: list[str]
    properties: dict[str, str]
    comment: str | None


class _Document(_Strict):
    format_version: Literal[1] = Field(alias="v")
    key: str
    version: str = Field(min_length=1)
    saved_at: int = Field(ge=0)
    locations: dict[str, str]
    table: _Table


def holds_secrets(saved: Saved) -> bool:
    """Whether a description may hold a secret: in a property, in the metadata of its columns, in a comment or in a
    location. Then it is kept in memory alone."""
    named = [*saved.table.descriptor.properties.items(), *_metadata(saved.table.schema)]
    texts = [saved.key, saved.version, saved.table.location, saved.table.descriptor.comment or ""]
    texts += [*saved.locations, *saved.locations.values(), *(value for _, value in named)]
    return any(is_secret(name) or _SECRET.search(name) for name, _ in named) or any(map(holds_secret, texts))


def _metadata(schema: pa.Schema) -> Iterator[tuple[str, str]]:
    """What is written beside columns, at all depths."""
    waiting: list[pa.Schema | pa.Field] = [schema, *schema]
    while waiting:
        found = waiting.pop()
        for name, value in (found.metadata or {}).items():
            yield name.decode(errors="replace"), value.decode(errors="replace")
        if isinstance(found, pa.Field):
            kind = found.type
            if pa.types.is_nested(kind):
                waiting += [kind.field(number) for number in range(kind.num_fields)]


def encode(saved: Saved) -> bytes:
    """The document: the SHA-256 of its second line, and JSON."""
    table, descriptor = saved.table, saved.table.descriptor
    buckets = descriptor.buckets
    body = {
        "v": 1,
        "key": saved.key,
        "version": saved.version,
        "saved_at": saved.saved_at,
        "locations": dict(saved.locations),
        "table": {
            "name": str(table.path),
            "uuid": table.table_uuid,
            "location": table.location,
            "snapshot_id": table.snapshot_id,
            "spec_id": table.spec_id,
            "arrow_schema": base64.b64encode(descriptor.schema.serialize()).decode("ascii"),
            "partition_by": [
                {"column": each.column, "transform": each.transform.value, "width": each.width}
                for each in descriptor.partition_by
            ],
            "buckets": None
            if buckets is None
            else {"count": buckets.count, "keys": list(buckets.keys), "function": buckets.function},
            "primary_key": list(descriptor.primary_key),
            "properties": dict(descriptor.properties),
            "comment": descriptor.comment,
        },
    }
    text = json.dumps(body, separators=(",", ":")).encode()
    return hashlib.sha256(text).hexdigest().encode() + b"\n" + text


def decode(data: bytes) -> Saved | None:
    """Read a document; None where it is damaged, of another version, or anything else."""
    digest, body = data[:_DIGEST], data[_DIGEST + 1 :]
    if len(data) > LARGEST or hashlib.sha256(body).hexdigest().encode() != digest:
        return None
    try:
        found = _Document.model_validate_json(body)
        return Saved(found.key, found.version, found.saved_at, found.locations, _table(found.table))
    except Exception:  # noqa: BLE001 - whatever a hostile document makes of Arrow, pydantic or ourselves
        return None


def _table(found: _Table) -> TableInfo:
    buckets = found.buckets
    return TableInfo(
        path=TablePath.parse(found.name),
        descriptor=TableDescriptor(
            schema=pa.ipc.read_schema(pa.py_buffer(base64.b64decode(found.arrow_schema, validate=True))),
            partition_by=tuple(
                PartitionField(each.column, Transform(each.transform), each.width) for each in found.partition_by
            ),
            buckets=None if buckets is None else BucketSpec(buckets.count, tuple(buckets.keys), buckets.function),
            primary_key=tuple(found.primary_key),
            properties=found.properties,
            comment=found.comment,
        ),
        table_uuid=found.uuid,
        location=found.location,
        snapshot_id=found.snapshot_id,
        spec_id=found.spec_id,
    )


def survives(saved: Saved, data: bytes) -> bool:
    """Whether what is read back is the same, metadata of columns included."""
    back = decode(data)
    if back is None or back != saved:
        return False
    return bool(back.table.schema.equals(saved.table.schema, check_metadata=True))
