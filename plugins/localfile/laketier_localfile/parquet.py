"""The manifest's details of a Parquet file: a digest of its footer, and statistics to skip it by."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.types as pt

from laketier.kit.manifests import FORMAT_DETAIL
from laketier.kit.manifests.document import text, whole
from laketier.kit.partition import partition_text
from laketier.spi import CorruptTable

Stats = Mapping[str, tuple[str | None, str | None, int]]

MAX_COLUMNS = 32
MAX_TEXT = 64
_MAGIC = b"PAR1"
_EPOCH = datetime(1970, 1, 1)


def footer_digest(file: BinaryIO, size: int) -> str:
    """16 hex digits over a Parquet file's footer, which names every column chunk, its place and size. Raises
    `CorruptTable` when ``size`` is not its length, or it has no footer."""
    actual = file.seek(0, 2)
    if actual != size:
        raise CorruptTable(f"the file has {actual} bytes instead of {size}")
    file.seek(max(size - 8, 0))
    tail = file.read(8)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != _MAGIC or length > size - 12:
        raise CorruptTable("the file has no Parquet footer")
    file.seek(size - 8 - length)
    return hashlib.sha256(file.read(length)).hexdigest()[:16]


def column_stats(footer: Any, schema: pa.Schema) -> Stats:
    """Least and greatest value and the number of nulls of the first columns, as far as the footer tells exactly.

    Floating point is left out, as readers disagree about where NaN sorts; long texts keep their nulls only.
    """
    places = places_of_columns(footer)
    stats: dict[str, tuple[str | None, str | None, int]] = {}
    for column in list(schema)[:MAX_COLUMNS]:
        if not has_bounds(column.type):
            continue
        groups = [
            footer.row_group(group).column(places[column.name]).statistics for group in range(footer.num_row_groups)
        ]
        if any(group is None or not group.has_null_count for group in groups):
            continue
        nulls = sum(group.null_count for group in groups)
        # A row group of nulls alone has no bounds, and needs none.
        bounded = [group for group in groups if group.num_values]
        low = high = None
        if bounded and all(group.has_min_max for group in bounded):
            low, high = _bounds(bounded)
        stats[column.name] = (low, high, nulls)
    return stats


def places_of_columns(footer: Any) -> Mapping[str, int]:
    """Where the columns of a file are that have no fields. A field of a struct may have the path of one: `a.b`."""
    columns = ((place, footer.schema.column(place)) for place in range(footer.num_columns))
    return {column.name: place for place, column in columns if column.name == column.path}


def has_bounds(kind: pa.DataType) -> bool:
    """Whether least and greatest values of ``kind`` are kept."""
    integer = pt.is_signed_integer(kind) or pt.is_date32(kind) or pt.is_boolean(kind)
    text = pt.is_string(kind) or pt.is_large_string(kind)
    return bool(integer or text or (pt.is_timestamp(kind) and kind.unit != "ns"))


def stats_to_text(stats: Stats) -> str:
    """For a write result's payload."""
    return json.dumps(stats, sort_keys=True, separators=(",", ":"))


def stats_from_text(told: str) -> Stats:
    """Undo `stats_to_text`."""
    return {name: (low, high, nulls) for name, (low, high, nulls) in json.loads(told).items()}


def details(plain: Mapping[str, Any]) -> Mapping[str, Any]:
    """The details of a manifest's entry, in the form that this module gives them. An entry of another file format than
    Parquet names it, and has a digest of the whole file for that of the footer. Raises `KeyError`,
    `TypeError` and `ValueError`."""
    stats = {name: (_bound(low), _bound(high), whole(nulls)) for name, (low, high, nulls) in plain["stats"].items()}
    fitted = {"fitted": True} if plain.get("fitted") is True else {}
    if FORMAT_DETAIL in plain:
        return {FORMAT_DETAIL: str(plain[FORMAT_DETAIL]), "digest": text(plain["digest"]), "stats": stats, **fitted}
    return {"footer": text(plain["footer"]), "stats": stats, **fitted}


def _bound(plain: Any) -> str | None:
    return None if plain is None else text(plain)


def _bounds(groups: list[Any]) -> tuple[str | None, str | None]:
    try:
        ends = [_ends(group) for group in groups]
        low = partition_text(min(low for low, _ in ends))
        high = partition_text(max(high for _, high in ends))
    except (ValueError, OverflowError):
        # Parquet's moments and days reach further than Python's.
        return None, None
    short = low is not None and high is not None and max(len(low), len(high)) <= MAX_TEXT
    return (low, high) if short else (None, None)


def _ends(group: Any) -> tuple[Any, Any]:
    """The least and the greatest value of a row group. Moments are those of UTC, without a zone: Arrow makes them with
    pandas, whose import takes a new process longer than all else that it does to stage a file."""
    if group.logical_type.type == "TIMESTAMP":
        unit = json.loads(group.logical_type.to_json())["timeUnit"]
        if unit in ("milliseconds", "microseconds"):
            return _EPOCH + timedelta(**{unit: group.min_raw}), _EPOCH + timedelta(**{unit: group.max_raw})
    return group.min, group.max
