"""Files of lines: written through a digest, read a block of whole lines at a time."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import pyarrow as pa

from laketier.kit.parquet import check_level
from laketier.spi import ConfigError, CorruptTable
from laketier_localfile.file_formats.interface import Described
from laketier_localfile.file_formats.whole import HashedSink, RunningStats, pieces
from laketier_localfile.options import LocalFileOptions, TextCompression

_PIECE_ROWS = 65_536
_PIECE_BYTES = 16 << 20
_BLOCK = 8 << 20
_CODECS = {".gz": "gzip", ".zst": "zstd"}

Encode = Callable[[pa.Table], pa.Buffer]


class Squeeze(Protocol):
    """A codec of a whole file, as `zlib.compressobj` has it."""

    def compress(self, data: Any, /) -> bytes:
        """What is ready of ``data`` and of what came before."""

    def flush(self) -> bytes:
        """The end."""


class Zstd:
    """A frame for each piece: pyarrow's stream takes no level, and all readers take frames one after the other."""

    def __init__(self, level: int | None) -> None:
        self._codec = pa.Codec("zstd", level)

    def compress(self, data: Any) -> bytes:
        compressed: bytes = self._codec.compress(data, asbytes=True)
        return compressed

    def flush(self) -> bytes:
        return b""


def suffix_of(base: str, options: LocalFileOptions) -> str:
    """``base`` and what `LocalFileOptions.text_compression` adds to it."""
    return base + {TextCompression.GZIP: ".gz", TextCompression.ZSTD: ".zst"}.get(options.text_compression, "")


def check_plain(name: str, options: LocalFileOptions) -> None:
    """Raise `ConfigError` for files that a codec makes: what it holds back is not in the file yet."""
    if options.text_compression is not TextCompression.NONE:
        raise ConfigError(
            f"lake.localfile.open-files is true, and files of {name} with {options.text_compression.value} can't stay "
            "open across epochs",
            why="such a file can't be read before its codec has ended",
            fix="Set lake.localfile.text-compression to none, or leave open-files out: small files are then written as "
            "one (lake.localfile.fold-files).",
        )


def check_text_level(options: LocalFileOptions) -> None:
    """Raise `ConfigError` for a level that the codec of text does not have. Driver."""
    if options.text_compression is not TextCompression.NONE:
        check_level(options.text_compression.value, options.compression_level)


def squeeze_of(options: LocalFileOptions) -> Squeeze | None:
    """The codec that the options ask for, for one file."""
    level = options.compression_level
    if options.text_compression is TextCompression.GZIP:
        return zlib.compressobj(zlib.Z_DEFAULT_COMPRESSION if level is None else level, wbits=31)
    return Zstd(level) if options.text_compression is TextCompression.ZSTD else None


class GrowingText:
    """A `GrowingFile` of lines, which ``encode`` makes of rows; ``head`` is the file's first line. Its end is a
    `Described`."""

    def __init__(
        self, stream: pa.NativeFile, schema: pa.Schema, *, encode: Encode, squeeze: Squeeze | None, head: bytes = b""
    ) -> None:
        self._sink = HashedSink(stream)
        self._stats = RunningStats(schema)
        self._encode = encode
        self._squeeze = squeeze
        self.head = len(head)
        if head:
            self._put(head)

    def write(self, table: pa.Table) -> None:
        """Some thousand rows at a time, as text takes several times the memory."""
        self._stats.add(table)
        for piece in pieces(table, _PIECE_ROWS, _PIECE_BYTES):
            self._put(self._encode(piece))

    def tell(self) -> int:
        return self._sink.tell()

    def close(self) -> Described:
        if self._squeeze is not None:
            self._sink.write(self._squeeze.flush())
        return Described(self._sink.digest(), self._stats.result())

    def so_far(self) -> Described:
        """See `laketier_localfile.file_formats.interface.AppendableFile`."""
        return Described(self._sink.digest(), self._stats.result())

    def abandon(self) -> None:
        """The end is left out by not being written."""

    def _put(self, text: Any) -> None:
        self._sink.write(text if self._squeeze is None else self._squeeze.compress(text))


def text_blocks(file: pa.NativeFile, path: str, *, quotes: bool = False) -> Iterator[bytes]:
    """The lines of a file, in blocks of about 8 MiB; a longer line is a block of its own. With ``quotes``, an end of a
    line between two of them ends none. Each block ends with a line feed. Raises `CorruptTable` for a file that ends
    otherwise: none of ours does, and where no manifest is left to tell a digest, this tells that rows are gone."""
    codec = next((codec for end, codec in _CODECS.items() if path.endswith(end)), None)
    lines = file if codec is None else pa.CompressedInputStream(file, codec)
    begun: list[bytes] = []
    is_open = False
    while chunk := lines.read(_BLOCK):
        end, after = chunk.rfind(b"\n"), 0
        if quotes:
            end, after = _end_of_record(chunk, is_open)
        if end < 0:
            begun.append(chunk)
            is_open = bool((is_open + after) % 2)
            continue
        yield b"".join((*begun, chunk[: end + 1]))
        begun, is_open = [chunk[end + 1 :]], bool(after % 2)
    if any(begun):
        raise CorruptTable("the file ends within a line, so its end is cut off")


def _end_of_record(chunk: bytes, is_open: bool) -> tuple[int, int]:
    """The place of the last line feed that no quotes are around, -1 for none, and how many quotes come after it.
    ``is_open``: whether ``chunk`` begins within quotes."""
    before = is_open + chunk.count(b'"')
    end, after, upto = chunk.rfind(b"\n"), 0, len(chunk)
    while end >= 0:
        after += chunk.count(b'"', end + 1, upto)
        if (before - after) % 2 == 0:
            return end, after
        end, upto = chunk.rfind(b"\n", 0, end), end
    return -1, before - is_open
