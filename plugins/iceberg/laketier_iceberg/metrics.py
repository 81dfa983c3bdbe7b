"""Column metrics of a data file, from its Parquet footer. Executor: pyarrow only.

Readers skip files by these, so a wrong bound loses rows silently. A bound is written only where the footer vouches
for every row group; where anything is in doubt there is none, and readers look into the file.
"""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from laketier.kit.nested import children
from laketier.spi.schema import FIELD_ID

_PREFIX = "write.metadata.metrics."
_DEFAULT_LENGTH = 16
_LONGEST_FIXED = 64


@dataclass(frozen=True)
class Leaf:
    """A Parquet column: its Iceberg field id, type, dotted name, and whether it repeats (below a list or map)."""

    field_id: int
    type: pa.DataType
    name: str
    repeated: bool


@dataclass(frozen=True)
class ColumnMetrics:
    """The metrics of one column in a manifest. None: unknown."""

    size: int
    values: int | None = None
    nulls: int | None = None
    nans: int | None = None
    lower: bytes | None = None
    upper: bytes | None = None


@dataclass(frozen=True)
class FileMetrics:
    """Metrics of a file by field id, and where its row groups start."""

    columns: Mapping[int, ColumnMetrics]
    split_offsets: tuple[int, ...]

    def to_json(self) -> str:
        """For a payload."""
        columns = {
            str(field_id): [m.size, m.values, m.nulls, m.nans, _b64(m.lower), _b64(m.upper)]
            for field_id, m in self.columns.items()
        }
        return json.dumps({"columns": columns, "splits": self.split_offsets}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> FileMetrics:
        """Undo `to_json`."""
        document = json.loads(text)
        columns = {
            int(field_id): ColumnMetrics(size, values, nulls, nans, _unb64(lower), _unb64(upper))
            for field_id, (size, values, nulls, nans, lower, upper) in document["columns"].items()
        }
        return cls(columns, tuple(document["splits"]))


def leaves(schema: pa.Schema) -> list[Leaf]:
    """The Parquet columns of a schema that carries field ids, in the file's order."""
    return [leaf for field in schema for leaf in _leaves(field, "", False)]


def _leaves(field: pa.Field, prefix: str, repeated: bool) -> Iterator[Leaf]:
    name = f"{prefix}{field.name}"
    kind = field.type
    inside = children(kind)
    for _, child in inside:
        yield from _leaves(child, f"{name}.", repeated or not pt.is_struct(kind))
    if not inside:
        yield Leaf(int(field.metadata[FIELD_ID]), kind, name, repeated)


def mode(properties: Mapping[str, str], column: str) -> tuple[str, int | None]:
    """What the table's ``write.metadata.metrics.*`` ask for: none, counts, truncate (with a length) or full."""
    text = properties.get(f"{_PREFIX}column.{column}") or properties.get(f"{_PREFIX}default") or "truncate(16)"
    match = re.fullmatch(r"truncate\((\d+)\)", text.strip().lower())
    if match:
        return "truncate", max(int(match[1]), 1)
    name = text.strip().lower()
    return (name, None) if name in ("none", "counts", "full") else ("truncate", _DEFAULT_LENGTH)


def metrics_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties that `mode` reads."""
    return {key: value for key, value in properties.items() if key.startswith(_PREFIX)}


def collect(footer: Any, columns: list[Leaf], properties: Mapping[str, str], no_nan: set[int]) -> FileMetrics:
    """Metrics from a `pyarrow.parquet.FileMetaData`. ``no_nan``: ids of float columns known to hold no NaN; others
    get no bounds, as Parquet's leave NaN out and readers differ on how it compares."""
    groups = [footer.row_group(index) for index in range(footer.num_row_groups)]
    found = {
        leaf.field_id: _column(leaf, [group.column(index) for group in groups], properties, no_nan)
        for index, leaf in enumerate(columns)
    }
    return FileMetrics(found, tuple(sorted(_start(group.column(0)) for group in groups)))


def _start(chunk: Any) -> int:
    data = int(chunk.data_page_offset)
    return min(data, int(chunk.dictionary_page_offset)) if chunk.has_dictionary_page else data


def _column(leaf: Leaf, chunks: list[Any], properties: Mapping[str, str], no_nan: set[int]) -> ColumnMetrics:
    size = sum(chunk.total_compressed_size for chunk in chunks)
    what, length = mode(properties, leaf.name)
    if what == "none" or leaf.repeated:
        return ColumnMetrics(size)
    values = sum(chunk.num_values for chunk in chunks)
    statistics: list[Any] = [chunk.statistics if chunk.is_stats_set else None for chunk in chunks]
    counted = all(s is not None and s.has_null_count for s in statistics)
    nulls = sum(s.null_count for s in statistics) if counted else None
    nans = 0 if leaf.field_id in no_nan else None
    if what == "counts" or nulls is None or (pt.is_floating(leaf.type) and nans is None):
        return ColumnMetrics(size, values, nulls, nans)
    bounds = []
    for chunk, each in zip(chunks, statistics, strict=True):
        if each.null_count == chunk.num_values:
            continue
        if not each.has_min_max:
            # Parquet leaves out values that are too long, so the other row groups' bounds do not hold for the file.
            return ColumnMetrics(size, values, nulls, nans)
        bounds.append((_value(leaf.type, each.min_raw), _value(leaf.type, each.max_raw)))
    if not bounds:
        return ColumnMetrics(size, values, nulls, nans)
    lower = min(low for low, _ in bounds)
    upper = max(high for _, high in bounds)
    return ColumnMetrics(size, values, nulls, nans, _lower(leaf.type, lower, length), _upper(leaf.type, upper, length))


def _value(kind: pa.DataType, raw: Any) -> Any:
    """A footer's raw bound as something that compares as Iceberg compares the type."""
    if pt.is_string(kind):
        return raw.decode("utf-8") if isinstance(raw, bytes) else raw
    if pt.is_decimal(kind) and isinstance(raw, bytes):
        return int.from_bytes(raw, "big", signed=True)
    return raw


def _lower(kind: pa.DataType, value: Any, length: int | None) -> bytes | None:
    if (pt.is_string(kind) or pt.is_binary(kind)) and length is not None:
        value = value[:length]
    return _single_value(kind, value)


def _upper(kind: pa.DataType, value: Any, length: int | None) -> bytes | None:
    if length is not None and (pt.is_string(kind) or pt.is_binary(kind)) and len(value) > length:
        value = _next_string(value[:length]) if pt.is_string(kind) else _next_bytes(value[:length])
        if value is None:
            return None
    return _single_value(kind, value)


def _next_string(prefix: str) -> str | None:
    """The least string that is greater than all that start with ``prefix``; None when there is none."""
    for end in range(len(prefix) - 1, -1, -1):
        point = ord(prefix[end]) + 1
        if 0xD800 <= point <= 0xDFFF:
            point = 0xE000
        if point <= 0x10FFFF:
            return prefix[:end] + chr(point)
    return None


def _next_bytes(prefix: bytes) -> bytes | None:
    for end in range(len(prefix) - 1, -1, -1):
        if prefix[end] < 0xFF:
            return prefix[:end] + bytes([prefix[end] + 1])
    return None


def _single_value(kind: pa.DataType, value: Any) -> bytes | None:
    """Iceberg's binary single-value serialisation."""
    if pt.is_boolean(kind):
        return b"\x01" if value else b"\x00"
    if pt.is_int32(kind) or pt.is_date32(kind):
        return struct.pack("<i", value)
    if pt.is_int64(kind) or pt.is_timestamp(kind) or pt.is_time64(kind):
        return struct.pack("<q", value)
    if pt.is_float32(kind):
        return struct.pack("<f", value)
    if pt.is_float64(kind):
        return struct.pack("<d", value)
    if pt.is_string(kind):
        return bytes(value.encode("utf-8"))
    if pt.is_binary(kind):
        return bytes(value)
    if pt.is_fixed_size_binary(kind):
        return bytes(value) if kind.byte_width <= _LONGEST_FIXED else None
    if pt.is_decimal(kind):
        magnitude = value if value >= 0 else -value - 1
        return int(value).to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)
    return None


def _b64(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode("ascii")


def _unb64(value: str | None) -> bytes | None:
    return None if value is None else base64.b64decode(value, validate=True)
