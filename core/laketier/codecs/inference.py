"""The columns of text that does not tell them: those that its first lines fit, value by value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from laketier.codecs.bounds import SCHEMA_DEPTH
from laketier.codecs.csv_values import CsvDecoder, blanks_beside, read_lines
from laketier.codecs.decoding import BLANKS, BadValue, Decoder
from laketier.codecs.json_values import JsonDecoder, depth_of, read_documents
from laketier.kit.nested import children, rebuilt

_LEADING_ZERO = r"^\s*-?0[0-9]"
_ANY = 1 << 62


def inferred(block: bytes, names: Sequence[str], delimiter: str | None, *, nulls: bool = False) -> pa.Schema:
    """Of lines of JSON, or with a ``delimiter`` of a CSV file, which has ``names``. What never has a value is text, or
    with ``nulls`` of the type null, as other lines may tell more. Raises `BadValue` and ``ArrowInvalid`` for lines that
    no columns fit."""
    blanks = BLANKS if delimiter is None else blanks_beside(delimiter)
    lines = [line for line in block.split(b"\n") if line.strip(blanks)]
    if not lines:
        raise BadValue("it has no records")
    if delimiter is None:
        # Nothing but objects may come before Arrow's reader, which crashes over a bare null.
        _refuse_bad(JsonDecoder(pa.schema([]), record_bytes=_ANY), lines)
        _refuse_deep(lines)
        found = read_documents(b"\n".join(lines), None, "infer").schema
        schema = pa.schema([_fitting(field, lines, ()) for field in found])
        _refuse_bad(JsonDecoder(schema, record_bytes=_ANY), lines)
        return _with_nulls(schema, found) if nulls else schema
    _refuse_bad(CsvDecoder(pa.schema([(names[0], pa.string())]), tuple(names), delimiter), lines)
    table = read_lines(b"\n".join(lines), names, delimiter, None)
    texts = read_lines(b"\n".join(lines), names, delimiter, {name: pa.string() for name in names})
    schema = pa.schema(
        [
            field.with_type(pa.string())
            if pt.is_integer(field.type) and pc.any(pc.match_substring_regex(texts[field.name], _LEADING_ZERO)).as_py()
            else _fitting(field, lines, tuple(names), delimiter)
            for field in table.schema
        ]
    )
    _refuse_bad(CsvDecoder(schema, tuple(names), delimiter), lines)
    return _with_nulls(schema, table.schema) if nulls else schema


def _with_nulls(schema: pa.Schema, found: pa.Schema) -> pa.Schema:
    """``schema`` with the nulls that Arrow found."""
    return pa.schema([_null_where(column, there) for column, there in zip(schema, found, strict=True)])


def _null_where(column: pa.Field, found: pa.Field) -> pa.Field:
    if pt.is_null(found.type):
        return column.with_type(pa.null())
    if type(column.type) is not type(found.type):
        return column
    inner = iter(children(found.type))
    return column.with_type(rebuilt(column.type, lambda field: _null_where(field, next(inner)[1])))


def _fitting(field: pa.Field, lines: Sequence[bytes], names: tuple[str, ...], delimiter: str = ",") -> pa.Field:
    """With the first type that changes none of the values. Arrow drops the zone of a time that it finds."""
    for kind in _candidates(field.type):
        schema = pa.schema([field.with_type(kind)])
        decoder: Decoder = CsvDecoder(schema, names, delimiter) if names else JsonDecoder(schema, record_bytes=_ANY)
        if not pt.is_temporal(kind) or decoder.takes(lines):
            return field.with_type(kind)
    return field


def _candidates(kind: pa.DataType) -> Iterator[pa.DataType]:
    if pt.is_timestamp(kind):
        for unit in dict.fromkeys((kind.unit, "us", "ns")):
            yield pa.timestamp(unit)
            yield pa.timestamp(unit, "UTC")
    if pt.is_null(kind) or pt.is_timestamp(kind):
        yield pa.string()
        return
    yield _plain(kind)
    yield pa.string()


def _plain(kind: pa.DataType) -> pa.DataType:
    """Times within lists and structs as text."""
    if pt.is_null(kind):
        return pa.string()
    return rebuilt(kind, lambda field: field.with_type(_plain(field.type)))


def _refuse_deep(lines: Sequence[bytes]) -> None:
    """Arrow makes a type of each level, and has them all on its stack."""
    for at, line in enumerate(lines, 1):
        if line.count(b"{") + line.count(b"[") > SCHEMA_DEPTH < depth_of(line):
            raise BadValue(f"record {at}: it is nested more than {SCHEMA_DEPTH} deep, too much for columns to be found")


def _refuse_bad(decoder: Decoder, lines: Sequence[bytes]) -> None:
    bad = decoder.decode(lines).bad
    if bad:
        raise BadValue(f"record {bad[0].index + 1}: {bad[0].error}")
