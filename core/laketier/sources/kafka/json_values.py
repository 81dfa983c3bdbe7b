"""JSON objects, read by pyarrow a block at a time.

pyarrow reads a run of documents and does not say which bytes a row came from. Values are joined by a line feed; when
each begins with ``{`` and ends with ``}``, no valid document goes across a joint: ``}`` then ``{`` is valid between
documents only, and a line feed is not valid within a string. Then as many rows as values means one row for each.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from laketier.sources.kafka.decoding import BadValue, Decoded, Decoder, Undecodable, one_batch
from laketier.sources.kafka.options import UnknownFields
from laketier.spi import ConfigError

_BLANK = b" \t\n\r"
_IN_ROW = re.compile(r" in row \d+$")


@dataclass(frozen=True)
class JsonDecoder(Decoder):
    """Each value is one JSON object; its fields are columns by name, a missing one is null."""

    schema: pa.Schema
    unknown_fields: UnknownFields = UnknownFields.IGNORE
    framed: bool = False

    def __post_init__(self) -> None:
        for field in self.schema:
            _check_type(field.type, field.name)

    def decode(self, values: Sequence[bytes]) -> Decoded:
        """See `Decoder`."""
        bad: list[Undecodable] = []
        found = list(self._found(values, 0, bad))
        index: Sequence[int] = range(len(values))
        if bad:
            refused = {one.index for one in bad}
            index = [position for position in range(len(values)) if position not in refused]
        return Decoded(one_batch(found, self.schema), index, bad)

    def _found(self, values: Sequence[bytes], first: int, bad: list[Undecodable]) -> Iterator[pa.RecordBatch]:
        """The rows of ``values``, the first of which is at ``first``: as one block, or else half by half."""
        if not values:
            return
        try:
            yield self._block(values)
        except BadValue as error:
            if len(values) == 1:
                bad.append(Undecodable(first, str(error)))
                return
            half = len(values) // 2
            yield from self._found(values[:half], first, bad)
            yield from self._found(values[half:], first + half, bad)

    def _block(self, values: Sequence[bytes]) -> pa.RecordBatch:
        """Raises `BadValue` when a value is bad; which, only a block of one tells."""
        if self.framed:
            if not all(value[:1] == b"\0" for value in values):
                raise BadValue("the value does not begin with the id of a schema")
            values = [value[5:] for value in values]
        for value in values:
            if not (value[:1] == b"{" and value[-1:] == b"}"):
                bare = value.strip(_BLANK)
                if not (bare[:1] == b"{" and bare[-1:] == b"}"):
                    raise BadValue("the value is empty" if not bare else "the value is not a JSON object")
        block = b"\n".join(values)
        try:
            block.decode("utf-8")  # pyarrow would hand invalid text on
            rows = self._read(block)
            if rows.num_rows != len(values):
                raise BadValue(f"the value is {rows.num_rows} JSON documents, not one")
            table = pa.table([_cast(rows[field.name], field.type) for field in self.schema], schema=self.schema)
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            raise BadValue(_IN_ROW.sub("", str(error).partition("\n")[0])) from None
        self._refuse_rounded(table, values)
        return one_batch(table.combine_chunks().to_batches(), self.schema)

    def _read(self, block: bytes) -> pa.Table:
        from pyarrow import json as arrow_json

        fields = [pa.field(field.name, _as_read(field.type)) for field in self.schema]
        ignore = self.unknown_fields is UnknownFields.IGNORE
        return arrow_json.read_json(
            pa.BufferReader(block),
            # One block: a value longer than a block would be refused, and the caller bounds how much there is.
            read_options=arrow_json.ReadOptions(use_threads=False, block_size=len(block) + 1),
            parse_options=arrow_json.ParseOptions(
                explicit_schema=pa.schema(fields), unexpected_field_behavior="ignore" if ignore else "error"
            ),
        )

    def _refuse_rounded(self, table: pa.Table, values: Sequence[bytes]) -> None:
        """An integer in a column of floats takes the nearest one; beyond 2^53 that may be another number."""
        if not any(_has_large_float(column) for column in table.columns):
            return
        large: set[int] = set()
        for field, column in zip(self.schema, table.columns, strict=True):
            if pt.is_floating(field.type):
                large.update(np.flatnonzero(_is_large(column.combine_chunks()).to_numpy(zero_copy_only=False)).tolist())
            elif _has_large_float(column):
                large.update(range(len(values)))
        for position in large:
            document = json.loads(values[position])
            for field in self.schema:
                _refuse_rounded_integers(document.get(field.name), field.type, field.name)


def _check_type(kind: pa.DataType, column: str) -> None:
    """Raises `ConfigError` for what JSON has no value for, or several."""
    for child in _children(kind):
        _check_type(child, column)
    known = (
        pt.is_boolean(kind)
        or pt.is_integer(kind)
        or pt.is_float32(kind)
        or pt.is_float64(kind)
        or (pt.is_decimal128(kind) or pt.is_decimal256(kind))
        or _is_text(kind)
        or (pt.is_timestamp(kind) or pt.is_date(kind))
        or _is_list(kind)
        or pt.is_struct(kind)
    )
    if not known:
        fix = "Declare it as string."
        raise ConfigError(f"columns.{column}: JSON can't be read as {kind}", fix=fix)


def _children(kind: pa.DataType) -> list[pa.DataType]:
    if pt.is_struct(kind):
        return [kind.field(i).type for i in range(kind.num_fields)]
    return [kind.value_type] if _is_list(kind) else []


def _is_list(kind: pa.DataType) -> bool:
    return pt.is_list(kind) or pt.is_large_list(kind)


def _is_text(kind: pa.DataType) -> bool:
    return pt.is_string(kind) or pt.is_large_string(kind)


def _as_read(kind: pa.DataType) -> pa.DataType:
    """What pyarrow's reader is asked for. Dates and times are text to it, as its own reading of them drops a zone
    that the column has none for; the cast from text refuses that."""
    if pt.is_temporal(kind):
        return pa.string()
    if pt.is_struct(kind):
        return pa.struct([kind.field(i).with_type(_as_read(kind.field(i).type)) for i in range(kind.num_fields)])
    if _is_list(kind):
        field = kind.value_field.with_type(_as_read(kind.value_type))
        return pa.list_(field) if pt.is_list(kind) else pa.large_list(field)
    return kind


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if column.type.equals(kind):
        return column
    return column.cast(kind, safe=True)


def _largest_exact(kind: pa.DataType) -> int:
    return 2**24 if pt.is_float32(kind) else 2**53


def _is_large(array: pa.Array) -> pa.Array:
    """Where integers have begun to have no float of their own."""
    return pc.fill_null(pc.greater_equal(pc.abs(array), _largest_exact(array.type)), False)


def _has_large_float(column: pa.ChunkedArray) -> bool:
    return any(_any_large(chunk) for chunk in column.chunks)


def _any_large(array: pa.Array) -> bool:
    if pt.is_floating(array.type):
        most = pc.max(pc.abs(array)).as_py()
        return most is not None and most >= _largest_exact(array.type)
    if pt.is_struct(array.type) or _is_list(array.type):
        return any(_any_large(child) for child in (array.flatten() if pt.is_struct(array.type) else [array.flatten()]))
    return False


def _refuse_rounded_integers(value: Any, kind: pa.DataType, name: str) -> None:
    """Raises `BadValue` for an integer in ``value`` whose float is another number."""
    if value is None:
        return
    if pt.is_floating(kind):
        with np.errstate(over="ignore"):
            nearest = float(np.float32(value)) if pt.is_float32(kind) else float(value)
        if isinstance(value, int):
            if math.isinf(nearest) or int(nearest) != value:
                raise BadValue(f"{value} in column {name!r} has no exact {kind}; declare it as decimal128 or string")
        elif math.isinf(nearest) and not math.isinf(value):
            raise BadValue(f"{value} in column {name!r} is too large for {kind}")
    elif pt.is_struct(kind):
        for i in range(kind.num_fields):
            _refuse_rounded_integers(value.get(kind.field(i).name), kind.field(i).type, name)
    elif _is_list(kind):
        for item in value:
            _refuse_rounded_integers(item, kind.value_type, name)
