"""Lines that open tables whose files do not hold their partition columns, or not all of them."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.types as pt

from laketier.spi import TableInfo, Transform
from laketier_localfile.file_formats.plain_types import below, duckdb_columns, spark_type


def open_folders(table: TableInfo) -> Mapping[str, str]:
    """For each tool a line of Python, as `LakeStoragePlugin.open_with` has it. Each names the types of the columns in
    names of folders: a reader that guesses them takes the text 007 for a number."""
    fields = [field for field in table.descriptor.partition_by if field.transform is Transform.IDENTITY]
    columns = pa.schema([table.schema.field(field.column) for field in fields])
    files = below(table.location, ".parquet")
    polars = ", ".join(f"{field.name!r}: {_polars(field.type)}" for field in columns)
    casts = [
        f"cast({_quoted(name)} as {spark_type(columns.field(name).type)}) {_quoted(name)}"
        if name in columns.names
        else _quoted(name)
        for name in table.schema.names
    ]
    return {
        "DuckDB": f"import duckdb; duckdb.sql({_duckdb(files, columns)!r})",
        "Polars": "import glob, polars; polars.concat([polars.scan_parquet(glob.escape(file), hive_partitioning=True, "
        f"hive_schema={{{polars}}}) for file in glob.glob({files!r}, recursive=True)], "
        "how='diagonal_relaxed').collect()",
        "Spark": "spark.conf.set('spark.sql.sources.partitionColumnTypeInference.enabled', False); "
        f"spark.read.option('mergeSchema', True).parquet({table.location!r}).selectExpr({', '.join(map(repr, casts))})",
    }


def _duckdb(files: str, columns: pa.Schema) -> str:
    types = ", ".join(f"{_text(name)}: {_text(kind)}" for name, kind in duckdb_columns(columns).items())
    return (
        f"SELECT * FROM read_parquet({_text(files)}, hive_partitioning = true, union_by_name = true, "
        f"hive_types = {{{types}}})"
    )


def _text(value: str) -> str:
    quote = "'"
    return f"{quote}{value.replace(quote, quote * 2)}{quote}"


def _polars(kind: pa.DataType) -> str:
    if pt.is_decimal(kind):
        return f"polars.Decimal({kind.precision}, {kind.scale})"
    if pt.is_timestamp(kind):
        return "polars.Datetime"
    if pt.is_date(kind):
        return "polars.Date"
    if pt.is_boolean(kind):
        return "polars.Boolean"
    if pt.is_integer(kind):
        return f"polars.{'Int' if pt.is_signed_integer(kind) else 'UInt'}{kind.bit_width}"
    return "polars.String"


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
