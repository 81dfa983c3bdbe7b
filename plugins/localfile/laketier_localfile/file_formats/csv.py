"""CSV, as RFC 4180 has it: a line of names, a record a line, text in quotes. Null is nothing between delimiters."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.types as pt

from laketier.kit import conform
from laketier.kit.rolling import OpenFile
from laketier.spi import UnsupportedType
from laketier_localfile.file_formats.interface import Wanted
from laketier_localfile.file_formats.plain_types import duckdb_columns, files_of, spark_columns
from laketier_localfile.file_formats.scalars import is_bytes, is_text, text_of, values_of
from laketier_localfile.file_formats.text_file import GrowingText, squeeze_of, suffix_of, text_blocks
from laketier_localfile.file_formats.whole import WholeFileFormat
from laketier_localfile.options import LocalFileOptions
from laketier_localfile.types import check_types

_ROWS_AT_ONCE = 8192


class Csv(WholeFileFormat):
    """All text is in quotes, with quotes doubled, so the empty text differs from null, and a value may hold ends of
    lines."""

    name = "csv"
    suffixes = (".csv.gz", ".csv.zst", ".csv")

    def suffix(self, options: LocalFileOptions) -> str:
        return suffix_of(".csv", options)

    def check_types(self, schema: pa.Schema) -> None:
        check_types(schema)
        for column in schema:
            if pt.is_nested(column.type):
                raise UnsupportedType(
                    f"column {column.name!r} has type {column.type}, and CSV has values without parts only",
                    fix="Make columns of its parts in the query, or tier into a table of json or parquet files.",
                )

    def opener(self, options: LocalFileOptions) -> OpenFile:
        def begin(stream: pa.NativeFile, schema: pa.Schema) -> GrowingText:
            head = ",".join('"{}"'.format(name.replace('"', '""')) for name in schema.names) + "\n"
            return GrowingText(stream, schema, encode=_records, squeeze=squeeze_of(options), head=head.encode())

        return begin

    def read(self, file: pa.NativeFile, path: str, wanted: Wanted) -> Iterator[pa.RecordBatch]:
        left = wanted.rows
        names: list[str] = []
        for block in text_blocks(file, path, quotes=True):
            if left <= 0:
                return
            heads = 0 if names else 1
            names = names or next(csv.reader(io.StringIO(block.decode(), newline="")))
            rows = _parsed(block, names, heads, wanted.written).slice(0, left)
            left -= rows.num_rows
            columns = [values_of(_one(rows[field.name]), field.type) for field in wanted.written]
            yield conform(pa.RecordBatch.from_arrays(columns, schema=wanted.written), wanted.schema)

    def open_with(self, location: str, schema: pa.Schema) -> Mapping[str, str]:
        files = files_of(location, self.suffixes)
        # Files that are older than a column do not have it.
        types = {name: kind for name, kind in duckdb_columns(schema).items() if kind != "VARCHAR"}
        # Spark takes the empty text for null unless null is another one.
        return {
            "DuckDB": f"import duckdb, glob; duckdb.read_csv({files}, header=True, union_by_name=True, "
            f"allow_quoted_nulls=False, dtype={types!r})",
            "Polars": "import glob, polars; polars.concat([polars.read_csv(file, infer_schema_length=None, "
            f"schema_overrides={_polars_types(schema)}) for file in {files}], how='diagonal_relaxed')",
            "Spark": f"spark.read.schema({spark_columns(schema)!r}).option('recursiveFileLookup', True)"
            ".option('pathGlobFilter', '*part-*').option('header', True).option('enforceSchema', False)"
            f".option('multiLine', True).option('nullValue', chr(0)).option('escape', '\"').csv({location!r})",
        }


def _polars_types(schema: pa.Schema) -> str:
    """Of decimals, which Polars takes for floats, and of floats, which it takes for text where one is no number."""
    inside = []
    for field in schema:
        if pt.is_decimal(field.type):
            inside.append(f"{field.name!r}: polars.Decimal({field.type.precision}, {field.type.scale})")
        elif pt.is_floating(field.type):
            inside.append(f"{field.name!r}: polars.Float{32 if field.type.bit_width <= 32 else 64}")
    return f"{{{', '.join(inside)}}}"


def _records(table: pa.Table) -> pa.Buffer:
    """The records of ``table``, at most some 100 MiB."""
    import pyarrow.csv as arrow_csv

    (batch,) = table.combine_chunks().to_batches()
    columns = [_column(array, name) for name, array in zip(table.schema.names, batch.columns, strict=True)]
    sink = pa.BufferOutputStream()
    arrow_csv.write_csv(
        pa.Table.from_arrays(columns, names=[str(place) for place in range(len(columns))]),
        sink,
        arrow_csv.WriteOptions(include_header=False, batch_size=_ROWS_AT_ONCE),
    )
    return sink.getvalue()


def _column(array: pa.Array, name: str) -> pa.Array:
    """As Arrow's writer takes it: text gets quotes, numbers none."""
    kind = array.type
    if pt.is_integer(kind) or pt.is_boolean(kind) or pt.is_string(kind):
        return array
    text = text_of(array, name)
    return text.cast(pa.string()) if text.nbytes < 1 << 31 else text


def _parsed(block: bytes, names: list[str], heads: int, written: pa.Schema) -> pa.Table:
    import pyarrow.csv as arrow_csv

    return arrow_csv.read_csv(
        pa.BufferReader(block),
        read_options=arrow_csv.ReadOptions(
            use_threads=False, block_size=len(block) + 1, column_names=names, skip_rows_after_names=heads
        ),
        parse_options=arrow_csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        convert_options=arrow_csv.ConvertOptions(
            column_types={field.name: _as_read(field.type) for field in written},
            include_columns=written.names,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _as_read(kind: pa.DataType) -> pa.DataType:
    if is_text(kind) or is_bytes(kind) or pt.is_temporal(kind):
        return pa.string()
    if pt.is_decimal(kind):
        return pa.decimal128(kind.precision, kind.scale)
    return pa.float32() if pt.is_float16(kind) else kind


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks()
