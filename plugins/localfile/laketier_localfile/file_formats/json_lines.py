"""JSON lines: a row is an object on a line of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.types as pt

from laketier.codecs.inference import Given
from laketier.codecs.json_values import read_documents
from laketier.kit import conform
from laketier.kit.data_file import OpenFile
from laketier.kit.nested import children
from laketier.spi import UnsupportedType
from laketier.tables.promotion import Spelling
from laketier_localfile.file_formats.foreign_lines import json_rows, json_schema
from laketier_localfile.file_formats.interface import Told, Wanted
from laketier_localfile.file_formats.json_text import as_read, lines, restored
from laketier_localfile.file_formats.plain_types import duckdb_columns, files_of, spark_columns, spark_glob
from laketier_localfile.file_formats.text_file import (
    GrowingText,
    check_plain,
    check_text_level,
    squeeze_of,
    suffix_of,
    text_blocks,
)
from laketier_localfile.file_formats.whole import WholeFileFormat
from laketier_localfile.names import JSON_ENDS
from laketier_localfile.options import LocalFileOptions
from laketier_localfile.types import check_types


class JsonLines(WholeFileFormat):
    """Lines of JSON, in UTF-8. ``NaN`` and ``Infinity`` are bare, as JavaScript and Python write them; JSON itself has
    no such numbers."""

    name = "json"
    suffixes = (".json.gz", ".json.zst", ".json")
    lying_suffixes = JSON_ENDS
    spelling = Spelling.JSON
    tells_types = False

    def suffix(self, options: LocalFileOptions) -> str:
        return suffix_of(".json", options)

    def check_types(self, schema: pa.Schema) -> None:
        check_types(schema)
        for column in schema:
            _refuse_same_names(column.name, column.type)

    def check_options(self, options: LocalFileOptions, schema: pa.Schema) -> None:
        check_text_level(options)

    def check_appendable(self, options: LocalFileOptions) -> None:
        check_plain(self.name, options)

    def opener(self, options: LocalFileOptions) -> OpenFile:
        def begin(stream: pa.NativeFile, schema: pa.Schema) -> GrowingText:
            return GrowingText(stream, schema, encode=lines, squeeze=squeeze_of(options))

        return begin

    def read(self, file: pa.NativeFile, path: str, wanted: Wanted) -> Iterator[pa.RecordBatch]:
        schema = pa.schema([pa.field(field.name, as_read(field.type)) for field in wanted.written])
        left = wanted.rows
        for block in text_blocks(file, path):
            if left <= 0:
                return
            rows = read_documents(block, schema, "ignore").slice(0, left)
            left -= rows.num_rows
            columns = [restored(_one(rows[field.name]), field.type) for field in wanted.written]
            yield conform(pa.RecordBatch.from_arrays(columns, schema=wanted.written), wanted.schema)

    def tell(self, file: pa.NativeFile, path: str, size: int, *, own: bool, given: Given) -> Told | None:
        found = json_schema(file, path, size, None if own else given, own=own)
        return None if found is None else Told(found)

    def lying_rows(self, file: pa.NativeFile, path: str, size: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        return json_rows(file, path, size, schema)

    def open_with(self, location: str, schema: pa.Schema) -> Mapping[str, str]:
        # The manifests end with .json, too, and what is staged or superseded has another end.
        files = files_of(location, self.lying_suffixes)
        return {
            "DuckDB": f"import duckdb, glob; duckdb.read_json({files}, format='newline_delimited', "
            f"columns={duckdb_columns(schema)!r})",
            "Polars": "import glob, polars; polars.concat([polars.scan_ndjson(glob.escape(file), "
            f"infer_schema_length=None) for file in {files}], how='diagonal_relaxed').collect()",
            "Spark": f"spark.read.schema({spark_columns(schema)!r}).option('recursiveFileLookup', True)"
            f".option('pathGlobFilter', {spark_glob(self.lying_suffixes)!r}).json({location!r})",
        }


def _one(column: pa.ChunkedArray) -> pa.Array:
    """As one array that is no slice of a larger one."""
    array = column.combine_chunks()
    return pa.concat_arrays([array, array.slice(0, 0)]) if array.offset else array


def _refuse_same_names(path: str, kind: pa.DataType) -> None:
    names = [name for name, _ in children(kind)]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None and pt.is_struct(kind):
        raise UnsupportedType(
            f"column {path!r} has two fields named {json.dumps(twice, ensure_ascii=False)}",
            why="readers of JSON objects keep one of them",
            fix="Rename one in the query, or tier into a table of Parquet files.",
        )
    for name, child in children(kind):
        _refuse_same_names(f"{path}.{name}", child.type)
