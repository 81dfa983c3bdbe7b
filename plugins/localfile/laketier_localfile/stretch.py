"""A stretch of a file's bytes as a file: what was recorded of a file that grows, and not a byte more."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import pyarrow as pa


@dataclass(frozen=True)
class Stretch:
    """The bytes ``start`` to ``end`` of a file, of which the first ``head`` are needed to read any stretch."""

    start: int
    end: int
    head: int = 0

    def bytes_of(self, file: pa.NativeFile) -> pa.NativeFile:
        """Them alone, for a digest."""
        return _as_file(file, [(self.start, self.end)])

    def rows_of(self, file: pa.NativeFile) -> pa.NativeFile:
        """A file that can be read: the head, then what of them is behind it."""
        begin = min(self.head, self.end)
        return _as_file(file, [(0, begin), (max(self.start, begin), self.end)])


def _as_file(file: pa.NativeFile, ranges: list[tuple[int, int]]) -> pa.NativeFile:
    return pa.PythonFile(_Ranges(file, [(start, end) for start, end in ranges if start < end]), "r")


class _Ranges(io.RawIOBase):
    """Some ranges of ``file``, one after the other. Where it is shorter, so is this."""

    def __init__(self, file: pa.NativeFile, ranges: list[tuple[int, int]]) -> None:
        super().__init__()
        self._file = file
        there = file.size()
        self._ranges = [(start, min(end, there)) for start, end in ranges if start < there]
        self._size = sum(end - start for start, end in self._ranges)
        self._place = 0

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        self._place = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._size}[whence]
        return self._place

    def read(self, size: int = -1, /) -> bytes:
        left = self._size - self._place if size < 0 else min(size, self._size - self._place)
        parts: list[bytes] = []
        behind = self._place
        for start, end in self._ranges:
            if left <= 0:
                break
            if behind >= end - start:
                behind -= end - start
                continue
            wanted = min(left, end - start - behind)
            self._file.seek(start + behind)
            data: Any = self._file.read(wanted)
            if len(data) != wanted:
                raise OSError(f"the file became shorter than {end} bytes while it was read")
            parts.append(data)
            left -= wanted
            self._place += wanted
            behind = 0
        return parts[0] if len(parts) == 1 else b"".join(parts)
