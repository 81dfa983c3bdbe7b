"""Text whose records are lines: a stream becomes blocks of lines, a block becomes rows and bad lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from laketier.codecs.bounds import CELLS
from laketier.codecs.decoding import BadValue, Decoder
from laketier.kit.views import only

BLOCK_BYTES = 8 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"
_SAVE = "; save it as UTF-8"
_NO_TEXT = {
    b"\x1f\x8b": "compressed with gzip, and its name does not end in .gz",
    b"\x28\xb5\x2f\xfd": "compressed with zstd, and its name does not end in .zst",
    b"\x04\x22\x4d\x18": "compressed with LZ4, and its name does not end in .lz4",
    **{b"BZh%d1AY&SY" % level: "compressed with bzip2, and its name does not end in .bz2" for level in range(1, 10)},
    b"PK\x03\x04": "a ZIP archive",
    b"PAR1\x15": "a Parquet file",
    b"ARROW1\0\0": "an Arrow file",
    b"Obj\x01": "an Avro file",
    b"\xff\xfe": f"text in UTF-16{_SAVE}",
    b"\xfe\xff": f"text in UTF-16{_SAVE}",
    b"{\0": f"text in UTF-16{_SAVE}",
    b"\0{": f"text in UTF-16{_SAVE}",
}
"""What a file is that begins so. None of these begins a text that people may have meant."""

OnBadLine = Callable[[int, bytes | None, str], None]
"""Gets the number of the line (from 1), its bytes, and why it is no record. None for a line that is too long to
keep."""


@dataclass(frozen=True)
class LineBlock:
    """Whole lines, of which the first has the number ``first``, or one that was too ``long`` to be kept: its size."""

    first: int
    data: bytes = b""
    long: int = 0


def read_blocks(
    stream: Any, size: int = BLOCK_BYTES, longest: int | None = None, *, to_its_end: bool = True
) -> Iterator[LineBlock]:
    """The content of ``stream`` in blocks that end where a line does, without the mark of its byte order. A line is
    never cut; of one with more than ``longest`` bytes only its length is kept, and it takes no more memory than
    that. Without ``to_its_end`` such a line is the last block, with as much of its length as was read: it may take
    hours to the end of one that zeros were squeezed into. Raises `BadValue` for a stream that is no text by its first
    bytes: as lines it would be noise, or rows of it."""
    carried: list[bytes] = []
    carried_bytes, number, begun = 0, 1, False
    too_long = 0
    while data := stream.read(size):
        if not begun:
            while len(data) < len(_BOM) and (more := stream.read(size)):
                data += more
            _refuse_no_text(data)
            data, begun = data.removeprefix(_BOM), True
        if too_long:
            end = data.find(b"\n") + 1
            too_long += end or len(data)
            if not end:
                continue
            yield LineBlock(number, long=too_long - 1)
            number, too_long, data = number + 1, 0, data[end:]
        cut = data.rfind(b"\n") + 1
        if cut:
            whole = b"".join((*carried, data[:cut]))
            yield LineBlock(number, whole)
            number += whole.count(b"\n")
            carried, carried_bytes = [], 0
        if cut < len(data):
            carried.append(data[cut:] if cut else data)
            carried_bytes += len(data) - cut
        if longest is not None and carried_bytes > longest:
            too_long, carried, carried_bytes = carried_bytes, [], 0
            if not to_its_end:
                break
    if too_long:
        yield LineBlock(number, long=too_long)
    elif carried:
        yield LineBlock(number, b"".join(carried))


def _refuse_no_text(data: bytes) -> None:
    kind = next((kind for sign, kind in _NO_TEXT.items() if data.startswith(sign)), None)
    if kind is not None:
        raise BadValue(f"it is {kind}")


def parse_lines(
    block: bytes,
    first: int,
    decoder: Decoder,
    on_bad: OnBadLine,
    refused: Callable[[pa.RecordBatch], Mapping[int, str]] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of a block, one for each line that is not blank and not bad, in order. ``first``: the number of its
    first line. ``refused``: of the rows that it gets, the places of those whose lines are bad all the same, and why."""
    lines = block.split(b"\n")
    if not lines[-1]:
        lines.pop()
    numbers: Sequence[int] = range(first, first + len(lines))
    # A blank line is empty or begins with a blank; both are looked for in the block, which is far faster than by line.
    blanks = decoder.blanks
    if b"" in lines or block[:1].strip(blanks) == b"" or any(b"\n%c" % mark in block for mark in blanks):
        kept = [at for at, line in enumerate(lines) if line.strip(blanks)]
        numbers = [first + at for at in kept]
        lines = [lines[at] for at in kept]
    at_once = max(1, CELLS // columns_in(decoder.schema))
    for start in range(0, len(lines), at_once):
        run = lines[start : start + at_once] if len(lines) > at_once else lines
        decoded = decoder.decode(run)
        for one in decoded.bad:
            on_bad(numbers[start + one.index], run[one.index], one.error)
        rows = decoded.rows
        found = {} if refused is None else refused(rows)
        for at, error in sorted(found.items()):
            on_bad(numbers[start + decoded.index[at]], run[decoded.index[at]], error)
        if found:
            rows = only(rows, pa.array([at not in found for at in range(rows.num_rows)]))
        if rows.num_rows:
            yield rows


def columns_in(schema: pa.Schema) -> int:
    """How many columns it has, with those that are inside of others; at least one."""
    return max(1, sum(_columns_of(field.type) for field in schema))


def _columns_of(kind: pa.DataType) -> int:
    inner = range(kind.num_fields if pt.is_nested(kind) else 0)
    return 1 + sum(_columns_of(kind.field(at).type) for at in inner)
