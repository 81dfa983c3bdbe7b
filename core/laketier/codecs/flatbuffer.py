"""The few fields of Arrow's messages that are looked at before Arrow is; flatbuffers, read with bounds."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """A table of a flatbuffer. Raises ``ValueError`` and ``struct.error`` for what points outside."""

    data: bytes
    at: int

    @classmethod
    def root(cls, data: bytes) -> Table:
        """The one that the buffer is."""
        return cls(data, _unpack(data, 0, "<I"))

    def _place(self, field: int) -> int | None:
        fields = self.at - _unpack(self.data, self.at, "<i")
        entry = 4 + 2 * field
        if entry >= _unpack(self.data, fields, "<H"):
            return None
        offset = _unpack(self.data, fields + entry, "<H")
        return self.at + offset if offset else None

    def number(self, field: int, form: str) -> int:
        """A scalar, 0 where there is none."""
        place = self._place(field)
        return 0 if place is None else _unpack(self.data, place, form)

    def table(self, field: int) -> Table | None:
        """Another table."""
        place = self._place(field)
        return None if place is None else Table(self.data, place + _unpack(self.data, place, "<I"))

    def structs(self, field: int, form: str) -> Iterator[tuple[int, ...]]:
        """A vector of structs."""
        place = self._place(field)
        if place is None:
            return
        start = place + _unpack(self.data, place, "<I")
        count, size = _unpack(self.data, start, "<I"), struct.calcsize(form)
        if start + 4 + count * size > len(self.data):
            raise ValueError("a vector reaches beyond its message")
        yield from struct.iter_unpack(form, self.data[start + 4 : start + 4 + count * size])


def _unpack(data: bytes, at: int, form: str) -> int:
    if at < 0:
        raise ValueError("an offset points outside")
    found: int
    (found,) = struct.unpack_from(form, data, at)
    return found
