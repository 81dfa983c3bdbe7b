"""Splitting batches by partition values, and writing values as text. Vectorised."""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from laketier.kit.views import schema_without_views, without_views
from laketier.spi.errors import IncompatibleData, UnstorableRows, UnsupportedType

Values = TypeVar("Values", pa.Array, pa.ChunkedArray)
LONGEST_FOLDER = 255
"""Bytes of a folder's name in a file system, at most."""


class OddPartitionValues(enum.Enum):
    """The treatment of rows with a partition value that can't name a folder: an empty text, or one with too many
    bytes."""

    REFUSE = "refuse"
    ACCEPT = "accept"


def folder_for_odd(text: str) -> str:
    """Name a folder for a value that can't name one itself. The same value gives the same name; a digest
    distinguishes it from other values."""
    return f"__odd_{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def check_partition_name(column: str, spelled: str) -> None:
    """Refuse a partition column whose name leaves no room for a value. Driver, when a table is created.

    Args:
        column: The name of the column.
        spelled: The name as those of the folders begin with it.

    Raises:
        UnsupportedType: No folder of it could be named, not even by a digest.
    """
    length, most = len(spelled.encode()), LONGEST_FOLDER - len("=") - len(folder_for_odd(""))
    if length > most:
        raise UnsupportedType(
            f"column {column[:40]!r}…, of {len(column)} letters, can't be a partition column",
            why=f"the names of its folders begin with {length} bytes, and {most} are the most: file systems hold "
            f"{LONGEST_FOLDER}, and values need some",
            fix="Rename the column.",
        )


def partition_text(value: Any) -> str | None:
    """A partition value as canonical text: ``true``, ``42``, ``2026-11-21``, ``2026-11-21 08:30:00.000001``; None
    for null. Delta's and Hive's spelling. Timestamps with a zone are written in UTC, without naming it."""
    match value:
        case None | str():
            return value
        case bool():
            return "true" if value else "false"
        case datetime():
            if value.tzinfo is not None:
                value = value.astimezone(tz=_utc()).replace(tzinfo=None)
            return value.isoformat(sep=" ", timespec="microseconds" if value.microsecond else "seconds")
        case date():
            return value.isoformat()
        case Decimal():
            return format(value, "f")
        case int():
            return str(value)
    raise IncompatibleData(
        f"{value!r} ({type(value).__name__}) can't be a partition value",
        fix="Partition by a string, integer, boolean, date, timestamp or decimal column.",
    )


def _utc() -> Any:
    from datetime import UTC

    return UTC


_MOST_BYTES = 1 << 30
"""Rows are sorted as one array a column, and Arrow's arrays of texts end at 2 GiB."""
_MOST_CODES = 1 << 62


def split_by_values(
    table: pa.Table, keys: Sequence[pa.ChunkedArray | pa.Array]
) -> Iterator[tuple[tuple[Any, ...], pa.Table]]:
    """Split ``table`` by the distinct combinations of ``keys`` (arrays as long as the table), in the order of first
    appearance per run; rows keep their order within a part. A table of more than 1 GiB is split in halves first: values
    may come again then. Yields (Python values, rows). Raises `UnstorableRows` for
    a time or day that Python's dates don't reach.

    One dictionary encoding per key, one stable sort of the combined codes, then a copy of each run: no filter per
    partition. Slices would keep all sorted rows in memory for as long as one part of them waits to be written.
    """
    if table.num_rows == 0:
        return
    if table.num_rows > 1 and table.nbytes > _MOST_BYTES:
        half = table.num_rows // 2
        for start, end in ((0, half), (half, table.num_rows)):
            yield from split_by_values(table.slice(start, end - start), [key.slice(start, end - start) for key in keys])
        return
    plain_keys = [_encodable(_one(key)) for key in keys]
    codes = _codes(plain_keys)
    if len(pc.unique(codes)) == 1:
        yield _values(plain_keys, 0), table
        return
    order = pc.sort_indices(codes)
    schema, plain = table.schema, schema_without_views(table.schema)
    (ordered,) = (table if plain is schema else table.cast(plain)).take(order).combine_chunks().to_batches()
    runs = pc.run_end_encode(codes.take(order), run_end_type=pa.int64())
    start = 0
    for end in runs.run_ends.to_pylist():
        copied = pa.Table.from_batches([pa.concat_batches([ordered.slice(start, end - start)])])
        yield _values(plain_keys, order[start].as_py()), copied if plain is schema else copied.cast(schema)
        start = end


def _codes(keys: Sequence[pa.Array]) -> pa.Array:
    """A number for each row, the same for rows with the same values alone. Keys have more combinations than 64 bits
    where there are many of them, so what would be larger is numbered anew: no more combinations occur than rows."""
    assert keys, "split_by_values needs at least one key"
    codes: pa.Array | None = None
    below = 1
    for key in keys:
        encoded = pc.dictionary_encode(key, null_encoding="encode")
        part, count = encoded.indices.cast(pa.int64()), max(len(encoded.dictionary), 1)
        if codes is not None and below * count > _MOST_CODES:
            again = pc.dictionary_encode(codes)
            codes, below = again.indices.cast(pa.int64()), len(again.dictionary)
        codes = part if codes is None else pc.add_checked(pc.multiply_checked(codes, count), part)
        below *= count
    return codes


def in_utc(values: Values) -> Values:
    """Moments of a zone as the same ones of UTC, and other values as they are. Executor. Python compares two
    moments of one zone by the time that its clock shows, so two are the same to it where the clock is put back."""
    kind = values.type
    return values.cast(pa.timestamp(kind.unit, "UTC")) if pt.is_timestamp(kind) and kind.tz is not None else values


def _encodable(array: pa.Array) -> pa.Array:
    """The same values, of a type that Arrow can encode, and that Python tells apart."""
    kind = array.type
    if pt.is_timestamp(kind):
        return in_utc(array)
    if pt.is_decimal32(kind) or pt.is_decimal64(kind):
        return array.cast(pa.decimal128(kind.precision, kind.scale))
    return array.cast(without_views(kind))


def _one(array: pa.ChunkedArray | pa.Array) -> pa.Array:
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _values(keys: Sequence[pa.Array], row: int) -> tuple[Any, ...]:
    return tuple(_value(key[row]) for key in keys)


def _value(scalar: pa.Scalar) -> Any:
    try:
        return scalar.as_py()
    except (OverflowError, ValueError) as error:
        raise UnstorableRows(
            f"a {scalar.type} can't be a partition value",
            why=f"it is {scalar.value} since 1970, outside the years 1 to 9999",
            fix="Leave such rows out in the query, or partition by another column.",
        ) from error
