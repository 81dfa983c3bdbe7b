"""Reads a split. Executor: pyarrow only; columns are found by field id, so renames and additions are fine."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from laketier.spi import CorruptTable, LakeSplit
from laketier.spi.schema import FIELD_ID
from laketier_iceberg.files import Files

_BATCH_ROWS = 131_072


def read_split(split: LakeSplit, schema: pa.Schema, io: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
    """Batches of exactly ``schema``, whose fields carry their ids. Raises `CorruptTable` for a missing file."""
    import pyarrow.parquet as pq

    files = Files(io)
    deleted = _deleted_positions(split, files)
    room = int(split.payload["limit"]) if "limit" in split.payload else None
    with _open(files, split.payload["path"]) as source, pq.ParquetFile(source) as file:
        there = file.schema_arrow
        chosen = [_find(there, field) for field in schema]
        names = sorted({there.field(index).name for index in chosen if index is not None})
        start = 0
        for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=names):
            rows = batch.num_rows
            columns = [_column(batch, there, index, field) for index, field in zip(chosen, schema, strict=True)]
            result = _batch(columns, schema, rows)
            if deleted is not None:
                result = result.filter(_alive(deleted, start, rows))
            start += rows
            if room is not None:
                result = result.slice(0, room)
                room -= result.num_rows
            if result.num_rows:
                yield result
            if room is not None and room <= 0:
                return


def _open(files: Files, path: str) -> Any:
    try:
        return files.open(path)
    except FileNotFoundError as error:
        raise CorruptTable(
            "a file that the snapshot lists is missing",
            where=path,
            why="something deleted it that does not know the table, or the snapshot expired while it was read",
            fix="Restore the file, or read another snapshot.",
        ) from error


def _batch(columns: list[pa.Array], schema: pa.Schema, rows: int) -> pa.RecordBatch:
    if columns:
        return pa.RecordBatch.from_arrays(columns, schema=schema)
    # A batch without columns still has rows, which a count needs.
    empty = pa.Array.from_buffers(pa.struct([]), rows, [None])
    return pa.RecordBatch.from_struct_array(empty).replace_schema_metadata(schema.metadata)


def _id(field: pa.Field) -> bytes | None:
    found: bytes | None = (field.metadata or {}).get(FIELD_ID)
    return found


def _find(schema: pa.Schema, field: pa.Field) -> int | None:
    """The column of a file that is ``field``: by id, or by name in a file that has no ids at all (one that was
    written by another tool and registered)."""
    if all(_id(f) is None for f in schema):
        index = schema.get_field_index(field.name)
        return None if index < 0 else int(index)
    return next((index for index, f in enumerate(schema) if _id(f) == _id(field)), None)


def _column(batch: pa.RecordBatch, there: pa.Schema, index: int | None, field: pa.Field) -> pa.Array:
    if index is None:
        return pa.nulls(batch.num_rows, field.type)
    source = there.field(index)
    return _project(batch.column(batch.schema.get_field_index(source.name)), source, field)


def _project(array: pa.Array, source: pa.Field, target: pa.Field) -> pa.Array:
    """``array`` as ``target`` wants it: nested fields by id, missing ones null, promoted types cast."""
    kind = target.type
    if pt.is_struct(kind):
        children = []
        fields = [source.type.field(i) for i in range(source.type.num_fields)]
        by_id = any(_id(f) is not None for f in fields)
        for position in range(kind.num_fields):
            wanted = kind.field(position)
            found = next(
                (i for i, f in enumerate(fields) if (_id(f) == _id(wanted) if by_id else f.name == wanted.name)), None
            )
            if found is None:
                children.append(pa.nulls(len(array), wanted.type))
            else:
                children.append(_project(array.field(found), fields[found], wanted))
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=[kind.field(i) for i in range(kind.num_fields)], mask=mask)
    if (pt.is_list(kind) or pt.is_map(kind)) and _same_inside(source.type, kind):
        return array.cast(kind) if not array.type.equals(kind) else array
    if pt.is_list(kind):
        values = _project(array.values, source.type.value_field, kind.value_field)
        return pa.ListArray.from_arrays(array.offsets, values, type=kind, mask=_mask(array))
    if pt.is_map(kind):
        keys = _project(array.keys, source.type.key_field, kind.key_field)
        items = _project(array.items, source.type.item_field, kind.item_field)
        return pa.MapArray.from_arrays(array.offsets, keys, items, type=kind, mask=_mask(array))
    return array if array.type.equals(kind) else array.cast(kind)


def _mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None


def _same_inside(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether a cast alone does: no struct below whose fields would have to be matched by id."""
    if pt.is_struct(target):
        return False
    if pt.is_list(target):
        return pt.is_list(source) and _same_inside(source.value_type, target.value_type)
    if pt.is_map(target):
        return (
            pt.is_map(source)
            and _same_inside(source.key_type, target.key_type)
            and _same_inside(source.item_type, target.item_type)
        )
    return True


def _deleted_positions(split: LakeSplit, files: Files) -> pa.Array | None:
    """The rows of the split's file that files of positional deletes name; None when there are none."""
    import pyarrow.parquet as pq

    if "deletes" not in split.payload:
        return None
    found = []
    for path in json.loads(split.payload["deletes"]):
        with _open(files, path) as source, pq.ParquetFile(source) as file:
            table = file.read(columns=["file_path", "pos"])
        found.append(table.filter(pc.equal(table["file_path"], split.payload["path"]))["pos"])
    return pa.concat_arrays([chunk.cast(pa.int64()) for column in found for chunk in column.chunks] or [_no_rows()])


def _no_rows() -> pa.Array:
    return pa.array([], pa.int64())


def _alive(deleted: pa.Array, start: int, rows: int) -> pa.Array:
    positions = pa.arange(start, start + rows) if hasattr(pa, "arange") else pa.array(range(start, start + rows))
    return pc.invert(pc.is_in(positions, value_set=deleted))
