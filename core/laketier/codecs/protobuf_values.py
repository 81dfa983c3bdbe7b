"""Protobuf messages, each on its own."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from laketier.codecs.decoding import BadValue, Decoded, Decoder, decode_each
from laketier.codecs.protobuf_misread import misread_check
from laketier.codecs.protobuf_types import message_columns, message_of
from laketier.codecs.said import said


@dataclass(frozen=True)
class ProtobufDecoder(Decoder):
    """``files`` is a serialised FileDescriptorSet, ``message`` the full name of one in it."""

    schema: pa.Schema
    files: bytes = field(repr=False)
    message: str

    @classmethod
    def of(cls, files: bytes, message: str | None, *, where: str, **more: Any) -> ProtobufDecoder:
        """Raises `ConfigError` for descriptors that are none, or a message that can't be columns."""
        schema, name = columns_of(files, message, where)
        return cls(schema, files, name, **more)

    def read(self, values: Sequence[bytes]) -> Decoded:
        """See `Decoder.read`. Value by value, as Protobuf's library reads."""
        return decode_each(values, self.schema, reader_of(self.files, self.message))


def columns_of(files: bytes, message: str | None, where: str) -> tuple[pa.Schema, str]:
    """The columns of a message, and its full name. Raises `ConfigError`."""
    found = message_of(files, message, where)
    columns = message_columns(found, where)
    return pa.schema([pa.field(name, column.kind) for name, column in columns.items()]), found.full_name


@functools.lru_cache(maxsize=32)
def reader_of(
    files: bytes, name: str, unframed: Callable[[Any], Callable[[bytes], Any]] | None = None
) -> Callable[[bytes], dict[str, Any]]:
    """Make the function that reads one value, the bytes of a message, into a dict by column.

    Args:
        files: The serialised `FileDescriptorSet`.
        name: The message's full name.
        unframed: For values that stand in a frame: given the message's class, it makes the function that parses one.
            By default a value is the message alone.
    """
    from google.protobuf.message_factory import GetMessageClass

    message = message_of(files, name, name)
    columns = message_columns(message, name)
    refuse_misread = misread_check(message)
    kind = GetMessageClass(message)
    parse = kind.FromString if unframed is None else unframed(kind)

    def read(value: bytes) -> dict[str, Any]:
        try:
            parsed = parse(value)
        except BadValue:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a library raises on bytes that are no message
            raise BadValue(f"the value is no {name}: {said(error)}") from None
        refuse_misread(parsed)
        return {column: reader.read(parsed) for column, reader in columns.items()}

    return read
