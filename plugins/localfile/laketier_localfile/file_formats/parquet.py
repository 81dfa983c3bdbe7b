"""Parquet: the default, and the only one that Spark reads without laketier's Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import pyarrow as pa

from laketier.codecs.inference import Given
from laketier.codecs.parquet_pages import check_chunks
from laketier.kit import conform
from laketier.kit.data_file import ClosedFile, OpenFile
from laketier.kit.parquet import GrowingParquetFile
from laketier.kit.parquet_reader import open_parquet, read_batches
from laketier.tables.evolution import logical_schema
from laketier_localfile.file_formats.interface import Described, FileFormat, Measured, Told, Wanted
from laketier_localfile.file_formats.plain_types import below
from laketier_localfile.names import PARQUET
from laketier_localfile.options import LocalFileOptions
from laketier_localfile.parquet import Stats, column_stats, footer_digest, has_bounds, places_of_columns
from laketier_localfile.types import check_types


class Parquet(FileFormat):
    """Files whose footer names every column chunk, its place and size: its digest tells files apart."""

    name = PARQUET
    suffixes = (".parquet",)
    lying_suffixes = (".parquet",)
    tells_by_ranges = True

    def suffix(self, options: LocalFileOptions) -> str:
        return ".parquet"

    def check_types(self, schema: pa.Schema) -> None:
        check_types(schema)

    def check_options(self, options: LocalFileOptions, schema: pa.Schema) -> None:
        options.arguments(schema)

    def opener(self, options: LocalFileOptions) -> OpenFile:
        return partial(GrowingParquetFile, settings=options)

    def describe(self, file: ClosedFile, schema: pa.Schema, data: pa.NativeFile) -> Described:
        return Described(footer_digest(data, file.bytes), column_stats(file.footer, schema))

    def seal(self, file: pa.NativeFile, size: int) -> str:
        return footer_digest(file, size)

    def check(self, file: pa.NativeFile, size: int, digest: str) -> bool:
        return footer_digest(file, size) == digest

    def read(self, file: pa.NativeFile, path: str, wanted: Wanted) -> Iterator[pa.RecordBatch]:
        with open_parquet(file, checksums=True) as parquet:
            there = set(parquet.schema_arrow.names)
            present = [name for name in wanted.schema.names if name in there]
            left = wanted.rows
            for batch in read_batches(parquet, present):
                if left <= 0:
                    return
                piece = batch.select(present).slice(0, left)
                left -= piece.num_rows
                yield conform(piece, wanted.schema)

    def tell(self, file: pa.NativeFile, path: str, size: int, *, own: bool, given: Given) -> Told:
        """By its footer alone."""
        digest = footer_digest(file, size)
        file.seek(0)
        with open_parquet(file) as parquet:
            check_chunks(file, size, parquet.metadata)
            schema = logical_schema(parquet.schema_arrow.remove_metadata())
            stats = _own_word(parquet.metadata, schema)
            return Told(schema, Measured(parquet.metadata.num_rows, Described(digest, stats)))

    def lying_rows(self, file: pa.NativeFile, path: str, size: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        with open_parquet(file, checksums=True) as parquet:
            present = [name for name in schema.names if name in parquet.schema_arrow.names]
            if present:
                for batch in read_batches(parquet, present):
                    yield batch.select(present)

    def open_with(self, location: str, schema: pa.Schema) -> Mapping[str, str]:
        # Partition columns are in the files with their types, so no reader needs to guess them from folder names.
        files = below(location, ".parquet")
        return {
            "DuckDB": f"import duckdb; duckdb.read_parquet({files!r}, hive_partitioning=False, union_by_name=True)",
            # Readers that take the first file's schema for all would lose, or choke on, columns that were added
            # or widened later.
            "Polars": "import glob, polars; polars.concat([polars.scan_parquet(glob.escape(file), "
            f"hive_partitioning=False) for file in glob.glob({files!r}, recursive=True)], "
            "how='diagonal_relaxed').collect()",
            "Spark": "spark.read.option('recursiveFileLookup', True).option('mergeSchema', True)"
            f".parquet({location!r})",
        }


def _own_word(footer: Any, schema: pa.Schema) -> Stats:
    """The footer's own statistics, of columns whose names say which they are."""
    plain = pa.schema([column for column in schema if "." not in column.name and has_bounds(column.type)])
    there = places_of_columns(footer)
    stats = column_stats(footer, pa.schema([column for column in plain if column.name in there]))
    return {name: each for name, each in stats.items() if 0 <= each[2] <= footer.num_rows}
