"""Reads a split. Executor: pyarrow only. `laketier_iceberg.projection` says which column of a file is which."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from laketier.kit.parquet_reader import naming_damage, open_parquet, read_batches
from laketier.spi import CorruptTable, LakeSplit
from laketier_iceberg.files import Files
from laketier_iceberg.listed_file import ListedFile
from laketier_iceberg.projection import Projection, by_id


def read_split(split: LakeSplit, schema: pa.Schema, io: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
    """Batches of exactly ``schema``, whose fields carry their ids. Raises `CorruptTable` for a missing file and for one
    that is no file of this table, and `FeatureNotSupported` for one whose columns can't be told."""
    files = Files(io)
    listed: ListedFile = split.payload
    deleted = _deleted_positions(listed, files)
    room = split.limit
    projection = Projection.of(listed)
    with _open(files, listed.path) as source, naming_damage(listed.path), open_parquet(source) as file:
        there = list(file.schema_arrow)
        ids = by_id(there)
        chosen = [projection.find(there, ids, field) for field in schema]
        names = _names(there, {index for index in chosen if index is not None}, listed.path)
        start = 0
        for batch in read_batches(file, names):
            rows = batch.num_rows
            columns = [
                projection.missing(field, rows)
                if index is None
                else projection.project(batch.column(there[index].name), field)
                for index, field in zip(chosen, schema, strict=True)
            ]
            result = _batch(columns, schema, rows)
            if deleted is not None:
                result = result.filter(_alive(deleted, start, rows))
            start += rows
            if room is not None:
                result = result.slice(0, room)
                room -= result.num_rows
            if result.num_rows:
                yield result
            if room == 0:
                return


def _names(fields: list[pa.Field], chosen: set[int], path: str) -> list[str]:
    """What the Parquet reader is asked for. It knows columns by names alone."""
    names = sorted({fields[index].name for index in chosen})
    every = [field.name for field in fields]
    twice = next((name for name in names if every.count(name) > 1), None)
    if twice is not None:
        raise CorruptTable(
            f"a file has two columns with the name {twice!r}", where=path, fix="Rewrite the file with other names."
        )
    return names


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


def _deleted_positions(listed: ListedFile, files: Files) -> pa.Array | None:
    """The rows of the file that files of positional deletes name; None when there are none."""
    if not listed.deletes:
        return None
    found = []
    for path in listed.deletes:
        with _open(files, path) as source, naming_damage(path), open_parquet(source) as file:
            table = file.read(columns=["file_path", "pos"])
        found.append(table.filter(pc.equal(table["file_path"], listed.path))["pos"])
    return pa.concat_arrays([chunk.cast(pa.int64()) for column in found for chunk in column.chunks] or [_no_rows()])


def _no_rows() -> pa.Array:
    return pa.array([], pa.int64())


def _alive(deleted: pa.Array, start: int, rows: int) -> pa.Array:
    return pc.invert(pc.is_in(pa.arange(start, start + rows), value_set=deleted))
