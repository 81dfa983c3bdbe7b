"""Avro records framed for a registry, and which decoder a topic of Avro needs."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from laketier.codecs.avro_references import definitions_in, with_definitions
from laketier.codecs.avro_schema import parsed_schema, schema_of_text
from laketier.codecs.avro_values import AvroDecoder, Document, columns_of, rows_by
from laketier.codecs.decoding import BadValue, Decoded, Decoder, decode_each
from laketier.codecs.said import said
from laketier.spi import ConfigError
from laketier_kafka.connection import Connection
from laketier_kafka.options import KafkaTableOptions
from laketier_kafka.registry import (
    is_unknown,
    latest_schema,
    naming_registry_errors,
    registry_client,
    registry_refusal,
)
from laketier_kafka.schema_file import read_schema_file


@dataclass(frozen=True)
class FramedAvroDecoder(Decoder):
    """``reader`` is the schema that the columns are made of; a value is read by its own and fitted to it, as Avro's
    rules have it."""

    schema: pa.Schema
    reader: str = field(repr=False)
    connection: Connection

    def read(self, values: Sequence[bytes]) -> Decoded:
        """See `Decoder.read`. Value by value, as Avro's libraries read."""
        return decode_each(values, self.schema, _reader_of(self.reader, self.connection, os.getpid()))


def make_avro_decoder(topic: str, options: KafkaTableOptions, connection: Connection, framed: bool) -> Decoder:
    """Raises `ConfigError` for a schema that is none, or gives no columns, and `StorageError`."""
    where = options.schema_file or topic
    if options.schema_file is not None:
        text = read_schema_file(topic, options.schema_file).decode("utf-8", errors="replace")
    else:
        subject = options.subject or f"{topic}-value"
        where = f"the registry's subject {subject!r}"
        newest = latest_schema(connection, subject)
        with naming_registry_errors(connection, f"what {subject!r} refers to was asked for"):
            text = _self_contained(registry_client(connection), newest, where)
    if not framed:
        return AvroDecoder.of(text, where=where, record_bytes=options.max_record_bytes)
    schema, former = columns_of(text, where)
    return FramedAvroDecoder(schema, text, connection, former_names=former, record_bytes=options.max_record_bytes)


def _self_contained(client: Any, schema: Any, where: str) -> str:
    """A schema of the registry as text, with the types that it takes from others by reference."""
    if not schema.references:
        text: str = schema.schema_str
        return text
    known: dict[str, Any] = {}
    seen: set[tuple[str, int]] = set()

    def gather(references: Any) -> None:
        for reference in references or ():
            if (reference.subject, reference.version) not in seen:
                seen.add((reference.subject, reference.version))
                found = client.get_version(reference.subject, reference.version).schema
                gather(found.references)
                known.update(definitions_in(parsed_schema(found.schema_str, where)))

    gather(schema.references)
    return json.dumps(with_definitions(parsed_schema(schema.schema_str, where), known))


@functools.lru_cache(maxsize=32)
def _reader_of(text: str, connection: Connection, _process: int) -> Callable[[bytes], Document]:
    from confluent_kafka.schema_registry.avro import AvroDeserializer

    client = registry_client(connection)
    deserialize = AvroDeserializer(client, text)
    refusals: dict[bytes, str | None] = {}

    def check(frame: bytes) -> None:
        """A producer registers the schema that its values are read by: one by which they may be nested without end
        would overflow the library's stack."""
        if frame not in refusals:
            try:
                found = client.get_schema(int.from_bytes(frame[1:], "big"))
                schema_of_text(_self_contained(client, found, "the registry"), "the registry")
                refusals[frame] = None
            except ConfigError as error:
                refusals[frame] = str(error)
        if (refusal := refusals[frame]) is not None:
            raise BadValue(refusal, frame_id(frame))

    def read(value: bytes) -> Document:
        frame = value[:5]
        try:
            if frame[:1] == b"\0" and len(frame) == 5:
                check(frame)
            document: Any = deserialize(value, None)
        except BadValue:
            raise
        except Exception as error:  # noqa: BLE001 - the registry's, or whatever a library raises on bytes that are no Avro
            refusal = registry_refusal(connection, error, "the schema of a record was asked for")
            if refusal is not None:
                raise refusal from None
            known = frame_id(value)
            if is_unknown(error):
                raise BadValue(f"the registry has no schema {known}", known) from None
            raise BadValue(f"the value is no framed Avro record: {said(error)}", known) from None
        return dict(document)

    return rows_by(text, read)


def frame_id(value: bytes) -> str | None:
    """The schema's id in a frame, if the value has one."""
    return str(int.from_bytes(value[1:5], "big")) if value[:1] == b"\x00" and len(value) >= 5 else None
