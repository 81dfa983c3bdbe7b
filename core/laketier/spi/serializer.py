"""Versioned serialisation of objects that cross processes or are stored. Never pickle.

`SimpleVersionedSerializer` is Fluss's (and Flink's) interface. `DataclassSerializer` is the default: canonical JSON
of a frozen dataclass, typed by its annotations. `pack` and `unpack` frame either with a version and a checksum.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import json
import struct
import types
import typing
import zlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import Enum
from typing import Any, Generic, TypeVar

from laketier.spi.errors import SerializationError

E = TypeVar("E")

_MAGIC = b"LKT1"
_HEADER = struct.Struct(">4sII")
_NO_FIELDS: Mapping[str, type] = types.MappingProxyType({})


class SimpleVersionedSerializer(ABC, Generic[E]):
    """Turns an object into bytes and back. Stateless, picklable, used on the driver and on executors."""

    @property
    @abstractmethod
    def version(self) -> int:
        """The version that `serialize` writes. Raise it whenever the meaning of the bytes changes."""

    @abstractmethod
    def serialize(self, value: E) -> bytes:
        """Turn a value into bytes of the current `version`.

        Args:
            value: The value.

        Returns:
            The bytes.
        """

    @abstractmethod
    def deserialize(self, version: int, data: bytes) -> E:
        """Read bytes that `serialize` wrote.

        Args:
            version: The version that they were written in.
            data: The bytes.

        Returns:
            The value.

        Raises:
            SerializationError: The version is unknown, or the bytes are damaged.
        """


def pack(serializer: SimpleVersionedSerializer[E], value: E) -> bytes:
    """Serialise a value into a frame: magic, version, CRC-32, payload.

    Args:
        serializer: The serializer.
        value: The value.

    Returns:
        The frame.
    """
    payload = serializer.serialize(value)
    return _HEADER.pack(_MAGIC, serializer.version, zlib.crc32(payload)) + payload


def unpack(serializer: SimpleVersionedSerializer[E], data: bytes) -> E:
    """Read a frame that `pack` wrote.

    Args:
        serializer: The serializer.
        data: The frame.

    Returns:
        The value.

    Raises:
        SerializationError: The frame, its checksum or its version is wrong.
    """
    if len(data) < _HEADER.size:
        raise SerializationError(f"{len(data)} bytes are too short for a message of laketier")
    magic, version, checksum = _HEADER.unpack_from(data)
    payload = data[_HEADER.size :]
    if magic != _MAGIC:
        raise SerializationError(f"not a message of laketier: it starts with {magic!r}")
    if zlib.crc32(payload) != checksum:
        raise SerializationError("a message was damaged on its way: its checksum differs")
    return serializer.deserialize(version, payload)


class DataclassSerializer(SimpleVersionedSerializer[E]):
    """Serialises a frozen dataclass as canonical JSON. Fields may be str, int, float, bool, bytes, None, an Enum,
    another dataclass, or ``X | None``, ``tuple[X, ...]``, ``tuple[X, Y]`` and ``Mapping[str, X]`` of these.

    It refuses unknown, missing and ill-typed fields: a reader must never guess. ``fields`` are the types of the fields
    that the dataclass leaves open (``Any``).
    """

    def __init__(self, kind: type[E], version: int = 1, **fields: type) -> None:
        self._kind = kind
        self._version = version
        self._fields = fields

    @property
    def version(self) -> int:
        """The version that the constructor got."""
        return self._version

    def serialize(self, value: E) -> bytes:
        """Turn a dataclass into canonical JSON, in UTF-8.

        Args:
            value: An instance of the class itself.

        Returns:
            The JSON.

        Raises:
            SerializationError: The value is of another class, such as a subclass, or a field has a type that JSON can't
                hold.
        """
        if type(value) is not self._kind:
            raise SerializationError(
                f"a {type(value).__name__} was given to the serializer of {self._kind.__name__}",
                why="its reader would refuse the other fields",
                fix=f"Override the serializer of the plugin's object: DataclassSerializer({type(value).__name__}).",
            )
        for name, kind in self._fields.items():
            given = type(getattr(value, name))
            if given is not kind:
                raise SerializationError(
                    f"the {name} of a {self._kind.__name__} is a {given.__name__}, and a {kind.__name__} was declared",
                    why="what reads it would refuse it",
                    fix=f"Declare the type of the {name} where it is given.",
                )
        text = json.dumps(to_plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return text.encode()

    def deserialize(self, version: int, data: bytes) -> E:
        """Read JSON that `serialize` wrote.

        Args:
            version: The version that it was written in.
            data: The JSON.

        Returns:
            The dataclass.

        Raises:
            SerializationError: The version differs, or the JSON is damaged.
        """
        if version != self._version:
            raise SerializationError(
                f"{self._kind.__name__} has version {version}, and this reader knows version {self._version}",
                fix="Run the same laketier and plugin versions on the driver and on all executors.",
            )
        try:
            plain = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise SerializationError(f"{self._kind.__name__} is not JSON", why=str(error)) from error
        result: E = _dataclass_from_plain(self._kind, plain, "$", self._fields)
        return result


def to_plain(value: Any) -> Any:
    """Turn a value into JSON's own types.

    Args:
        value: A frozen dataclass, or a value of one of its field types.

    Returns:
        The value as JSON's types.

    Raises:
        SerializationError: A value has a type that `DataclassSerializer` does not know.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: to_plain(item) for key, item in value.items()}
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise SerializationError(f"{type(value).__name__} is not a type that messages can hold")


