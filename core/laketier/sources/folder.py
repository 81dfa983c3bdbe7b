"""A folder of Parquet files as a source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from laketier.spi import (
    ConfigError,
    CorruptTable,
    FeatureNotSupported,
    IncompatibleData,
    LakeSource,
    LakeSplit,
    ScanPlan,
    ScanRequest,
    SnapshotNotFound,
)
from laketier.spi.conform import conform

_HIDDEN = ("_", ".")
_BATCH_ROWS = 131_072


@dataclass(frozen=True)
class ParquetFolder(LakeSource):
    """All Parquet files below ``location`` (a path or URI), hidden ones (``_x``, ``.x``) left out.

    The columns are those of the first file by name unless ``schema`` gives them; a file that lacks some reads as
    null there, one with others is refused when it is planned. A file is split at row groups into parts of about
    ``split_bytes``.
    """

    location: str
    schema: pa.Schema | None = None
    split_bytes: int = 128 * 1024 * 1024
    storage: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    def plan(self, request: ScanRequest) -> ScanPlan:
        """See `LakeSource.plan`. Every footer is read, on the driver, as the splits are made of row groups."""
        if request.snapshot_id is not None or request.as_of is not None:
            raise SnapshotNotFound("a folder has no snapshots", where=self.location)
        filesystem, files = self._files()
        full: pa.Schema | None = self.schema
        splits: list[LakeSplit] = []
        for info in files:
            footer = _footer(filesystem, info.path)
            schema = footer.schema.to_arrow_schema().remove_metadata()
            full = schema if full is None else full
            _check_columns(info.path, schema, full)
            for first, last, rows, size in _row_group_ranges(footer, self.split_bytes):
                payload = {
                    "path": info.path,
                    "first": str(first),
                    "last": str(last),
                    "size": str(info.size),
                    "mtime": str(info.mtime_ns),
                }
                splits.append(LakeSplit(index=len(splits), rows=rows, bytes=size, payload=payload))
        if full is None:
            raise ConfigError(
                "the folder holds no Parquet file, so its columns are unknown",
                where=self.location,
                fix="Check the path, or give the schema.",
            )
        return ScanPlan(
            snapshot_id=None,
            schema=_chosen(full, request.columns),
            splits=tuple(splits),
            remaining=request.filters,
        )

    def read(self, split: LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """See `LakeSource.read`."""
        filesystem, _ = _filesystem_of(self.location)
        payload = split.payload
        with filesystem.open_input_file(payload["path"]) as file:
            parquet = pq.ParquetFile(file, pre_buffer=True)
            names = [name for name in schema.names if name in parquet.schema_arrow.names]
            groups = range(int(payload["first"]), int(payload["last"]) + 1)
            for batch in parquet.iter_batches(_BATCH_ROWS, row_groups=list(groups), columns=names):
                if names:
                    yield conform(batch, schema)
                else:
                    yield _nulls(batch.num_rows, schema)

    def _files(self) -> tuple[fs.FileSystem, list[fs.FileInfo]]:
        filesystem, folder = _filesystem_of(self.location)
        try:
            found = filesystem.get_file_info(fs.FileSelector(folder, recursive=True))
        except (FileNotFoundError, NotADirectoryError) as error:
            raise ConfigError("the folder does not exist", where=self.location, fix="Check the path.") from error
        files = [
            info
            for info in found
            if info.type is fs.FileType.File
            and info.path.endswith(".parquet")
            and not any(part.startswith(_HIDDEN) for part in info.path[len(folder) :].split("/") if part)
        ]
        return filesystem, sorted(files, key=lambda info: info.path)


def _filesystem_of(location: str) -> tuple[fs.FileSystem, str]:
    if "://" not in location and not location.startswith("file:"):
        return fs.LocalFileSystem(), location.rstrip("/") or "/"
    try:
        filesystem, folder = fs.FileSystem.from_uri(location)
    except (pa.ArrowInvalid, OSError) as error:
        raise FeatureNotSupported(
            "the location", format="a folder source", reason=f"pyarrow can't open {location}: {error}"
        ) from error
    return filesystem, folder.rstrip("/")


def _footer(filesystem: fs.FileSystem, path: str) -> pq.FileMetaData:
    try:
        with filesystem.open_input_file(path) as file:
            return pq.read_metadata(file)
    except pa.ArrowInvalid as error:
        raise CorruptTable(
            "the file is not a whole Parquet file",
            where=path,
            why=str(error),
            fix="Land files under a hidden name (_x or .x) and rename them when they are complete.",
        ) from error


def _check_columns(path: str, schema: pa.Schema, full: pa.Schema) -> None:
    extra = [name for name in schema.names if name not in full.names]
    if extra:
        raise IncompatibleData(
            f"the file has columns {extra}, and the files before it do not",
            where=path,
            fix="Give the schema with all columns, or keep files of different kinds in different folders.",
        )


def _row_group_ranges(footer: pq.FileMetaData, most: int) -> Iterator[tuple[int, int, int, int]]:
    """(first, last, rows, bytes) of consecutive row groups that together stay near ``most`` bytes."""
    first, rows, size = 0, 0, 0
    for index in range(footer.num_row_groups):
        group = footer.row_group(index)
        compressed = sum(group.column(c).total_compressed_size for c in range(group.num_columns))
        if rows and size + compressed > most:
            yield first, index - 1, rows, size
            first, rows, size = index, 0, 0
        rows += group.num_rows
        size += compressed
    if rows:
        yield first, footer.num_row_groups - 1, rows, size


def _chosen(full: pa.Schema, columns: tuple[str, ...] | None) -> pa.Schema:
    if columns is None:
        return full
    unknown = [name for name in columns if name not in full.names]
    if unknown:
        raise ConfigError(f"{unknown} are not columns", fix=f"The columns are {', '.join(full.names)}.")
    return pa.schema([full.field(name) for name in columns])


def _nulls(rows: int, schema: pa.Schema) -> pa.RecordBatch:
    if not schema.names:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))
    return pa.RecordBatch.from_arrays([pa.nulls(rows, f.type) for f in schema], schema=schema)
