"""Protobuf messages, framed for a registry or bare."""

from __future__ import annotations

import base64
import functools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from laketier.sources.kafka.avro_values import frame_id
from laketier.sources.kafka.connection import Connection
from laketier.sources.kafka.decoding import BadValue, Decoded, Decoder, decode_each
from laketier.sources.kafka.formats import read_schema_file
from laketier.sources.kafka.options import KafkaTableOptions
from laketier.sources.kafka.protobuf_types import message_columns, message_of
from laketier.sources.kafka.registry import latest_schema, naming_registry_errors, registry_client


@dataclass(frozen=True)
class ProtobufDecoder(Decoder):
    """``files`` is a serialised FileDescriptorSet."""

    schema: pa.Schema
    files: bytes
    message: str
    framed: bool

    def decode(self, values: Sequence[bytes]) -> Decoded:
        """See `Decoder`. Value by value, as Protobuf's library reads."""
        return decode_each(values, self.schema, _reader_of(self.files, self.message, self.framed, os.getpid()))


def make_protobuf_decoder(
    topic: str, options: KafkaTableOptions, connection: Connection, framed: bool
) -> ProtobufDecoder:
    """Raises `ConfigError` for descriptors that are none, or a message that can't be columns, and `StorageError`."""
    if options.schema_file is not None:
        where = options.schema_file
        files = read_schema_file(topic, options.schema_file)
    else:
        where = options.subject or f"{topic}-value"
        files = _from_registry(connection, where)
    message = message_of(files, options.message, where)
    schema = pa.schema([pa.field(name, column.kind) for name, column in message_columns(message, where).items()])
    return ProtobufDecoder(schema, files, message.full_name, framed)


def _from_registry(connection: Connection, subject: str) -> bytes:
    """The newest schema and all that it imports, as a serialised FileDescriptorSet, dependencies first."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

    client = registry_client(connection)
    files = FileDescriptorSet()
    seen: set[str] = set()

    def add(schema: Any, name: str | None) -> None:
        for reference in schema.references or ():
            if reference.name not in seen:
                seen.add(reference.name)
                add(client.get_version(reference.subject, reference.version, fmt="serialized").schema, reference.name)
        file = FileDescriptorProto.FromString(base64.b64decode(schema.schema_str))
        # A registry keeps a file under the name that others import it by, not under the one that it was made with.
        file.name = name or file.name or "value.proto"
        files.file.append(file)

    newest = latest_schema(connection, subject, "serialized")
    with naming_registry_errors(connection, f"what {subject!r} imports was asked for"):
        add(newest, None)
    return files.SerializeToString()


@functools.lru_cache(maxsize=32)
def _reader_of(files: bytes, name: str, framed: bool, _process: int) -> Callable[[bytes], dict[str, Any]]:
    from google.protobuf.message import DecodeError
    from google.protobuf.message_factory import GetMessageClass

    message = message_of(files, name, name)
    columns = message_columns(message, name)
    kind = GetMessageClass(message)
    parse = _unframed(kind) if framed else kind.FromString

    def read(value: bytes) -> dict[str, Any]:
        try:
            parsed = parse(value)
        except DecodeError as error:
            raise BadValue(f"the value is no {name}: {error}") from None
        return {column: reader.read(parsed) for column, reader in columns.items()}

    return read


def _unframed(kind: Any) -> Callable[[bytes], Any]:
    from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer

    # Without the registry: a message is read by the table's own descriptor, whatever the producer's was.
    deserialize = ProtobufDeserializer(kind, {"use.deprecated.format": False})

    def parse(value: bytes) -> Any:
        try:
            return deserialize(value, None)
        except Exception as error:  # noqa: BLE001 - whatever a library raises on bytes that are no frame
            raise BadValue(
                f"the value is no framed message: {str(error) or type(error).__name__}", frame_id(value)
            ) from None

    return parse