def from_plain(kind: Any, plain: Any, where: str = "$") -> Any:
    """Read JSON's own types back into a value.

    Args:
        kind: The annotated type of the value.
        plain: What `to_plain` returned.
        where: The place in the document, for messages.

    Returns:
        The value.

    Raises:
        SerializationError: The document does not fit the type.
    """
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        choices = [choice for choice in typing.get_args(kind) if choice is not type(None)]
        if plain is None and len(choices) < len(typing.get_args(kind)):
            return None
        return from_plain(choices[0], plain, where)
    if origin is tuple:
        arguments = typing.get_args(kind)
        items = _expect(list, plain, where)
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return tuple(from_plain(arguments[0], item, f"{where}[{i}]") for i, item in enumerate(items))
        if len(items) != len(arguments):
            raise SerializationError(f"{where}: expected {len(arguments)} items, found {len(items)}")
        return tuple(
            from_plain(argument, item, f"{where}[{i}]")
            for i, (argument, item) in enumerate(zip(arguments, items, strict=True))
        )
    if isinstance(origin, type) and issubclass(origin, Mapping):
        inner = typing.get_args(kind)[1]
        return {key: from_plain(inner, item, f"{where}.{key}") for key, item in _expect(dict, plain, where).items()}
    if kind is Any:
        return plain
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _dataclass_from_plain(kind, plain, where)
    return _scalar_from_plain(kind, plain, where)


def _dataclass_from_plain(kind: Any, plain: Any, where: str, fields: Mapping[str, type] = _NO_FIELDS) -> Any:
    document = _expect(dict, plain, where)
    hints = {**_hints(kind), **fields}
    names = {f.name for f in dataclasses.fields(kind)}
    if names != document.keys():
        odd = sorted(names.symmetric_difference(document))
        raise SerializationError(f"{where}: fields {odd} of {kind.__name__} are missing or unknown")
    try:
        return kind(**{name: from_plain(hints[name], document[name], f"{where}.{name}") for name in sorted(names)})
    except (TypeError, ValueError, OverflowError) as error:
        raise SerializationError(f"{where}: {kind.__name__} refuses its fields", why=str(error)) from error


@functools.cache
def _hints(kind: type) -> Mapping[str, Any]:
    """The types of a dataclass's fields. Python evaluates their texts each time that it is asked."""
    return typing.get_type_hints(kind)


def _scalar_from_plain(kind: Any, plain: Any, where: str) -> Any:
    if kind is bytes:
        try:
            return base64.b64decode(_expect(str, plain, where), validate=True)
        except ValueError as error:
            raise SerializationError(f"{where}: damaged bytes") from error
    if isinstance(kind, type) and issubclass(kind, Enum):
        try:
            return kind(plain)
        except ValueError as error:
            raise SerializationError(f"{where}: {plain!r} is no {kind.__name__}") from error
    if kind is float and type(plain) is int:
        return float(plain)
    return _expect(kind, plain, where)


def _expect(kind: type, plain: Any, where: str) -> Any:
    if type(plain) is not kind:
        raise SerializationError(f"{where}: expected {kind.__name__}, found {type(plain).__name__}")
    return plain
