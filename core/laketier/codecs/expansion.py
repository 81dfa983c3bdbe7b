"""Compressed bytes from outside, which may become any number of bytes, within bounds."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from laketier.codecs.bounds import BLOCK_BYTES, EXPANSION, EXPANSION_FROM, MIB
from laketier.codecs.decoding import BadValue

_CRC_BYTES = 4
_AT_ONCE = MIB
_PIECE = 32 * 1024


class Bzip2Stream:
    """The text of a file of bzip2, which may be several streams one after the other, as ``cat`` and parallel programs
    leave it. Arrow's own reader fails at one without text between two others, and calls the file damaged; `bz2.BZ2File`
    takes damage behind a stream for the end of the file."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._engine = bz2.BZ2Decompressor()
        self._begun = False
        self._fetched = memoryview(b"")

    def read(self, size: int) -> bytes:
        """At most so many bytes, none at the end. Raises ``OSError`` without a number for what is damaged or cut off,
        and what the file raises."""
        while True:
            data = b""
            if self._engine.eof:
                data = self._engine.unused_data
                self._engine, self._begun = bz2.BZ2Decompressor(), bool(data)
            if not data and self._engine.needs_input:
                data = self._piece()
                if not data and self._begun:
                    raise OSError("Truncated compressed stream")
                if not data:
                    return b""
                self._begun = True
            found = self._engine.decompress(data, size)
            if found:
                return found

    def _piece(self) -> bytes:
        """What a stream leaves over of it is copied, so of many small streams in a row it must be short."""
        if not self._fetched:
            self._fetched = memoryview(bytes(self._file.read(_AT_ONCE)))
        piece, self._fetched = bytes(self._fetched[:_PIECE]), self._fetched[_PIECE:]
        return piece


class BoundedStream:
    """What ``stream`` gives, as long as it does not give more than ``expansion`` times ``size``, the bytes that it is
    made from. Small files may become anything, up to `EXPANSION_FROM`."""

    def __init__(self, stream: Any, size: int, expansion: int = EXPANSION) -> None:
        self._stream = stream
        self._size = size
        self._expansion = expansion
        self._given = 0

    def read(self, size: int) -> bytes:
        """Raises `BadValue` for what is beyond."""
        data: bytes = self._stream.read(size)
        self._given += len(data)
        if self._given > max(EXPANSION_FROM, self._expansion * self._size):
            raise BadValue(
                f"its {self._size:,} bytes expand to more than {self._given:,}, "
                f"beyond max-expansion = {self._expansion:,}"
            )
        return data


def expand(codec: str, data: bytes, most: int = BLOCK_BYTES) -> bytes:
    """A block of an Avro file. Raises `BadValue` for one that expands beyond ``most`` bytes or is of a codec that
    nobody knows, and what the codec's library raises over damage."""
    known = _CODECS.get(codec)
    if known is None:
        raise BadValue(f"its codec is {codec!r}, and those that can be read are {', '.join(_CODECS)}")
    found = known(data, most)
    if len(found) > most:
        raise BadValue(f"a block of {len(data):,} bytes expands to more than {most:,}")
    return found


def _deflate(data: bytes, most: int) -> bytes:
    engine = zlib.decompressobj(-15)
    found = engine.decompress(data, most + 1)
    return _whole(found, engine.eof, most)


def _bzip2(data: bytes, most: int) -> bytes:
    engine = bz2.BZ2Decompressor()
    found = engine.decompress(data, most + 1)
    return _whole(found, engine.eof, most)


def _xz(data: bytes, most: int) -> bytes:
    engine = lzma.LZMADecompressor(memlimit=max(most, 128 * MIB))
    found = engine.decompress(data, most + 1)
    return _whole(found, engine.eof, most)


def _whole(found: bytes, ended: bool, most: int) -> bytes:
    if not ended and len(found) <= most:
        raise BadValue("a compressed block is cut off")
    return found


def _snappy(data: bytes, most: int) -> bytes:
    body, crc = data[:-_CRC_BYTES], data[-_CRC_BYTES:]
    size = shift = 0
    for byte in body[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    else:
        raise BadValue("a block is no snappy: its length does not end")
    if size > most:
        raise BadValue(f"a block of {len(data):,} bytes expands to {size:,}, more than {most:,}")
    found: bytes = pa.decompress(body, decompressed_size=size, codec="snappy", asbytes=True)
    if zlib.crc32(found) != int.from_bytes(crc, "big"):
        raise BadValue("a block has another checksum")
    return found


def _zstandard(data: bytes, most: int) -> bytes:
    with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
        parts, size = [], 0
        while size <= most and (part := stream.read(min(MIB, most + 1 - size))):
            parts.append(part)
            size += len(part)
    return b"".join(parts)


_CODECS: dict[str, Callable[[bytes, int], bytes]] = {
    "null": lambda data, _: data,
    "deflate": _deflate,
    "bzip2": _bzip2,
    "snappy": _snappy,
    "xz": _xz,
    "zstandard": _zstandard,
}
