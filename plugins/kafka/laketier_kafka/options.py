"""The options of a Kafka cluster, and of one topic in it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from laketier.codecs.bounds import RECORD_BYTES
from laketier.spi import Passthrough, option


class ValueFormat(Enum):
    """How the value of a record is written."""

    JSON = "json"
    AVRO = "avro"
    PROTOBUF = "protobuf"
    ARROW_IPC = "arrow-ipc"
    RAW = "raw"


class Framing(Enum):
    """Whether a value begins with the id of its schema in the registry."""

    AUTO = "auto"
    REGISTRY = "registry"
    NONE = "none"


class UnknownFields(Enum):
    """The treatment of fields of a JSON object that are no columns."""

    IGNORE = "ignore"
    FAIL = "fail"


class Tombstones(Enum):
    """The meaning of a record without a value."""

    BAD_RECORD = "bad-record"
    SKIP = "skip"


class IsolationLevel(Enum):
    """Whether records of transactions that are open or were aborted are read."""

    READ_COMMITTED = "read_committed"
    READ_UNCOMMITTED = "read_uncommitted"


@dataclass(frozen=True)
class KafkaOptions:
    """How to reach the cluster."""

    bootstrap_servers: str = option("", "Some of the brokers: host:port, separated by commas. Must be given.")
    timeout_seconds: float = option(30.0, "How long a broker or a registry may stay silent before that is an error.")
    client: Passthrough = option(
        Passthrough(), "Handed to librdkafka: client.security.protocol, client.sasl.*, client.ssl.*, …"
    )
    registry: Passthrough = option(
        Passthrough(), "Handed to the schema registry's client: registry.url, registry.basic.auth.user.info, …"
    )


@dataclass(frozen=True)
class KafkaTableOptions:
    """How the records of a topic are read."""

    value_format: ValueFormat | None = option(None, "How values are written. Must be given.")
    columns: Passthrough = option(
        Passthrough(), "The Arrow type of a column: columns.id: int64. For json, and arrow-ipc without a schema-file."
    )
    schema_file: str | None = option(
        None, "The schema of values: .avsc for avro, a descriptor set for protobuf, a schema or stream for arrow-ipc."
    )
    framing: Framing = option(
        Framing.AUTO, "Whether values begin with a schema id. auto: for avro and protobuf with a registry.url."
    )
    subject: str | None = option(None, "Where the registry keeps the schema; <topic>-value unless given.")
    message: str | None = option(None, "The full name of the protobuf message; the file's first unless given.")
    unknown_fields: UnknownFields = option(
        UnknownFields.IGNORE, "Whether a JSON object with fields that are no columns is a bad record."
    )
    tombstones: Tombstones = option(Tombstones.BAD_RECORD, "What a record without a value is. raw: a null.")
    value_column: str = option("value", "The column of raw values.")
    isolation_level: IsolationLevel = option(
        IsolationLevel.READ_COMMITTED, "Whether transactions that are not committed are read."
    )
    max_record_bytes: int = option(
        RECORD_BYTES, "A record whose value has more bytes is a bad record. 64 MiB unless given.", least=1
    )
    split_offsets: int = option(1_000_000, "About how many offsets one task reads.", least=1)
    include_key: bool = option(False, "Add the key of records, as bytes.")
    include_headers: bool = option(False, "Add the headers of records, as a list of key and value.")
    include_timestamp: bool = option(False, "Add the time of records, as timestamp[ms, UTC].")
    include_partition: bool = option(False, "Add the partition of records, as int32.")
    include_offset: bool = option(False, "Add the offset of records, as int64.")
    key_column: str = option("_key", "Its name.")
    headers_column: str = option("_headers", "Its name.")
    timestamp_column: str = option("_timestamp", "Its name.")
    partition_column: str = option("_partition", "Its name.")
    offset_column: str = option("_offset", "Its name.")
