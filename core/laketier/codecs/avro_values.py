"""Avro records, each on its own, without their schema."""

from __future__ import annotations

import functools
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from laketier.codecs.avro_schema import import_fastavro, schema_of_text
from laketier.codecs.avro_types import avro_aliases, avro_columns, row_converter
from laketier.codecs.decoding import BadValue, Decoded, Decoder, decode_each
from laketier.codecs.said import said

Document = dict[str, Any]


@dataclass(frozen=True)
class AvroDecoder(Decoder):
    """``reader``: the schema that all values have, as text; the columns are made of it."""

    schema: pa.Schema
    reader: str = field(repr=False)

    @classmethod
    def of(cls, text: str, *, where: str, **more: Any) -> AvroDecoder:
        """Raises `ConfigError` for a schema that is none, or gives no columns, and `PluginBroken`."""
        import_fastavro()
        columns, former = columns_of(text, where)
        return cls(schema=columns, reader=text, former_names=former, **more)

    def read(self, values: Sequence[bytes]) -> Decoded:
        """See `Decoder.read`. Value by value, as Avro's libraries read."""
        return decode_each(values, self.schema, _reader_of(self.reader))


def columns_of(text: str, where: str) -> tuple[pa.Schema, dict[str, tuple[str, ...]]]:
    """The columns that a schema gives, and the names that they had. Raises `ConfigError`."""
    parsed = schema_of_text(text, where)
    columns = avro_columns(parsed, where)
    schema = pa.schema([pa.field(name, column.kind) for name, column in columns.items()])
    return schema, dict(avro_aliases(parsed))


def rows_by(text: str, read: Callable[[bytes], Document]) -> Callable[[bytes], Document]:
    """``read``, with its values as Arrow takes them. ``text``: the schema by which it reads."""
    convert = row_converter(avro_columns(schema_of_text(text, "the Avro schema"), "the Avro schema"))
    return read if convert is None else lambda value: convert(read(value))


@functools.lru_cache(maxsize=32)
def _reader_of(text: str) -> Callable[[bytes], Document]:
    fastavro = import_fastavro()
    schema = fastavro.parse_schema(schema_of_text(text, "the Avro schema"))

    def read(value: bytes) -> Document:
        stream = io.BytesIO(value)
        try:
            document: Any = fastavro.schemaless_reader(stream, schema, None)
        except Exception as error:  # noqa: BLE001 - whatever a library raises on bytes that are no Avro
            raise BadValue(f"the value is no Avro record of the schema: {said(error)}") from None
        if stream.tell() != len(value):
            raise BadValue(f"{len(value) - stream.tell()} bytes are left after the Avro record")
        return dict(document)

    return rows_by(text, read)
