"""Reading of files that others wrote: their columns are not quite the table's."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from laketier.kit import conform
from laketier.spi import IncompatibleData, LakeSplit
from laketier.tables.promotion import as_promoted
from laketier_localfile.file_formats.interface import FileFormat
from laketier_localfile.outside import constant


def fitted_batches(
    file: pa.NativeFile, path: str, size: int, chosen: FileFormat, split: LakeSplit, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The rows of an adopted file in exactly ``schema``. Narrower types are widened. What the file lacks is the value
    in the names of its folders, or null. Raises `IncompatibleData` for a value that the column's type can't hold."""
    constants = {name: text for name, text in split.partition if name in schema.names}
    # A file that does not tell its columns has null for one that it lacks. Where it has it, it has the folder's value.
    left_out = set() if chosen.tells_types else set(constants)
    asked = pa.schema([field for field in schema if field.name not in left_out])
    left = split.rows or 0
    for batch in _rows(file, path, size, chosen, asked, left):
        if left <= 0:
            return
        piece = batch.slice(0, left)
        left -= piece.num_rows
        piece.validate(full=True)
        yield _fitted(piece, piece.num_rows, constants, schema)


def _rows(
    file: pa.NativeFile, path: str, size: int, chosen: FileFormat, asked: pa.Schema, rows: int
) -> Iterator[pa.RecordBatch]:
    """Without a column to decode, there are still rows."""
    read = iter(()) if not asked.names else chosen.lying_rows(file, path, size, asked)
    first = next(read, None)
    if first is None:
        yield pa.record_batch([pa.nulls(rows)], names=["rows"]).select([])
        return
    yield first
    yield from read


def _fitted(batch: pa.RecordBatch, rows: int, constants: dict[str, str | None], schema: pa.Schema) -> pa.RecordBatch:
    try:
        wide = as_promoted(batch, schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise IncompatibleData(
            "a file has a value that its column's type can't hold",
            why=str(error),
            fix="Write the file again with the table's types, in place of the old one, and adopt the folder anew.",
        ) from error
    if not schema.names:
        return batch
    arrays = dict(zip(wide.schema.names, wide.columns, strict=True))
    for name in constants.keys() - arrays.keys():
        arrays[name] = constant(constants[name], schema.field(name).type, rows)
    if not arrays:
        arrays = {schema.names[0]: pa.nulls(rows, schema.field(0).type)}
    return conform(pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays)), schema)
