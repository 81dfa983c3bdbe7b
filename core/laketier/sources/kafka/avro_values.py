"""Avro records, framed for a registry or bare."""

from __future__ import annotations

import functools
import io
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from laketier.sources.kafka.avro_types import avro_aliases, avro_columns
from laketier.sources.kafka.connection import Connection
from laketier.sources.kafka.decoding import BadValue, Decoded, Decoder, decode_each
from laketier.sources.kafka.formats import read_schema_file
from laketier.sources.kafka.options import KafkaTableOptions
from laketier.sources.kafka.registry import is_unknown, latest_schema, registry_client, registry_refusal
from laketier.spi import ConfigError


@dataclass(frozen=True)
class AvroDecoder(Decoder):
    """``reader`` is the schema that the columns are made of; a framed value is read by its own and fitted to it, as
    Avro's rules have it."""

    schema: pa.Schema
    reader: str
    connection: Connection | None
    former_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)

    def decode(self, values: Sequence[bytes]) -> Decoded:
        """See `Decoder`. Value by value, as Avro's libraries read."""
        return decode_each(values, self.schema, _reader_of(self.reader, self.connection, os.getpid()))


def make_avro_decoder(topic: str, options: KafkaTableOptions, connection: Connection, framed: bool) -> AvroDecoder:
    """Raises `ConfigError` for a schema that is none, or gives no columns, and `StorageError`."""
    where = options.schema_file or topic
    if options.schema_file is not None:
        text = read_schema_file(topic, options.schema_file).decode("utf-8", errors="replace")
    else:
        text = latest_schema(connection, options.subject or f"{topic}-value").schema_str
    try:
        parsed = json.loads(text)
    except ValueError as error:
        held = options.schema_file or f"the registry's subject {options.subject or f'{topic}-value'!r}"
        raise ConfigError("the Avro schema is not JSON", where=where, why=str(error), fix=f"Mend {held}.") from None
    columns = avro_columns(parsed, where)
    schema = pa.schema([pa.field(name, column.kind) for name, column in columns.items()])
    return AvroDecoder(schema, text, connection if framed else None, avro_aliases(parsed))


@functools.lru_cache(maxsize=32)
def _reader_of(text: str, connection: Connection | None, _process: int) -> Callable[[bytes], dict[str, Any]]:
    columns = avro_columns(json.loads(text), "the Avro schema")
    converters = {name: column.convert for name, column in columns.items() if column.convert is not None}
    read = _bare(text) if connection is None else _framed(text, connection)

    def row(value: bytes) -> dict[str, Any]:
        document = read(value)
        for name, convert in converters.items():
            if document[name] is not None:
                document[name] = convert(document[name])
        return document

    return row


def _bare(text: str) -> Callable[[bytes], dict[str, Any]]:
    import fastavro

    schema = fastavro.parse_schema(json.loads(text))

    def read(value: bytes) -> dict[str, Any]:
        stream = io.BytesIO(value)
        try:
            document: Any = fastavro.schemaless_reader(stream, schema, None)
        except Exception as error:  # noqa: BLE001 - whatever a library raises on bytes that are no Avro
            raise BadValue(f"the value is no Avro record of the schema: {_said(error)}") from None
        if stream.tell() != len(value):
            raise BadValue(f"{len(value) - stream.tell()} bytes are left after the Avro record")
        return dict(document)

    return read


def _framed(text: str, connection: Connection) -> Callable[[bytes], dict[str, Any]]:
    from confluent_kafka.schema_registry.avro import AvroDeserializer

    deserialize = AvroDeserializer(registry_client(connection), text)

    def read(value: bytes) -> dict[str, Any]:
        try:
            document: Any = deserialize(value, None)
        except Exception as error:  # noqa: BLE001 - the registry's, or whatever a library raises on bytes that are no Avro
            refusal = registry_refusal(connection, error, "the schema of a record was asked for")
            if refusal is not None:
                raise refusal from None
            known = frame_id(value)
            if is_unknown(error):
                raise BadValue(f"the registry has no schema {known}", known) from None
            raise BadValue(f"the value is no framed Avro record: {_said(error)}", known) from None
        return dict(document)

    return read


def frame_id(value: bytes) -> str | None:
    """The schema's id in a frame, if the value has one."""
    return str(int.from_bytes(value[1:5], "big")) if value[:1] == b"\x00" and len(value) >= 5 else None


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__
