"""JSON and CSV: one record a line."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pc_csv
import pyarrow.json as pc_json
import pyarrow.types as pt

from laketier.sources.landing.options import ExtraColumns

_AS_TEXT = (pt.is_date, pt.is_time)
"""Types that Arrow's JSON reader takes as numbers only; people write them as text."""


class JsonLines:
    """One object a line. ``schema`` None: columns and types as they are found."""

    def __init__(self, schema: pa.Schema | None, extra: ExtraColumns) -> None:
        self._schema = schema
        parsed = None
        if schema is not None:
            parsed = pa.schema([f.with_type(pa.string()) if _is_text(f.type) else f for f in schema])
        unexpected = "infer" if schema is None else "error" if extra is ExtraColumns.FAIL else "ignore"
        self._options = pc_json.ParseOptions(explicit_schema=parsed, unexpected_field_behavior=unexpected)

    def suspicious(self, lines: Any) -> Any:
        """Arrow's reader takes a bare ``null`` for a record, or crashes on it, so it must not see one."""
        return pc.or_(
            pc.invert(pc.match_substring_regex(lines, r"^\s*\{")), pc.match_substring_regex(lines, r"\}\s*null")
        )

    def refusal(self, line: bytes) -> str | None:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            return f"it is not JSON: {error}"
        return None if isinstance(value, dict) else f"it is not a JSON object: {type(value).__name__}"

    def parse(self, block: bytes) -> pa.Table:
        options = pc_json.ReadOptions(use_threads=False, block_size=len(block) + 1)
        table = pc_json.read_json(io.BytesIO(block), read_options=options, parse_options=self._options)
        if self._schema is None:
            return table
        return pa.table([_cast(table.column(f.name), f.type) for f in self._schema], schema=self._schema)


class CsvLines:
    """Values between delimiters. ``names`` are the columns of the file, ``schema`` those of the table, None to find
    out their types. Unquoted nothing is null; a value can't hold the end of a line."""

    def __init__(self, names: Sequence[str], schema: pa.Schema | None, delimiter: str) -> None:
        self._names = list(names)
        self._parse = pc_csv.ParseOptions(delimiter=delimiter)
        wanted = [] if schema is None else [name for name in schema.names if name in self._names]
        self._convert = pc_csv.ConvertOptions(
            column_types=None if schema is None else {name: schema.field(name).type for name in wanted},
            include_columns=wanted,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )

    def suspicious(self, lines: Any) -> Any:
        """Arrow's reader takes an open quote as closed where the block ends, and so differs from block to block."""
        return pc.equal(pc.bit_wise_and(pc.count_substring(lines, b'"'), 1), 1)

    def refusal(self, line: bytes) -> str | None:
        return "a quote in it is not closed (a value can't hold the end of a line)"

    def parse(self, block: bytes) -> pa.Table:
        options = pc_csv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=self._names)
        return pc_csv.read_csv(
            io.BytesIO(block), read_options=options, parse_options=self._parse, convert_options=self._convert
        )


def header_of(line: bytes, delimiter: str) -> list[str]:
    """The names in the first line of a CSV file. Raises ``ValueError`` for what can't be one."""
    names = next(csv.reader([line.decode("utf-8-sig").rstrip("\r\n")], delimiter=delimiter), [])
    doubled = sorted({name for name in names if names.count(name) > 1})
    if not names or doubled:
        raise ValueError(f"its header names {doubled} twice" if doubled else "it has no header")
    return names


def unreadable_columns(parser_of: Any, schema: pa.Schema) -> list[str]:
    """The columns whose types the format's reader does not know."""
    unknown = []
    for field in schema:
        parser, probe = parser_of(pa.schema([field]))
        try:
            parser.parse(probe)
        except pa.ArrowNotImplementedError:
            unknown.append(field.name)
    return unknown


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if pt.is_time(kind):  # Arrow reads a time of day from text only with a day before it
        column = pc.binary_join_element_wise("1970-01-01T", column, "").cast(pa.timestamp(kind.unit))
    return column.cast(kind)


def _is_text(kind: pa.DataType) -> bool:
    return any(is_kind(kind) for is_kind in _AS_TEXT)
