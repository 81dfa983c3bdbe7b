"""JSON objects, read by pyarrow a block at a time.

pyarrow reads a run of documents and does not say which bytes a row came from. Values are joined by a line feed; when
each begins with ``{`` and ends with ``}``, no valid document goes across a joint: ``}`` then ``{`` is valid between
documents only, and a line feed is not valid within a string. Then as many rows as values means one row for each.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from laketier.codecs.decoding import BadValue, Decoded, Decoder, Undecodable, one_batch, undecodable
from laketier.codecs.said import said
from laketier.codecs.text_types import (
    as_read,
    cast_text,
    check_text_types,
    has_large_float,
    is_list,
    large_floats,
    refuse_rounded,
)

_BLANK = b" \t\n\r"
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_TOKEN = re.compile(_STRING.pattern + rb"|[\[\]{}:]", re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_TOLD = 5
_IN_ROW = re.compile(r" in row \d+$")


@dataclass(frozen=True)
class JsonDecoder(Decoder):
    """Each value is one JSON object; its fields are columns by name, a missing one is null. ``unknown_fields``: whether
    an object may have fields that are no columns. ``framed``: each begins with the id of a schema. ``needs_a_column``:
    an object with fields of which none is a column is bad. It would be a row of nulls, and is something else as a rule:
    an envelope around the row, or a record of another topic."""

    schema: pa.Schema
    unknown_fields: bool = True
    framed: bool = False
    needs_a_column: bool = False

    def check(self, *, prefix: str = "columns.", where: str | None = None) -> JsonDecoder:
        """Itself. Raises `ConfigError` for columns that JSON has no values for."""
        check_text_types(self.schema, nested=True, what="JSON", prefix=prefix, where=where)
        return self

    def read(self, values: Sequence[bytes]) -> Decoded:
        """See `Decoder.read`."""
        if not values:
            return Decoded(one_batch([], self.schema), ())
        try:
            return self.at_once(values)
        except BadValue:
            bad = self._no_json(values)
        # One look for all that are no JSON at all: to search each by halves would take a thousand times as long. What
        # is left is JSON, so it is not looked for again in each half.
        refused = {one.index for one in bad}
        index = [at for at in range(len(values)) if at not in refused]
        return self.by_halves([values[at] for at in index], index, bad, self.at_once)

    def at_once(self, values: Sequence[bytes]) -> Decoded:
        """See `Decoder.at_once`."""
        rows = self._block(values) if values else one_batch([], self.schema)
        return Decoded(rows, range(len(values)))

    def _no_json(self, values: Sequence[bytes]) -> list[Undecodable]:
        """Those that are no JSON by any reader."""
        bad: list[Undecodable] = []
        for at, value in enumerate(values):
            text = value[5:] if self.framed else value
            try:
                self._check_frames([value])
                _check_ends([text], text)
                self._refuse_strange(json.loads(text, parse_int=_Number, parse_float=_Number))
            except RecursionError:
                continue  # pyarrow knows no such limit
            except BadValue as error:
                bad.append(undecodable(at, error))
            except ValueError as error:
                if b"Inf" not in text:  # which pyarrow reads
                    bad.append(Undecodable(at, f"the value is not JSON: {said(error)}"))
        return bad

    def _block(self, values: Sequence[bytes]) -> pa.RecordBatch:
        if self.framed:
            self._check_frames(values)
            values = [value[5:] for value in values]
        block = b"\n".join(values)
        _check_ends(values, block)
        try:
            block.decode("utf-8")  # pyarrow would hand invalid text on
            rows = read_documents(block, self._as_read(), "ignore" if self.unknown_fields else "error")
            if rows.num_rows != len(values):
                raise BadValue(f"the value is {rows.num_rows} JSON documents, not one")
            table = pa.table([cast_text(rows[field.name], field.type) for field in self.schema], schema=self.schema)
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            raise BadValue(_IN_ROW.sub("", str(error).partition("\n")[0])) from None
        self._refuse_all_strange(table, values)
        self._refuse_rounded(table, values)
        return one_batch(table.combine_chunks().to_batches(), self.schema)

    def _check_frames(self, values: Sequence[bytes]) -> None:
        if self.framed and not all(value[:1] == b"\0" for value in values):
            raise BadValue("the value does not begin with the id of a schema")

    def _as_read(self) -> pa.Schema:
        return pa.schema([pa.field(field.name, as_read(field.type)) for field in self.schema])

    def _refuse_all_strange(self, table: pa.Table, values: Sequence[bytes]) -> None:
        """Of an object without any of the columns comes a row of nulls."""
        if not (self.needs_a_column and table.num_columns) or not all(column.null_count for column in table.columns):
            return
        nulls = pc.is_null(table.column(0))
        for column in table.columns[1:]:
            nulls = pc.and_(nulls, pc.is_null(column))
        for position in pc.indices_nonzero(nulls.combine_chunks()).to_pylist():
            # json.loads would end at a value that is nested deeply.
            found = paths_of(values[position])
            self._refuse_strange([json.loads(name) for holder, name in found if not holder])

    def _refuse_strange(self, names: Collection[str]) -> None:
        """Raise `BadValue` for the fields of an object, of which none is a column. One without fields is a row."""
        if self.needs_a_column and names and self.schema.names and not any(name in names for name in self.schema.names):
            told = ", ".join(map(repr, islice(names, _TOLD))) + (", …" if len(names) > _TOLD else "")
            raise BadValue(f"none of its fields is a column: {told}")

    def _refuse_rounded(self, table: pa.Table, values: Sequence[bytes]) -> None:
        """An integer in a column of floats takes the nearest one; beyond 2^53 that may be another number."""
        large: set[int] = set()
        for field, column in zip(self.schema, table.columns, strict=True):
            if has_large_float(column):
                plain = pt.is_floating(field.type)
                large.update(large_floats(column.combine_chunks()).tolist() if plain else range(len(values)))
        for position in large:
            document = json.loads(values[position], parse_int=_Number, parse_float=_Number)
            for field in self.schema:
                for text, kind in _floats_of(document.get(field.name), field.type):
                    refuse_rounded([text], kind, field.name)


class _Number(str):
    """As it is written."""


def _check_ends(values: Sequence[bytes], block: bytes) -> None:
    """Raise `BadValue` unless each value begins with ``{`` and ends with ``}``. A bare ``null`` at the start would
    crash pyarrow."""
    one_line_each = block.count(b"\n") == len(values) - 1
    if one_line_each and block[:1] == b"{" and block[-1:] == b"}" and block.count(b"}\n{") == len(values) - 1:
        return
    for value in values:
        if not (value[:1] == b"{" and value[-1:] == b"}"):
            bare = value.strip(_BLANK)
            if not (bare[:1] == b"{" and bare[-1:] == b"}"):
                raise BadValue("the value is empty" if not bare else "the value is not a JSON object")


def read_documents(block: bytes, schema: pa.Schema | None, unexpected: str) -> pa.Table:
    """By pyarrow; without a schema, its columns are those that it finds. Raises ``ArrowInvalid``."""
    from pyarrow import json as arrow_json

    return arrow_json.read_json(
        pa.BufferReader(block),
        # One block: a value longer than a block would be refused, and the caller bounds how much there is.
        read_options=arrow_json.ReadOptions(use_threads=False, block_size=len(block) + 1),
        parse_options=arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior=unexpected),
    )


def depth_of(document: bytes) -> int:
    """How deep a document is nested."""
    brackets = np.frombuffer(_STRING.sub(b"", document).translate(None, _NO_BRACKETS), np.uint8)
    opened = np.isin(brackets, np.frombuffer(b"[{", np.uint8))
    return int(np.cumsum(np.where(opened, 1, -1)).max(initial=0))


def paths_of(document: bytes) -> Iterator[tuple[int, bytes]]:
    """Each field of a document that is JSON, once: the number of the one that holds it, and its name as it is written.
    Takes the memory of what it has given."""
    known: dict[tuple[int, bytes], int] = {}
    stack: list[list[int]] = []
    name = b""
    for found in _TOKEN.finditer(document):
        token = found[0]
        if token[:1] == b'"':
            name = token
        elif token == b":":
            holder = stack[-1]
            field = (holder[0], name)
            if field not in known:
                known[field] = len(known) + 1
                yield field
            holder[1] = known[field]
        elif token in (b"{", b"["):
            # What is within a list is of the field that holds the list.
            inside = stack[-1][1] if stack else 0
            stack.append([inside, inside])
        else:
            stack.pop()


def _floats_of(value: Any, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """The numbers of ``value``, as they are written, that are in columns of floats."""
    if isinstance(value, _Number):
        if pt.is_floating(kind):
            yield value, kind
    elif pt.is_struct(kind) and isinstance(value, dict):
        for i in range(kind.num_fields):
            yield from _floats_of(value.get(kind.field(i).name), kind.field(i).type)
    elif is_list(kind) and isinstance(value, list):
        for item in value:
            yield from _floats_of(item, kind.value_type)
