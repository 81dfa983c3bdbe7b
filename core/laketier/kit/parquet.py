"""A Parquet writer for plugins whose data files are Parquet: `laketier.kit.rolling` with row groups as blocks."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from laketier.kit.data_file import ClosedFile
from laketier.kit.nested import children
from laketier.kit.rolling import RollingWriter
from laketier.kit.rolling_settings import RollingSettings
from laketier.kit.views import schema_without_views
from laketier.spi.errors import ConfigError, UnstorableRows
from laketier.spi.options import option

__all__ = [
    "ClosedFile",
    "Compression",
    "GrowingParquetFile",
    "ParquetSettings",
    "RollingParquetWriter",
    "check_level",
    "encodings",
]


class Compression(enum.Enum):
    """Codecs that all readers of lake tables know."""

    ZSTD = "zstd"
    SNAPPY = "snappy"
    GZIP = "gzip"
    LZ4 = "lz4"
    NONE = "none"


@dataclass(frozen=True)
class ParquetSettings(RollingSettings):
    """How files are cut and encoded. The options of a format derive from this class, and so have these keys."""

    row_group_rows: int = option(1_048_576, "Rows per Parquet row group, at most.", least=1)
    row_group_bytes: int = option(128 * 1024 * 1024, "In-memory bytes per row group, at most.", least=1)
    compression: Compression = option(Compression.ZSTD, "Codec of data files: zstd, snappy, gzip, lz4 or none.")
    compression_level: int | None = option(None, "Level of the codec; the codec's own default when unset.")

    def check_level(self) -> None:
        """Raise `ConfigError` for a level that the codec does not have. Driver, before anything is written."""
        check_level(self.compression.value, self.compression_level)

    def arguments(self, schema: pa.Schema) -> dict[str, Any]:
        """The arguments of pyarrow's writer, for files of ``schema``. Raises `ConfigError`."""
        self.check_level()
        return {
            "compression": self.compression.value,
            "compression_level": self.compression_level,
            "store_decimal_as_integer": True,
            **encodings(schema),
        }

    def arranged(self, table: pa.Table) -> pa.Table:
        """The rows of a row group, in the order in which they are written."""
        return table


def check_level(codec: str, level: int | None) -> None:
    """Raise `ConfigError` unless ``level`` is unset, or one that pyarrow's ``codec`` takes. Driver."""
    if level is None:
        return
    try:
        pa.Codec(codec, compression_level=level).compress(b"")
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise ConfigError(
            f"compression-level is {level}, and the codec is {codec}",
            why=_levels_of(codec),
            fix="Leave it out for the codec's own default.",
        ) from error


def _levels_of(codec: str) -> str:
    try:
        found = pa.Codec.minimum_compression_level(codec), pa.Codec.maximum_compression_level(codec)
    except (pa.ArrowException, ValueError):
        return "that codec has no levels"
    return f"its levels are {found[0]} to {found[1]}"


_OVERFLOWS = "overflow when casting timestamp"
"""Of pyarrow's error: Parquet has no seconds."""


class RollingParquetWriter(RollingWriter):
    """A `RollingWriter` of Parquet files; a block is a row group, and the footer a `pyarrow.parquet.FileMetaData`."""

    def __init__(
        self,
        schema: pa.Schema,
        create: Callable[[tuple[Any, ...]], tuple[str, pa.NativeFile]],
        settings: ParquetSettings,
        *,
        keys: Callable[[pa.Table], Sequence[pa.ChunkedArray]] | None = None,
        file_schema: pa.Schema | None = None,
        on_closed: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__(
            schema,
            create,
            partial(GrowingParquetFile, settings=settings),
            settings,
            block_rows=settings.row_group_rows,
            block_bytes=settings.row_group_bytes,
            keys=keys,
            file_schema=file_schema,
            on_closed=on_closed,
        )


class GrowingParquetFile:
    """A `GrowingFile`."""

    def __init__(self, stream: pa.NativeFile, schema: pa.Schema, *, settings: ParquetSettings) -> None:
        import pyarrow.parquet as pq

        self._stream = stream
        self._settings = settings
        self._footers: list[Any] = []  # where pyarrow leaves the footer of a file when it closes it
        self._writer = pq.ParquetWriter(
            stream,
            schema,
            metadata_collector=self._footers,
            **settings.arguments(schema),
        )

    def write(self, table: pa.Table) -> None:
        """One row group. Raises `UnstorableRows` for a moment in seconds that Parquet's milliseconds don't reach."""
        schema = table.schema  # a table makes another object of it each time
        plain = schema_without_views(schema)
        if plain is not schema:  # pyarrow writes no slice of a struct with views
            table = table.cast(plain).cast(schema)
        try:
            self._writer.write_table(self._settings.arranged(table), row_group_size=max(table.num_rows, 1))
        except pa.ArrowInvalid as error:
            if _OVERFLOWS not in str(error):
                raise
            raise UnstorableRows(
                "a moment is beyond what Parquet holds",
                why=str(error).partition("\n")[0],
                fix="Leave such rows out in the query, or tier the column as an integer.",
            ) from error

    def tell(self) -> int:
        """Bytes of the row groups."""
        return int(self._stream.tell())

    def close(self) -> Any:
        """Write the footer and return it."""
        self._writer.close()
        return self._footers.pop()

    def abandon(self) -> None:
        """No footer."""
        self._writer.is_open = False  # else its finaliser writes a footer into the closed stream, and fails


def encodings(schema: pa.Schema) -> dict[str, Any]:
    """Encodings for top-level columns: deltas for integers and times, plain for floats, dictionaries for the rest.

    Dictionaries cost most where values hardly repeat. Floats would be smaller as byte streams, but Spark 4.1's reader
    refuses those ("Unsupported encoding: BYTE_STREAM_SPLIT"; 4.3's takes them). Both read the rest.
    """
    chosen: dict[str, str] = {}
    dictionary: list[str] = []
    for column in schema:
        kind = column.type
        if pt.is_floating(kind) and not pt.is_float16(kind):
            chosen[column.name] = "PLAIN"
        elif pt.is_integer(kind) or pt.is_timestamp(kind) or pt.is_date32(kind) or pt.is_time(kind):
            chosen[column.name] = "DELTA_BINARY_PACKED"
        elif pt.is_nested(kind):
            dictionary += [f"{column.name}.{leaf}" for leaf in _leaves(kind)]
        else:
            dictionary.append(column.name)
    # Parquet tells columns by their paths, and a column "a.b" has the same one as the leaf b of a struct a. Whatever
    # both of them are, a dictionary holds it.
    chosen = {name: encoding for name, encoding in chosen.items() if name not in dictionary}
    return {"use_dictionary": dictionary or False, "column_encoding": chosen or None}


def _leaves(kind: pa.DataType) -> list[str]:
    """Paths of the leaf columns below a nested column, as Parquet spells them."""
    inside = children(kind)
    if not inside and not pt.is_struct(kind):
        return [""]
    group = "" if pt.is_struct(kind) else "key_value." if pt.is_map(kind) else "list."
    return [f"{group}{name}.{leaf}".rstrip(".") for name, child in inside for leaf in _leaves(child.type)]
