"""Reading of files that others wrote: their columns are not quite the table's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from laketier.kit import conform
from laketier.kit.parquet_reader import open_parquet, read_batches
from laketier.spi import IncompatibleData, LakeSplit
from laketier.tables.promotion import as_promoted
from laketier_localfile.pruning import decode


def fitted_batches(data: Any, split: LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of an adopted file in exactly ``schema``. Narrower types are widened. What the file lacks is the value
    in the names of its folders, or null. Raises `IncompatibleData` for a value that the column's type can't hold."""
    with open_parquet(data, checksums=True) as file:
        present = [name for name in schema.names if name in file.schema_arrow.names]
        constants = {name: text for name, text in split.partition if name in schema.names and name not in present}
        left = split.rows or 0
        # Without a column to decode, there are still rows.
        batches = read_batches(file, present) if present else iter([_rows(left)])
        for batch in batches:
            if left <= 0:
                return
            piece = batch.slice(0, left)
            left -= piece.num_rows
            yield _fitted(piece.select(present), piece.num_rows, constants, schema)


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
    for name, text in constants.items():
        kind = schema.field(name).type
        arrays[name] = pa.repeat(pa.scalar(decode(text, kind), kind), rows)
    if not arrays:
        arrays = {schema.names[0]: pa.nulls(rows, schema.field(0).type)}
    return conform(pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays)), schema)


def _rows(count: int) -> pa.RecordBatch:
    return pa.record_batch([pa.nulls(count)], names=["rows"])
