"""Text whose records are lines. A block of lines is parsed at once; only when that fails is the bad line looked for,
by halves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

BLOCK_BYTES = 8 * 1024 * 1024
_BLANK = r"^\s*$"


class ParseLines(Protocol):
    """How the lines of one format become rows."""

    def suspicious(self, lines: Any) -> Any:
        """A mask of the lines that the parser must not see before `refusal` has."""

    def refusal(self, line: bytes) -> str | None:
        """Why a suspicious line is no record, None when it is one."""

    def parse(self, block: bytes) -> pa.Table:
        """Rows of many lines. Raises ``ArrowInvalid``, and ``ArrowNotImplementedError`` for a type it can't read."""


OnBadLine = Callable[[int, bytes, str], None]
"""Gets the number of the line (from 1), its bytes, and why it is no record."""


def read_blocks(stream: Any, size: int = BLOCK_BYTES) -> Iterator[bytes]:
    """The content of ``stream`` in blocks that end where a line does. A line is never cut, however long."""
    carried: list[bytes] = []
    while data := stream.read(size):
        cut = data.rfind(b"\n") + 1
        if not cut:
            carried.append(data)
            continue
        yield b"".join((*carried, data[:cut]))
        carried = [data[cut:]] if cut < len(data) else []
    if carried:
        yield b"".join(carried)


def parse_lines(block: bytes, first: int, parser: ParseLines, on_bad: OnBadLine) -> Iterator[pa.Table]:
    """The rows of a block, one for each line that is not blank and not bad, in order. ``first``: the number of its
    first line."""
    lines = pc.split_pattern(pa.array([block], pa.large_binary()), b"\n").flatten()
    blank = pc.match_substring_regex(lines, _BLANK)
    suspicious = pc.and_not(parser.suspicious(lines), blank)
    if not pc.any(suspicious).as_py():
        records = len(lines) - pc.sum(blank).as_py()
        table = _rows(block, records, parser) if records else None
        if table is None:
            return
        if isinstance(table, pa.Table):
            yield table
            return
    parts = block.split(b"\n")
    good: list[int] = []
    for index in pc.indices_nonzero(pc.invert(blank)).to_pylist():
        why = parser.refusal(parts[index]) if suspicious[index].as_py() else None
        if why is None:
            good.append(index)
        else:
            yield from _search(good, parts, first, parser, on_bad)
            good = []
            on_bad(first + index, parts[index], why)
    yield from _search(good, parts, first, parser, on_bad)


def _search(
    indexes: Sequence[int], parts: Sequence[bytes], first: int, parser: ParseLines, on_bad: OnBadLine
) -> Iterator[pa.Table]:
    pending = [indexes] if indexes else []
    while pending:
        some = pending.pop()
        found = _rows(b"\n".join(parts[index] for index in some) + b"\n", len(some), parser)
        if isinstance(found, pa.Table):
            yield found
        elif len(some) == 1:
            on_bad(first + some[0], parts[some[0]], found)
        else:
            middle = len(some) // 2
            pending += [some[middle:], some[:middle]]


def _rows(block: bytes, records: int, parser: ParseLines) -> pa.Table | str:
    """The rows, or why there are not as many as lines."""
    try:
        table = parser.parse(block)
        table.validate(full=True)  # text that is not UTF-8 passes the parser
    except pa.ArrowInvalid as error:
        return str(error)
    if table.num_rows != records:
        return f"it holds {table.num_rows} records, where a line holds one"
    return table
