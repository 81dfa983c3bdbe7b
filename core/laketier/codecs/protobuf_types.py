"""From a Protobuf message to columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from laketier.codecs.bounds import SCHEMA_COLUMNS, SCHEMA_DEPTH
from laketier.codecs.decoding import BadValue
from laketier.spi import ConfigError

_TIMESTAMP = "google.protobuf.Timestamp"
_WRAPPERS = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)


@dataclass(frozen=True)
class MessageColumn:
    """The Arrow type of a field, and what takes it from a message."""

    kind: pa.DataType
    read: Callable[[Any], Any]


def message_of(files: bytes, name: str | None, where: str) -> Any:
    """The descriptor of a message in a serialised FileDescriptorSet; without a name the first of the last file, which
    imports the others. Raises `ConfigError`."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message import DecodeError

    fix = "Make it by `protoc --include_imports --descriptor_set_out=FILE`."
    try:
        found = FileDescriptorSet.FromString(files)
        pool = DescriptorPool()
        for known in _well_known(found):
            pool.Add(known)
        for file in found.file:
            pool.Add(file)
        last = pool.FindFileByName(found.file[-1].name) if found.file else None
    except (DecodeError, TypeError, KeyError, ValueError) as error:
        raise ConfigError("the Protobuf descriptors can't be read", where=where, why=str(error), fix=fix) from None
    if last is None or (name is None and not last.message_types_by_name):
        raise ConfigError("the Protobuf descriptors hold no message", where=where, fix=fix)
    if name is None:
        return next(iter(last.message_types_by_name.values()))
    try:
        return pool.FindMessageTypeByName(name)
    except KeyError:
        known_names = ", ".join(sorted(message.full_name for message in last.message_types_by_name.values()))
        raise ConfigError(f"there is no message {name!r}", where=where, fix=f"There are {known_names}.") from None


def _well_known(files: Any) -> list[Any]:
    """Google's own files where some are imported and not given: a registry does not keep them."""
    import importlib

    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    given = {file.name for file in files.file}
    found = []
    for name in sorted({imported for file in files.file for imported in file.dependency} - given):
        if name.startswith("google/protobuf/"):
            module = importlib.import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
            proto = FileDescriptorProto()
            module.DESCRIPTOR.CopyToProto(proto)
            found.append(proto)
    return found


def message_columns(message: Any, where: str) -> Mapping[str, MessageColumn]:
    """A column for each field. Raises `ConfigError` for a message that contains itself, and for messages that name each
    other so often that they become any number of columns."""
    return _Columns(where).of(message)


class _Columns:
    def __init__(self, where: str) -> None:
        self._where = where
        self._inside: list[str] = []
        self._count = 0

    def of(self, message: Any) -> Mapping[str, MessageColumn]:
        if message.full_name in self._inside:
            raise self._refusal(f"the message {message.full_name} contains itself")
        if len(self._inside) > SCHEMA_DEPTH:
            raise self._refusal(f"its messages are nested more than {SCHEMA_DEPTH} deep")
        self._inside.append(message.full_name)
        found = {field.name: self._column(field) for field in message.fields}
        self._inside.pop()
        return found

    def _column(self, field: Any) -> MessageColumn:
        self._count += 1
        if self._count > SCHEMA_COLUMNS:
            raise self._refusal(f"it becomes more than {SCHEMA_COLUMNS:,} columns, those inside of others counted")
        name = field.name
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            return self._map(field)
        one = self._one(field)
        if field.is_repeated:
            return MessageColumn(
                pa.list_(one.kind), lambda message: [one.read(item) for item in getattr(message, name)]
            )
        if field.has_presence:
            return MessageColumn(
                one.kind, lambda message: one.read(getattr(message, name)) if message.HasField(name) else None
            )
        return MessageColumn(one.kind, lambda message: one.read(getattr(message, name)))

    def _map(self, field: Any) -> MessageColumn:
        name = field.name
        key = self._one(field.message_type.fields_by_name["key"])
        value = self._one(field.message_type.fields_by_name["value"])

        def pairs(message: Any) -> list[Any]:
            entries = getattr(message, name)
            return sorted((one, value.read(entries[one])) for one in entries)

        return MessageColumn(pa.map_(key.kind, value.kind), pairs)

    def _one(self, field: Any) -> MessageColumn:
        """Of a value of the field itself, be it repeated or not."""
        if field.enum_type is not None:
            names = {number: value.name for number, value in field.enum_type.values_by_number.items()}
            return MessageColumn(pa.string(), lambda value: names.get(value, str(value)))
        if field.message_type is None:
            return MessageColumn(_scalars(field)[field.cpp_type, field.type == field.TYPE_BYTES], lambda value: value)
        full_name = field.message_type.full_name
        if full_name == _TIMESTAMP:
            return MessageColumn(pa.timestamp("ns", "UTC"), _nanoseconds)
        if full_name in _WRAPPERS:
            wrapped = self._one(field.message_type.fields_by_name["value"])
            return MessageColumn(wrapped.kind, lambda value: value.value)
        columns = self.of(field.message_type)
        kind = pa.struct([pa.field(name, column.kind) for name, column in columns.items()])
        return MessageColumn(kind, lambda value: {name: column.read(value) for name, column in columns.items()})

    def _refusal(self, what: str) -> ConfigError:
        return ConfigError(what, where=self._where, fix="Read values as raw, or change the schema.")


def _nanoseconds(value: Any) -> int:
    if not 0 <= value.nanos < 1_000_000_000:
        raise BadValue(f"a Timestamp has {value.nanos} nanoseconds, and they count from 0 to 999,999,999")
    found: int = value.seconds * 1_000_000_000 + value.nanos
    if not -(2**63) <= found < 2**63:
        raise BadValue(f"a Timestamp is {value.seconds} s since 1970, beyond the years 1677 to 2262 of a timestamp[ns]")
    return found


def _scalars(field: Any) -> Mapping[tuple[int, bool], pa.DataType]:
    return {
        (field.CPPTYPE_INT32, False): pa.int32(),
        (field.CPPTYPE_INT64, False): pa.int64(),
        (field.CPPTYPE_UINT32, False): pa.uint32(),
        (field.CPPTYPE_UINT64, False): pa.uint64(),
        (field.CPPTYPE_DOUBLE, False): pa.float64(),
        (field.CPPTYPE_FLOAT, False): pa.float32(),
        (field.CPPTYPE_BOOL, False): pa.bool_(),
        (field.CPPTYPE_STRING, False): pa.string(),
        (field.CPPTYPE_STRING, True): pa.binary(),
    }
