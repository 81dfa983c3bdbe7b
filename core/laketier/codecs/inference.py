"""The columns of text that does not tell them: those that its lines fit, value by value.

What comes from outside decides how much work this is. So JSON is looked at in pieces: Arrow's reader makes a value for
each line of each field that any line has, and lines may all have fields of their own. And each type that a column may
have is tried on its texts alone, which are parsed once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from laketier.codecs.bounds import CELLS, SCHEMA_COLUMNS, SCHEMA_DEPTH
from laketier.codecs.csv_values import CsvDecoder, blanks_beside, odd_numbers, read_lines
from laketier.codecs.decoding import BLANKS, BadValue, Decoder
from laketier.codecs.json_values import JsonDecoder, depth_of, paths_of, read_documents
from laketier.codecs.said import shown
from laketier.codecs.text_types import as_read, cast_text
from laketier.kit.nested import rebuilt

_LEADING = r"^\s*(\+|-?0[0-9])"
"""Of what is written with digits, and is no number: 007, +4912345678."""
_NO_NUMBER = r"(?i)^\s*[+-]?(nan|inf(inity)?)\s*$"
_NUMBER_FOR_TRUTH = r"^\s*[01]\s*$"
_MAY_BE_TIME = re.compile(r"\s*[0-9]{4}-")
_CHANGED = re.compile(r"Column\(/(.*)\) changed from (\w+) to (\w+) in row (\d+)", re.DOTALL)
_TWICE = re.compile(r"Column\(/(.*)\) was specified twice in row (\d+)", re.DOTALL)
_ANY = 1 << 62
_PIECE = 8 * CELLS
"""Lines times bytes of a piece at most, unless it is one line. A field takes 8 bytes where there are many."""

Given = Mapping[str, pa.DataType]
"""Types that the user chose, of columns."""


def inferred_json(
    data: bytes, first: int, given: Given | None = None, *, times: bool = True
) -> Iterator[tuple[int, pa.Schema]]:
    """Infer columns from lines of JSON, piece by piece.

    Args:
        data: Whole lines.
        first: The number of its first line.
        given: Types that the user chose.
        times: Whether a text that looks like a time is one.

    Yields:
        The number of a piece's first line, and the columns of that piece. A column without any value has the type
        null, as other pieces may tell more.

    Raises:
        BadValue: No columns fit some lines. It has their numbers.
    """
    chosen = pa.schema(list((given or {}).items()))
    for lines, numbers in _pieces(_lines(data, first, BLANKS)):
        # Nothing but objects may come before Arrow's reader, which crashes over a bare null.
        _refuse_bad(JsonDecoder(chosen, record_bytes=_ANY), lines, numbers)
        _refuse_deep(lines, numbers)
        _refuse_wide(lines, numbers)
        block = b"\n".join(lines)
        found = _found(block, numbers, given or {})
        texts = read_documents(block, pa.schema([field.with_type(as_read(field.type)) for field in found]), "error")
        schema = pa.schema(
            [
                field
                if field.name in (given or {})
                else _fitted(field, texts[field.name].combine_chunks())
                if times
                else _without_times(field)
                for field in found
            ]
        )
        _refuse_bad(JsonDecoder(schema, record_bytes=_ANY), lines, numbers)
        yield numbers[0], schema


def inferred_csv(
    data: bytes, first: int, names: Sequence[str], delimiter: str, given: Given | None = None
) -> Iterator[tuple[int, pa.Schema]]:
    """The same for records of a CSV file, whose header named the columns."""
    if len(names) > SCHEMA_COLUMNS:
        raise BadValue(f"its header names {len(names):,} columns, and no more than {SCHEMA_COLUMNS:,} are found")
    known = [*_lines(data, first, blanks_beside(delimiter))]
    if not known:
        return
    lines, numbers = [line for _, line in known], [number for number, _ in known]
    one = pa.schema([(names[0], pa.string())])
    _refuse_bad(CsvDecoder(one, tuple(names), delimiter, record_bytes=_ANY), lines, numbers)
    block = b"\n".join(lines)
    texts = read_lines(block, names, delimiter, {name: pa.string() for name in names})
    chosen = {name: kind for name, kind in (given or {}).items() if name in names}
    found = read_lines(block, names, delimiter, None).schema
    schema = pa.schema(
        [
            field.with_type(chosen[field.name])
            if field.name in chosen
            else field.with_type(_kind_of(field.type, texts[field.name].combine_chunks()))
            for field in found
        ]
    )
    _refuse_bad(CsvDecoder(schema, tuple(names), delimiter, record_bytes=_ANY), lines, numbers)
    yield numbers[0], schema


def _lines(data: bytes, first: int, blanks: bytes) -> Iterator[tuple[int, bytes]]:
    return ((first + at, line) for at, line in enumerate(data.split(b"\n")) if line.strip(blanks))


def _pieces(lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[list[bytes], list[int]]]:
    some: list[bytes] = []
    numbers: list[int] = []
    size = 0
    for number, line in lines:
        if some and (len(some) + 1) * (size + len(line)) > _PIECE:
            yield some, numbers
            some, numbers, size = [], [], 0
        some.append(line)
        numbers.append(number)
        size += len(line)
    if some:
        yield some, numbers


def _found(block: bytes, numbers: Sequence[int], given: Given) -> pa.Schema:
    """What Arrow takes the fields for."""
    schema = pa.schema([(name, as_read(kind)) for name, kind in given.items()])
    try:
        found = read_documents(block, schema, "infer")
    except pa.ArrowInvalid as error:
        raise BadValue(_why(str(error), numbers)) from None
    return pa.schema(
        [
            field.with_type(given.get(field.name, field.type))
            for field in found.schema
            if field.name not in given or _is_there(field.name, found, block)
        ]
    )


def _is_there(name: str, rows: pa.Table, block: bytes) -> bool:
    """Arrow has a column for each field that it was told of."""
    spelled = (json.dumps(name, ensure_ascii=plain).encode("utf-8", "replace") for plain in (True, False))
    return rows[name].null_count < rows.num_rows or any(each in block for each in spelled)


def _why(error: str, numbers: Sequence[int]) -> str:
    if changed := _CHANGED.search(error):
        path, before, after, row = changed.groups()
        return (
            f"its line {numbers[int(row)]:,}: the field {_shown(path)} has a value of the kind {after}, and a line "
            f"before has one of the kind {before}: no column holds both"
        )
    if twice := _TWICE.search(error):
        return f"its line {numbers[int(twice[2])]:,}: the field {_shown(twice[1])} is there twice"
    return f"its lines {numbers[0]:,} to {numbers[-1]:,}: {shown(error)}"


def _shown(path: str) -> str:
    return shown(path.replace("/", ".").replace(".[]", "[]"), 200)


def _fitted(field: pa.Field, values: pa.Array) -> pa.Field:
    """With types that change none of the values. ``values``: its own, with the texts of those that may be times."""
    kind = field.type
    if pt.is_nested(kind):
        inner = iter(values.flatten() if pt.is_struct(kind) else [values.flatten()])
        return field.with_type(rebuilt(kind, lambda child: _fitted(child, next(inner))))
    return field.with_type(_kind_of(kind, values)) if pt.is_temporal(kind) or pt.is_string(kind) else field


def _without_times(field: pa.Field) -> pa.Field:
    kind = field.type
    if pt.is_nested(kind):
        return field.with_type(rebuilt(kind, _without_times))
    return field.with_type(pa.string()) if pt.is_temporal(kind) else field


def _kind_of(kind: pa.DataType, texts: pa.Array) -> pa.DataType:
    """The first type that changes none of the texts. Arrow drops the zone of a time that it finds, and takes much for
    numbers."""
    if pt.is_integer(kind) or pt.is_floating(kind):
        odd = _any(texts, _LEADING) or odd_numbers(texts, kind)
        return pa.string() if odd or (pt.is_floating(kind) and _all(texts, _NO_NUMBER)) else kind
    if pt.is_boolean(kind):
        return pa.string() if _any(texts, _NUMBER_FOR_TRUTH) else kind
    if not (pt.is_temporal(kind) or pt.is_string(kind)):
        return kind
    if not _MAY_BE_TIME.match(pc.first(texts).as_py() or "") and not pt.is_time(kind):
        return pa.string()
    texts = pc.ascii_trim_whitespace(texts) if pt.is_temporal(kind) else texts
    return next((each for each in _times(kind) if _is_cast(texts, each)), pa.string())


def _times(kind: pa.DataType) -> Iterator[pa.DataType]:
    if pt.is_date(kind) or pt.is_time(kind):
        yield kind
        return
    # Of microseconds, though none may be there: who writes some times with a fraction writes whole seconds too.
    for unit in ("us", "ns") if pt.is_timestamp(kind) and kind.unit == "ns" else ("us",):
        yield pa.timestamp(unit)
        yield pa.timestamp(unit, "UTC")


def _is_cast(texts: pa.Array, kind: pa.DataType) -> bool:
    try:
        cast_text(pa.chunked_array([texts]), kind)
    except (pa.ArrowInvalid, BadValue):
        return False
    return True


def _any(texts: pa.Array, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(texts, pattern)).as_py())


def _all(texts: pa.Array, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py())


def _refuse_deep(lines: Sequence[bytes], numbers: Sequence[int]) -> None:
    """Arrow makes a type of each level, and has them all on its stack."""
    for number, line in zip(numbers, lines, strict=True):
        if line.count(b"{") + line.count(b"[") > SCHEMA_DEPTH < depth_of(line):
            raise BadValue(
                f"its line {number:,}: it is nested more than {SCHEMA_DEPTH} deep, too much for columns to be found"
            )


def _refuse_wide(lines: Sequence[bytes], numbers: Sequence[int]) -> None:
    for number, line in zip(numbers, lines, strict=True):
        if line.count(b":") > SCHEMA_COLUMNS and sum(1 for _ in islice(paths_of(line), SCHEMA_COLUMNS + 1)) > (
            SCHEMA_COLUMNS
        ):
            raise BadValue(f"its line {number:,}: it has more than {SCHEMA_COLUMNS:,} fields, too many for columns")


def _refuse_bad(decoder: Decoder, lines: Sequence[bytes], numbers: Sequence[int]) -> None:
    bad = decoder.first_bad(lines)
    if bad is not None:
        raise BadValue(f"its line {numbers[bad.index]:,}: {bad.error}")
