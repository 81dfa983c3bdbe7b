"""A folder of Parquet files as a source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar

import pyarrow as pa
from pyarrow import fs

from laketier.config.locations import absolute
from laketier.connectors.location import filesystem_of, is_hidden
from laketier.connectors.parquet_parts import read_footer, read_row_groups, row_group_ranges
from laketier.kit.foreign_tables import mark_among, taken_for_files
from laketier.kit.looks import is_link
from laketier.kit.parquet_reader import naming_damage, open_parquet
from laketier.spi import (
    ConfigError,
    IncompatibleData,
    LakeSource,
    LakeSplit,
    ScanPlan,
    ScanRequest,
    SnapshotNotFound,
)


@dataclass(frozen=True)
class RowGroups:
    """Row groups ``first`` to ``last`` of a file. Its size and time name the rows, for a plan has no snapshot."""

    path: str
    first: int
    last: int
    size: int
    mtime_ns: int


@dataclass(frozen=True)
class ParquetFolder(LakeSource):
    """All Parquet files below ``location`` (a path or URI), hidden ones (``_x``, ``.x``) left out.

    The columns are those of the first file by name unless ``schema`` gives them; a file that lacks some reads as
    null there, one with others is refused when it is planned. Symbolic links below the folder are refused, and folders
    of tables whose own rules say which files count. A file is split at row groups into parts of about
    ``split_bytes``.
    """

    split_payload: ClassVar[type] = RowGroups

    location: str
    schema: pa.Schema | None = None
    split_bytes: int = 128 * 1024 * 1024
    storage: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        """Tasks run in other processes, which work in folders of their own."""
        object.__setattr__(self, "location", absolute(self.location))

    def plan(self, request: ScanRequest) -> ScanPlan:
        """See `LakeSource.plan`. Every footer is read, on the driver, as the splits are made of row groups."""
        if request.snapshot_id is not None or request.as_of is not None:
            raise SnapshotNotFound("a folder has no snapshots", where=self.location)
        filesystem, files = self._files()
        full: pa.Schema | None = self.schema
        splits: list[LakeSplit] = []
        for info in files:
            footer, schema = read_footer(filesystem, info.path)
            schema = schema.remove_metadata()
            full = schema if full is None else full
            _check_columns(info.path, schema, full)
            for first, last, rows, size in row_group_ranges(footer, info.size, self.split_bytes):
                payload = RowGroups(info.path, first, last, info.size, info.mtime_ns)
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
        filesystem, _ = filesystem_of(self.location)
        part: RowGroups = split.payload
        with filesystem.open_input_file(part.path) as file, naming_damage(part.path):
            yield from read_row_groups(open_parquet(file, pre_buffer=True), range(part.first, part.last + 1), schema)

    def _files(self) -> tuple[fs.FileSystem, list[fs.FileInfo]]:
        filesystem, folder = filesystem_of(self.location)
        try:
            found = filesystem.get_file_info(fs.FileSelector(folder, recursive=True))
        except (FileNotFoundError, NotADirectoryError) as error:
            raise ConfigError("the folder does not exist", where=self.location, fix="Check the path.") from error
        mark = mark_among(
            info.path[len(folder) :].lstrip("/") + ("/" if info.type is fs.FileType.Directory else "") for info in found
        )
        if mark is not None:
            raise taken_for_files(mark, self.location)
        if isinstance(filesystem, fs.LocalFileSystem):
            _refuse_links(folder, (info.path for info in found))
        files = [
            info
            for info in found
            if info.type is fs.FileType.File
            and info.path.endswith(".parquet")
            and not is_hidden(info.path[len(folder) :])
        ]
        return filesystem, sorted(files, key=lambda info: info.path)


def _refuse_links(folder: str, paths: Iterable[str]) -> None:
    """The listing follows symbolic links: one can lead around in a loop, or to files that only this process may read.
    The folder itself may be one, as its user named it."""
    for path in paths:
        if not is_hidden(path[len(folder) :]) and is_link(path):
            raise ConfigError(
                "a folder source does not follow symbolic links",
                where=ascii(path)[1:-1],
                fix="Give the folder that it leads to, or hide it: names that begin with _ or . are left out.",
            )


def _check_columns(path: str, schema: pa.Schema, full: pa.Schema) -> None:
    extra = [name for name in schema.names if name not in full.names]
    if extra:
        raise IncompatibleData(
            f"the file has columns {extra}, and the files before it do not",
            where=path,
            fix="Give the schema with all columns, or keep files of different kinds in different folders.",
        )


def _chosen(full: pa.Schema, columns: tuple[str, ...] | None) -> pa.Schema:
    if columns is None:
        return full
    unknown = [name for name in columns if name not in full.names]
    if unknown:
        raise ConfigError(f"{unknown} are not columns", fix=f"The columns are {', '.join(full.names)}.")
    return pa.schema([full.field(name) for name in columns])
