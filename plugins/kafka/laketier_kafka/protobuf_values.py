"""Protobuf messages framed for a registry, and which decoder a topic of Protobuf needs."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from laketier.codecs.decoding import BadValue, Decoded, Decoder, decode_each
from laketier.codecs.protobuf_values import ProtobufDecoder, columns_of, reader_of
from laketier.codecs.said import said
from laketier_kafka.avro_values import frame_id
from laketier_kafka.connection import Connection
from laketier_kafka.options import KafkaTableOptions
from laketier_kafka.registry import latest_schema, naming_registry_errors, registry_client
from laketier_kafka.schema_file import read_schema_file


@dataclass(frozen=True)
class FramedProtobufDecoder(Decoder):
    """``files`` is a serialised FileDescriptorSet."""

    schema: pa.Schema
    files: bytes = field(repr=False)
    message: str

    def read(self, values: Sequence[bytes]) -> Decoded:
        """See `Decoder.read`. Value by value, as Protobuf's library reads."""
        return decode_each(values, self.schema, reader_of(self.files, self.message, _unframed))


def make_protobuf_decoder(topic: str, options: KafkaTableOptions, connection: Connection, framed: bool) -> Decoder:
    """Raises `ConfigError` for descriptors that are none, or a message that can't be columns, and `StorageError`."""
    if options.schema_file is not None:
        where = options.schema_file
        files = read_schema_file(topic, options.schema_file)
    else:
        where = options.subject or f"{topic}-value"
        files = _from_registry(connection, where)
    most = options.max_record_bytes
    if not framed:
        return ProtobufDecoder.of(files, options.message, where=where, record_bytes=most)
    schema, name = columns_of(files, options.message, where)
    return FramedProtobufDecoder(schema, files, name, record_bytes=most)


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


def _unframed(kind: Any) -> Callable[[bytes], Any]:
    from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer

    # Without the registry: a message is read by the table's own descriptor, whatever the producer's was.
    deserialize = ProtobufDeserializer(kind, {"use.deprecated.format": False})

    def parse(value: bytes) -> Any:
        try:
            return deserialize(value, None)
        except Exception as error:  # noqa: BLE001 - whatever a library raises on bytes that are no frame
            raise BadValue(f"the value is no framed message: {said(error)}", frame_id(value)) from None

    return parse
