"""The fields of a protobuf message, as far as Lance says something in that form only."""

from __future__ import annotations

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def fields(message: bytes) -> list[tuple[int, int | bytes]]:
    """The number and the value of each field of a message, in its order: an integer for a varint, bytes for the rest.
    Raises `ValueError` for what is no message."""
    found: list[tuple[int, int | bytes]] = []
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        if key & 7 == _VARINT:
            value, at = _varint(message, at)
            found.append((key >> 3, value))
            continue
        if key & 7 == _BYTES:
            size, at = _varint(message, at)
        elif key & 7 in (_FIXED64, _FIXED32):
            size = 8 if key & 7 == _FIXED64 else 4
        else:
            raise ValueError(f"field {key >> 3} is of the unknown form {key & 7}")
        if at + size > len(message):
            raise ValueError(f"field {key >> 3} ends after the message")
        found.append((key >> 3, message[at : at + size]))
        at += size
    return found


def field(message: bytes, number: int) -> bytes:
    """The bytes of a field. Raises `ValueError` where the message has none."""
    for each, value in fields(message):
        if each == number and isinstance(value, bytes):
            return value
    raise ValueError(f"the message has no field {number}")


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(message) or shift > 63:
            raise ValueError("a number ends after the message")
        value |= (message[at] & 127) << shift
        shift += 7
        at += 1
        if message[at - 1] < 128:
            return value, at
