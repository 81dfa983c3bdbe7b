"""Thrift's compact protocol, as far as the headers of Parquet's pages need it."""

from __future__ import annotations

import struct
from typing import Any

_DEEPEST = 16
_STOP, _TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(13)


def read_struct(data: bytes) -> tuple[dict[int, Any], int]:
    """The fields of the struct that ``data`` begins with, and how many bytes it takes. Raises ``IndexError`` when
    there are too few, and for what is none."""
    reader = _Reader(data)
    return reader.struct(0), reader.at


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def struct(self, deep: int) -> dict[int, Any]:
        if deep > _DEEPEST:
            raise IndexError("nested too deeply")
        found: dict[int, Any] = {}
        number = 0
        while True:
            head = self._take(1)[0]
            kind = head & 0x0F
            if kind == _STOP:
                return found
            number = number + (head >> 4) if head >> 4 else self._zigzag()
            found[number] = self._value(kind, deep, within=True)

    def _value(self, kind: int, deep: int, *, within: bool) -> Any:
        if kind in (_TRUE, _FALSE):
            return kind == _TRUE if within else self._take(1)[0] == _TRUE
        if kind == _BYTE:
            return self._take(1)[0]
        if kind in (_I16, _I32, _I64):
            return self._zigzag()
        if kind == _DOUBLE:
            return struct.unpack("<d", self._take(8))[0]
        if kind == _BINARY:
            return self._take(self._varint())
        if kind in (_LIST, _SET):
            head = self._take(1)[0]
            count = self._varint() if head >> 4 == 15 else head >> 4
            return [self._value(head & 0x0F, deep + 1, within=False) for _ in range(self._bounded(count))]
        if kind == _STRUCT:
            return self.struct(deep + 1)
        raise IndexError(f"no type {kind}")

    def _bounded(self, count: int) -> int:
        if count > len(self._data):
            raise IndexError("too many items")
        return count

    def _take(self, size: int) -> bytes:
        found = self._data[self.at : self.at + size]
        if len(found) != size or size < 0:
            raise IndexError("too few bytes")
        self.at += size
        return found

    def _varint(self) -> int:
        value = shift = 0
        while shift < 70:
            byte = self._take(1)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
        raise IndexError("a number is too long")

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
