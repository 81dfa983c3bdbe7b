"""CSV, as RFC 4180 has it: a line of names, a record a line, text in quotes. Null is nothing between delimiters."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.types as pt

from laketier.codecs.inference import Given
from laketier.kit import conform
from laketier.kit.data_file import OpenFile
from laketier.spi import UnsupportedType
from laketier.tables.inference import SchemaSet
from laketier.tables.promotion import Spelling
from laketier_localfile.file_formats.foreign_lines import csv_rows, csv_schema
from laketier_localfile.file_formats.interface import Told, Wanted
from laketier_localfile.file_formats.plain_types import duckdb_columns, files_of, spark_columns, spark_glob
from laketier_localfile.file_formats.scalars import is_bytes, is_text, text_of, values_of
from laketier_localfile.file_formats.text_file import (
    GrowingText,
    check_plain,
    check_text_level,
    squeeze_of,
    suffix_of,
    text_blocks,
)
from laketier_localfile.file_formats.whole import WholeFileFormat
from laketier_localfile.names import CSV_ENDS
from laketier_localfile.options import LocalFileOptions
from laketier_localfile.types import check_types

_ROWS_AT_ONCE = 8192
_VALUES = re.compile(rb'(?:\A|(?<=[,\n]))(?:"(?:[^"]++|"")*+"|[^",\n]*+)(?=[,\n])')
"""Behind what parts them, or no value would be found once more between each and that."""


class Csv(WholeFileFormat):
    """All text is in quotes, with quotes doubled, so the empty text differs from null, and a value may hold ends of
    lines."""

    name = "csv"
    suffixes = (".csv.gz", ".csv.zst", ".csv")
    lying_suffixes = CSV_ENDS
    spelling = Spelling.CSV
    tells_types = False

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

    def check_options(self, options: LocalFileOptions, schema: pa.Schema) -> None:
        check_text_level(options)

    def check_appendable(self, options: LocalFileOptions) -> None:
        check_plain(self.name, options)

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
            names = names or _names(block)
            rows = _parsed(block, names, heads, wanted.written).slice(0, left)
            left -= rows.num_rows
            columns = [values_of(_one(rows[field.name]), field.type) for field in wanted.written]
            yield conform(pa.RecordBatch.from_arrays(columns, schema=wanted.written), wanted.schema)

    def tell(self, file: pa.NativeFile, path: str, size: int, *, own: bool, given: Given) -> Told | None:
        found = _own_schema(file, path) if own else csv_schema(file, path, size, given)
        return None if found is None else Told(found)

    def lying_rows(self, file: pa.NativeFile, path: str, size: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        return csv_rows(file, path, size, schema)

    def open_with(self, location: str, schema: pa.Schema) -> Mapping[str, str]:
        files = files_of(location, self.lying_suffixes)
        # Files that are older than a column do not have it.
        types = {name: kind for name, kind in duckdb_columns(schema).items() if kind != "VARCHAR"}
        # Spark takes the empty text for null unless null is another one.
        return {
            "DuckDB": f"import duckdb, glob; duckdb.read_csv({files}, header=True, union_by_name=True, "
            f"allow_quoted_nulls=False, dtype={types!r})",
            "Polars": "import glob, polars; polars.concat([polars.read_csv(glob.escape(file), "
            f"infer_schema_length=None, schema_overrides={_polars_types(schema)}) for file in {files}], "
            "how='diagonal_relaxed')",
            "Spark": f"spark.read.schema({spark_columns(schema)!r}).option('recursiveFileLookup', True)"
            f".option('pathGlobFilter', {spark_glob(self.lying_suffixes)!r})"
            ".option('header', True).option('enforceSchema', False)"
            f".option('multiLine', True).option('nullValue', chr(0)).option('escape', '\"').csv({location!r})",
        }


def _names(block: bytes) -> list[str]:
    return next(csv.reader(io.StringIO(block.decode(), newline="")))


def _own_schema(file: pa.NativeFile, path: str) -> pa.Schema | None:
    """Of a file of ours, whose texts are in quotes and whose numbers are not. Days, moments, decimals and bytes are
    texts here. None where there are no records."""
    found = SchemaSet(Spelling.CSV)
    names: list[str] = []
    for block in text_blocks(file, path, quotes=True):
        names, heads = names or _names(block), 0 if names else 1
        rows = _parsed(block, names, heads, None)
        if rows.num_rows:
            quoted = zip(rows.schema, _quoted(block, heads, len(names)), strict=True)
            columns = [column.with_type(pa.string()) if is_text else column for column, is_text in quoted]
            found.add(pa.schema(columns), path, found.files)
    return found.joined() if found.files else None


def _quoted(block: bytes, heads: int, columns: int) -> list[bool]:
    """Of each column whether its first value that is there is in quotes."""
    known: dict[int, bool] = {}
    place, record = 0, 0
    for value in _VALUES.finditer(block):
        if record >= heads and value[0] and place not in known:
            known[place] = value[0].startswith(b'"')
            if len(known) == columns:
                break
        place += 1
        if block[value.end() : value.end() + 1] == b"\n":
            place, record = 0, record + 1
    return [known.get(at, False) for at in range(columns)]


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


def _parsed(block: bytes, names: list[str], heads: int, written: pa.Schema | None) -> pa.Table:
    """The records of a block as these columns; without them, all with the types that Arrow finds."""
    import pyarrow.csv as arrow_csv

    return arrow_csv.read_csv(
        pa.BufferReader(block),
        read_options=arrow_csv.ReadOptions(
            use_threads=False, block_size=len(block) + 1, column_names=names, skip_rows_after_names=heads
        ),
        parse_options=arrow_csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        convert_options=arrow_csv.ConvertOptions(
            column_types=None if written is None else {field.name: _as_read(field.type) for field in written},
            include_columns=None if written is None else written.names,
            # Of a table that was rebuilt, older files may lack some.
            include_missing_columns=True,
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
