"""Lines of text that others wrote, read as strictly as those of a landing zone: a line that is no record is an error.

What plain readers take for other rows than laketier would, or one of them for rows and another for none, is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from laketier.codecs.bounds import RECORD_BYTES
from laketier.codecs.csv_values import CsvDecoder, header_of, refuse_values
from laketier.codecs.decoding import BadValue, Decoder
from laketier.codecs.expansion import BoundedStream
from laketier.codecs.inference import Given, inferred_csv, inferred_json
from laketier.codecs.json_values import JsonDecoder
from laketier.codecs.lines import LineBlock, parse_lines, read_blocks
from laketier.tables.inference import SchemaSet
from laketier.tables.promotion import Spelling

CODECS = {".gz": "gzip", ".zst": "zstd"}

_STRING = re.compile(rb'"(?:[^"\\\n]++|\\.)*+"')
_NO_NUMBER = re.compile(rb"NaN|Infinity")
_OTHER_DELIMITERS = ";\t|"
_DOCUMENT_BYTES = 1 << 20


def json_schema(
    file: pa.NativeFile, path: str, size: int, given: Given | None, *, own: bool = False
) -> pa.Schema | None:
    """The columns of all lines, null for those without a value. None where there are no records. ``given``: types that
    the user chose. ``own``: bare NaN is no foreign custom, and days and moments stay texts: a text that looks like one
    is no other value then. Raises `BadValue`, ``ArrowInvalid`` and `IncompatibleData`."""
    found = SchemaSet(Spelling.JSON)
    for block in _blocks(file, path, size):
        if not own:
            _refuse_odd_json(block)
        for place, schema in inferred_json(block.data, block.first, given, times=not own):
            found.add(schema, path, place)
    return found.joined() if found.files else None


def json_rows(file: pa.NativeFile, path: str, size: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows as these columns. Raises as `json_schema`."""
    decoder = JsonDecoder(schema, record_bytes=RECORD_BYTES)
    yield from _rows(_blocks(file, path, size), lambda _: (decoder, 0), _refuse_odd_json)


def csv_schema(file: pa.NativeFile, path: str, size: int, given: Given) -> pa.Schema | None:
    """As `json_schema`; in CSV all columns are in the first line."""
    found = SchemaSet(Spelling.CSV)
    names: list[str] = []
    for block in _blocks(file, path, size):
        skipped = 0
        if not names:
            names, skipped = _header(block.data)
        _refuse_blank(block, skipped)
        first = block.first + block.data.count(b"\n", 0, skipped)
        for place, schema in inferred_csv(block.data[skipped:], first, names, ",", given):
            found.add(schema, path, place)
    return found.joined() if found.files else None


def csv_rows(file: pa.NativeFile, path: str, size: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """As `json_rows`."""

    def decoder(block: bytes) -> tuple[Decoder, int]:
        names, skipped = _header(block)
        return CsvDecoder(schema, tuple(names), record_bytes=RECORD_BYTES), skipped

    yield from _rows(_blocks(file, path, size), decoder, lambda _: None)


def _blocks(file: pa.NativeFile, path: str, size: int) -> Iterator[LineBlock]:
    file.seek(0)
    codec = next((codec for end, codec in CODECS.items() if path.endswith(end)), None)
    stream: Any = file
    if codec is not None:
        stream = BoundedStream(pa.CompressedInputStream(file, codec), size)
    for block in read_blocks(stream, longest=RECORD_BYTES, to_its_end=False):
        if block.long:
            raise BadValue(f"its line {block.first:,} has more than {RECORD_BYTES:,} bytes")
        yield block


def _rows(
    blocks: Iterator[LineBlock],
    begun: Callable[[bytes], tuple[Decoder, int]],
    check: Callable[[LineBlock], None],
) -> Iterator[pa.RecordBatch]:
    def refuse(line: int, _: bytes | None, why: str) -> None:
        raise BadValue(f"its line {line:,}: {why}")

    decoder: Decoder | None = None
    for block in blocks:
        check(block)
        skipped = 0
        if decoder is None:
            decoder, skipped = begun(block.data)
        first = block.first + block.data.count(b"\n", 0, skipped)
        yield from parse_lines(block.data[skipped:], first, decoder, refuse)


def _refuse_odd_json(block: LineBlock) -> None:
    if block.first == 1:
        _refuse_one_document(block.data)
    if (b"NaN" in block.data or b"Infinity" in block.data) and (
        found := _NO_NUMBER.search(_STRING.sub(b'""', block.data))
    ):
        raise BadValue(f"it holds a bare {found[0].decode()}, which JSON has not, and which many readers refuse")


def _refuse_one_document(data: bytes) -> None:
    """What tools call JSON, too: an array of records, or one document over many lines."""
    start = data.lstrip()
    if start[:1] == b"[":
        raise BadValue("it is one JSON array, and no lines of JSON objects")
    line = start.split(b"\n", 1)[0].strip()
    if start[:1] == b"{" and line[-1:] != b"}" and len(data) <= _DOCUMENT_BYTES:
        try:
            json.JSONDecoder().raw_decode(start.decode("utf-8", "replace"))
        except ValueError:
            return  # the decoder says what is wrong
        raise BadValue("its JSON documents take several lines each, and no line of their own")


def _header(block: bytes) -> tuple[list[str], int]:
    """The names in the first line, and how many bytes it takes."""
    skipped = block.find(b"\n") + 1 or len(block)
    line = block[:skipped]
    if not line.strip():
        raise BadValue("its first line is blank, and should name the columns")
    if b"\0" in line:
        raise BadValue("it is no UTF-8 text")
    try:
        names = header_of(line, ",")
    except ValueError as error:  # of its encoding, too
        raise BadValue(str(error)) from None
    refuse_values(names)
    other = next((mark for mark in _OTHER_DELIMITERS if len(names) == 1 and mark in names[0]), None)
    if other is not None:
        raise BadValue(f"its values are parted by {other!r} as it seems, and by no comma")
    return names, skipped


def _refuse_blank(block: LineBlock, skipped: int) -> None:
    """Some readers take a blank line for a row of nulls, and others for none."""
    lines = block.data[skipped:].split(b"\n")
    if not lines[-1]:
        lines.pop()
    for at, line in enumerate(lines):
        if not line.strip(b"\r"):
            number = block.first + block.data.count(b"\n", 0, skipped) + at
            raise BadValue(f"its line {number:,} is blank, which some readers take for a row, and others do not")
