"""Avro files: a schema, and blocks of records.

The frame is read here and not by the library, which believes its lengths and counts: what a block expands to, how many
records it has and how long they are is checked against its bytes. The records are the library's to read.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from laketier.codecs.avro_schema import check_bounded, import_fastavro, schema_of_text
from laketier.codecs.avro_types import AvroColumn, avro_columns, row_converter
from laketier.codecs.bounds import BLOCK_BYTES, MIB, SCHEMA_BYTES, ZERO_SIZE_ROWS
from laketier.codecs.decoding import BadValue, batch_of
from laketier.codecs.expansion import expand
from laketier.codecs.lines import columns_in

_MAGIC = b"Obj\x01"
_SYNC = 16
_AT_ONCE = MIB
"""Up to so many bytes a block is read by one call; of a larger one the rows alone may be too many for that."""
_ROWS = 16_384
_CELLS = 1_000_000
"""So many values become Python's at once, be they null: a column of nulls takes no bytes."""


@dataclass(frozen=True)
class AvroFile:
    """``schema`` of its columns, and the blocks behind its header."""

    schema: pa.Schema
    columns: dict[str, AvroColumn]
    written: Any
    least: int
    codec: str
    sync: bytes
    bytes_of: _Bytes

    @classmethod
    def open(cls, file: Any, size: int, *, where: str) -> AvroFile:
        """Read the header. Raises `BadValue`, `ConfigError` for a schema that gives no columns, and `PluginBroken`."""
        import_fastavro()
        source = _Bytes(file, size)
        if source.take(len(_MAGIC)) != _MAGIC:
            raise BadValue("it does not begin as an Avro file")
        header = source.header()
        if "avro.schema" not in header:
            raise BadValue("its header holds no schema")
        schema = schema_of_text(header["avro.schema"], where)
        try:
            columns = dict(avro_columns(schema, where, keep_not_null=True))
        except (KeyError, TypeError, AttributeError) as error:
            raise BadValue(f"its schema is damaged: {type(error).__name__}: {error}") from None
        fields = [pa.field(name, column.kind, nullable=column.nullable) for name, column in columns.items()]
        codec = header.get("avro.codec", b"null").decode("utf-8", "backslashreplace")
        least = check_bounded(schema, where).least
        return cls(pa.schema(fields), columns, schema, least, codec, source.take(_SYNC), source)

    def batches(self, most: int = BLOCK_BYTES) -> Iterator[pa.RecordBatch]:
        """The rows. ``most``: bytes that a block may expand to. Raises `BadValue`, and whatever the library does over
        bytes that are none of its records."""
        convert = row_converter(self.columns)
        for rows in self._rows(most):
            yield batch_of(rows if convert is None else [convert(row) for row in rows], self.schema)

    def _rows(self, most: int) -> Iterator[list[dict[str, Any]]]:
        fastavro = import_fastavro()
        one = fastavro.parse_schema(self.written)
        many = fastavro.parse_schema({"type": "array", "items": self.written}) if self.least else None
        columns = columns_in(self.schema)
        at_once = max(1, min(_ROWS, _CELLS // columns))
        while not self.bytes_of.ended():
            count, data = self._block(most)
            stream = io.BytesIO(data)
            if many is not None and count and len(data) <= _AT_ONCE and count * columns <= _CELLS:
                stream = io.BytesIO(_long(count) + data + b"\0")
                rows = fastavro.schemaless_reader(stream, many, None)
                if len(rows) != count:
                    raise BadValue(f"a block claims {count:,} records, and has {len(rows):,}")
                for start in range(0, count, at_once):
                    yield rows[start : start + at_once]
            else:
                left = (fastavro.schemaless_reader(stream, one, None) for _ in range(count))
                while rows := list(itertools.islice(left, at_once)):
                    yield rows
            if stream.read(1):
                raise BadValue("bytes are left after the records of a block")

    def _block(self, most: int) -> tuple[int, bytes]:
        count, length = self.bytes_of.long(), self.bytes_of.long()
        if not 0 <= length <= self.bytes_of.left:
            raise BadValue(f"a block claims {length:,} bytes, where {self.bytes_of.left:,} are left")
        data = expand(self.codec, self.bytes_of.take(length), most)
        if not 0 <= count <= (len(data) // self.least if self.least else ZERO_SIZE_ROWS):
            raise BadValue(f"a block of {len(data):,} bytes claims {count:,} records")
        if self.bytes_of.take(_SYNC) != self.sync:
            raise BadValue("a block does not end with the file's marker")
        return count, data


class _Bytes:
    """What is left of a file, never more than there is."""

    def __init__(self, file: Any, size: int) -> None:
        self._file = file
        self.left = size

    def ended(self) -> bool:
        return self.left <= 0

    def take(self, size: int) -> bytes:
        found: bytes = self._file.read(size) if 0 <= size <= self.left else b""
        if len(found) != size:
            raise BadValue("it is cut off")
        self.left -= size
        return found

    def long(self) -> int:
        value = shift = 0
        while shift < 64:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
        raise BadValue("a number in it has more than 64 bits")

    def header(self) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        allowed = SCHEMA_BYTES
        while count := self.long():
            if count < 0:
                self.long()  # its bytes, for those who pass over it
                count = -count
            for _ in range(min(count, allowed)):
                key, value = (self._counted(allowed) for _ in range(2))
                allowed -= len(key) + len(value) + 1
                if allowed < 0:
                    raise BadValue(f"its header has more than {SCHEMA_BYTES:,} bytes")
                found[key.decode("utf-8", "backslashreplace")] = value
        return found

    def _counted(self, allowed: int) -> bytes:
        size = self.long()
        if not 0 <= size <= min(allowed, self.left):
            raise BadValue(f"its header claims {size:,} bytes")
        return self.take(size)


def _long(value: int) -> bytes:
    found = bytearray()
    value <<= 1
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
