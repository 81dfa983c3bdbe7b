"""Partition columns that files do not hold: readers take their values from the manifest, or from names of folders.

Some of the files of an adopted table are so, and all files of a table that was created so. A file's other columns are
read as ever, and these are put beside them, of the column's own type: what `partition_text` wrote comes back exactly.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.types as pt

from laketier.kit.manifests import OUTSIDE_PROPERTY
from laketier.spi import ConfigError, TableDescriptor, Transform, UnsupportedType
from laketier_localfile.names import FILE_FORMAT, PARQUET
from laketier_localfile.pruning import decode

IN_NAMES = "laketier.partitions-in-names"
"""The property of a table some of whose files do not hold their partition columns: plain readers take them from the
names of folders."""
OUTSIDE = OUTSIDE_PROPERTY
"""The property of a table none of whose files hold them, with the value ``false``."""


def outside_of(table: TableDescriptor) -> tuple[str, ...]:
    """The columns that files of writers do not hold. A column that a transform takes stays: its value is not in the
    folder's name."""
    if table.properties.get(OUTSIDE) != "false":
        return ()
    return tuple(field.column for field in table.partition_by if field.transform is Transform.IDENTITY)


def file_schema(table: TableDescriptor) -> pa.Schema:
    """The columns of the files that writers make."""
    return without(table.schema, outside_of(table))


def without(schema: pa.Schema, names: tuple[str, ...]) -> pa.Schema:
    """Leave columns out."""
    return schema if not names else pa.schema([field for field in schema if field.name not in names])


def constant(text: str | None, kind: pa.DataType, rows: int) -> pa.Array:
    """A column of one value, which is that of a folder."""
    return pa.repeat(pa.scalar(decode(text, kind), kind), rows)


def with_constants(batch: pa.RecordBatch, constants: Mapping[str, str | None], schema: pa.Schema) -> pa.RecordBatch:
    """``batch`` with these columns beside its own, in ``schema``, which has them all."""
    arrays = [
        constant(constants[field.name], field.type, batch.num_rows)
        if field.name in constants
        else batch.column(field.name)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema) if arrays else batch


def check_outside(table: TableDescriptor) -> None:
    """Refuse a new table whose columns could not be given back. Raises `ConfigError` and `UnsupportedType`."""
    if table.properties.get(OUTSIDE) not in (None, "false"):
        raise ConfigError(
            f"{OUTSIDE} is {table.properties[OUTSIDE]!r}", fix="Leave the property out, or set it to false."
        )
    if OUTSIDE not in table.properties:
        return
    names = outside_of(table)
    why = "partition-columns-in-files is false, so files are to be without partition columns"
    if not names:
        raise ConfigError(
            f"{why}, and the table has none",
            fix="Name columns in lake.partition-by. Transforms such as hour(ts) leave their column in the files.",
        )
    if table.properties.get(FILE_FORMAT, PARQUET) != PARQUET:
        raise ConfigError(
            f"{why}, which is built for Parquet alone, and the table's are {table.properties[FILE_FORMAT]}",
            fix="Leave lake.localfile.partition-columns-in-files out.",
        )
    if len(names) == len(table.schema):
        raise ConfigError(f"{why}, and there would be no other", fix="Partition by fewer columns.")
    for name in names:
        kind = table.schema.field(name).type
        if pt.is_timestamp(kind) and kind.tz is not None:
            raise UnsupportedType(
                f"column {name!r} of type {kind} can't be outside of the files",
                why="names of folders do not tell the zone, and readers would take UTC for local time",
                fix=f"Partition by hour({name}), or leave lake.localfile.partition-columns-in-files out.",
            )
