"""From a table's options to the decoder of its values. Driver: files and the registry's latest schema are read here."""

from __future__ import annotations

import pyarrow as pa

from laketier.codecs.arrow_types import parse_columns
from laketier.codecs.arrow_values import ArrowDecoder, RawDecoder
from laketier.codecs.decoding import Decoder
from laketier.codecs.json_values import JsonDecoder
from laketier.spi import ConfigError
from laketier_kafka.avro_values import make_avro_decoder
from laketier_kafka.connection import Connection
from laketier_kafka.options import Framing, KafkaTableOptions, UnknownFields, ValueFormat
from laketier_kafka.protobuf_values import make_protobuf_decoder
from laketier_kafka.schema_file import read_schema_file


def make_decoder(topic: str, options: KafkaTableOptions, connection: Connection) -> Decoder:
    """Raises `ConfigError` for options that are missing or do not go together, and `StorageError` for a registry that
    does not answer."""
    kind = options.value_format
    if kind is None:
        raise ConfigError(
            "value-format is missing", where=topic, fix=f"Set it to one of {', '.join(f.value for f in ValueFormat)}."
        )
    most = options.max_record_bytes
    _refuse_unused(topic, options, kind)
    match kind:
        case ValueFormat.RAW:
            return RawDecoder(pa.schema([pa.field(options.value_column, pa.binary())]), record_bytes=most)
        case ValueFormat.JSON:
            schema = _declared(topic, options, "columns.<name>")
            ignore, framed = options.unknown_fields is UnknownFields.IGNORE, options.framing is Framing.REGISTRY
            return JsonDecoder(schema, ignore, framed, needs_a_column=True, record_bytes=most).check(where=topic)
        case ValueFormat.ARROW_IPC:
            return ArrowDecoder(_arrow_schema(topic, options), record_bytes=most)
        case ValueFormat.AVRO:
            return make_avro_decoder(topic, options, connection, _framed(topic, options, connection))
        case ValueFormat.PROTOBUF:
            return make_protobuf_decoder(topic, options, connection, _framed(topic, options, connection))


_USES = {
    "columns": (ValueFormat.JSON, ValueFormat.ARROW_IPC),
    "schema_file": (ValueFormat.AVRO, ValueFormat.PROTOBUF, ValueFormat.ARROW_IPC),
    "framing": (ValueFormat.AVRO, ValueFormat.PROTOBUF, ValueFormat.JSON),
    "subject": (ValueFormat.AVRO, ValueFormat.PROTOBUF),
    "message": (ValueFormat.PROTOBUF,),
    "unknown_fields": (ValueFormat.JSON,),
    "value_column": (ValueFormat.RAW,),
}


def _refuse_unused(topic: str, options: KafkaTableOptions, kind: ValueFormat) -> None:
    unset = KafkaTableOptions()
    for name, formats in _USES.items():
        if kind not in formats and getattr(options, name) != getattr(unset, name):
            key = name.replace("_", "-")
            raise ConfigError(
                f"{key} has no meaning for value-format {kind.value}",
                where=topic,
                fix=f"Leave it out; it is for {' and '.join(f.value for f in formats)}.",
            )


def _declared(topic: str, options: KafkaTableOptions, missing: str) -> pa.Schema:
    columns = parse_columns(options.columns, prefix="read.columns.", origin=topic)
    if columns is None:
        kind = options.value_format.value if options.value_format else ""
        raise ConfigError(
            f"value-format {kind} does not say which columns there are",
            where=topic,
            fix=f"Set {missing}, for example columns.id: int64.",
        )
    return columns


def _arrow_schema(topic: str, options: KafkaTableOptions) -> pa.Schema:
    if options.schema_file is None:
        return _declared(topic, options, "columns.<name> or schema-file")
    if options.columns:
        raise ConfigError("columns and schema-file are both given", where=topic, fix="Give one of them.")
    content = read_schema_file(topic, options.schema_file)
    try:
        if content.startswith(b"ARROW1"):
            return pa.ipc.open_file(pa.py_buffer(content)).schema
        return pa.ipc.read_schema(pa.py_buffer(content))
    except (pa.ArrowInvalid, OSError) as error:
        raise ConfigError("schema-file holds no Arrow schema", where=options.schema_file, why=str(error)) from None


def _framed(topic: str, options: KafkaTableOptions, connection: Connection) -> bool:
    """Whether values begin with a schema id."""
    has_registry = any(key == "url" for key, _ in connection.registry)
    framed = has_registry if options.framing is Framing.AUTO else options.framing is Framing.REGISTRY
    if framed and not has_registry:
        raise ConfigError("framing = registry needs a registry", where=topic, fix="Set registry.url of the source.")
    if not framed and options.schema_file is None:
        raise ConfigError(
            "the schema of values is not known",
            where=topic,
            fix="Set schema-file, or registry.url of the source where a registry keeps it.",
        )
    return framed
