"""The table as a log: what each entry of the Delta log appended. Driver.

Only the entries of a range are read, and no checkpoint: what the table had before does not matter. The columns are
those of the table as it is now. delta-rs takes in all live files to tell them, so they are remembered for as long as
no entry describes the table again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from laketier.kit.scans import check_versions
from laketier.spi import (
    CorruptTable,
    IncompatibleTable,
    LakeChanges,
    LakeSplit,
    OffsetsExpired,
    ScanPlan,
    TableInfo,
    TableNotFound,
    VersionBounds,
    pass_over,
)
from laketier_delta.delta_log import DeltaLog
from laketier_delta.engine import arrow_schema, open_table
from laketier_delta.layout import bucket_of, relative_path
from laketier_delta.location import LOG, Location
from laketier_delta.log_file import LogFile
from laketier_delta.partitions import text_of_log
from laketier_delta.protocol import check_readable
from laketier_delta.references import REQUESTS

_ENTRY = re.compile(r"(\d{20})\.json")
FEED = "delta.enableChangeDataFeed"
_MANY = 100
"""Entries that are asked for at once, and that are read, at most, to find out whether the columns changed before a
range."""
_REMEMBERED_TABLES = 1024
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\b.*")


@dataclass(frozen=True)
class Appended:
    """The rows that one commit appended. ``operation`` as its writer named it; ``changes``: it took rows back too,
    those of ``removed``; ``describes``: it says what the table looks like. Of a table with a change feed, ``fed``
    are the files that say what it did to rows; ``feed``: whether it switched the feed on or off, None for neither."""

    version: int
    operation: str
    files: tuple[Mapping[str, Any], ...]
    changes: bool
    describes: bool
    removed: tuple[Mapping[str, Any], ...] = ()
    fed: tuple[Mapping[str, Any], ...] = ()
    feed: bool | None = None


def bounds(location: Location) -> VersionBounds:
    """From one listing of the log. Raises `TableNotFound` when there is none."""
    filesystem, where = location.filesystem, f"{location.root}/{LOG}"
    entries: dict[int, pafs.FileInfo] = {}
    newest, latest_at = -1, None
    for info in filesystem.get_file_info(pafs.FileSelector(where, allow_not_found=True)):
        if match := _ENTRY.fullmatch(info.base_name):
            entries[int(match[1])] = info
        elif match := _CHECKPOINT.fullmatch(info.base_name):
            newest = max(newest, int(match[1]))
    newest = max(newest, *entries, -1)
    if newest < 0:
        raise TableNotFound(
            "there is no Delta table", where=location.uri, fix="Create it first, or check the warehouse and the name."
        )
    if newest in entries:
        latest_at = entries[newest].mtime_ns // 1_000_000
    log = DeltaLog(filesystem, location.root)
    earliest = newest + 1
    # A listing may lack an entry that was added while it was made: a gap is one only when a second look says so.
    while earliest and (earliest - 1 in entries or _is_there(filesystem, log.path(earliest - 1))):
        earliest -= 1
    return VersionBounds(earliest=earliest, latest=newest + 1, latest_at=latest_at)


@dataclass(frozen=True)
class DeltaChanges(LakeChanges):
    """A version is that of the Delta log."""

    table: TableInfo
    location: Location

    def versions(self) -> VersionBounds:
        return bounds(self.location)

    def stamp(self, version: int) -> str | None:
        """The digest of the log's entry, which nobody changes once it is there."""
        found = DeltaLog(self.location.filesystem, self.location.root).digest(version)
        if found is None:
            bounds(self.location)  # raises TableNotFound
        return found

    def plan(self, start: int, end: int, *, skip_changes: bool = False) -> ScanPlan:
        """See `LakeChanges.plan`. Raises also `IncompatibleTable`."""
        known, commits = commits_of(self.table, self.location, start, end)
        adds: list[Mapping[str, Any]] = []
        for commit in commits:
            if commit.changes:
                pass_over(commit.version, commit.operation, where=self.location.uri, skip_changes=skip_changes)
            else:
                adds += commit.files
        buckets = self.table.descriptor.buckets is not None
        splits = tuple(splits_of(adds, known.schema, known.partition_columns, buckets=buckets))
        return ScanPlan(snapshot_id=end - 1, schema=known.schema, splits=splits)


def commits_of(table: TableInfo, location: Location, start: int, end: int) -> tuple[Columns, list[Appended]]:
    """Read the present description of the table, and the commits ``start`` to ``end`` (exclusive)."""
    memory = memory_of(location.uri, table.table_uuid)
    known = memory.columns
    if known is None or known.version < (table.snapshot_id or 0) or start - known.version > _MANY:
        known = memory.columns = Columns.look(location)
    commits = _read_all(location, min(start, known.version + 1), end)
    if any(commit.describes and commit.version > known.version for commit in commits):
        known = Columns.look(location)
    memory.columns = replace(known, version=max(known.version, end - 1))
    return known, [commit for commit in commits if commit.version >= start]


@dataclass(frozen=True)
class Columns:
    """The columns of the table as of ``version``."""

    version: int
    schema: pa.Schema
    partition_columns: tuple[str, ...]

    @classmethod
    def look(cls, location: Location) -> Columns:
        """Raises `IncompatibleTable` for a table that the plugin does not read."""
        handle = open_table(location)
        check_readable(handle, location.uri)
        return cls(handle.version(), arrow_schema(handle), tuple(handle.metadata().partition_columns))


@dataclass
class _Memory:
    columns: Columns | None = None
    feed_at: int | None = None
    """The version before which the table is known to have had its change feed on."""


@lru_cache(_REMEMBERED_TABLES)
def memory_of(uri: str, table_uuid: str) -> _Memory:  # noqa: ARG001 - what it is of
    return _Memory()


def _read_all(location: Location, start: int, end: int) -> list[Appended]:
    log = DeltaLog(location.filesystem, location.root)
    try:
        with ThreadPoolExecutor(REQUESTS) as pool:
            # In parts, as the range may end far beyond the table: its first version that is not there ends the reading.
            parts = (range(first, min(first + _MANY, end)) for first in range(start, end, _MANY))
            return [commit for part in parts for commit in pool.map(lambda version: _read(log, version), part)]
    except FileNotFoundError as error:
        there, keep = bounds(location), "Keep delta.logRetentionDuration longer than rounds lag behind."
        check_versions(start, end, there, where=location.uri, fix=keep)
        raise OffsetsExpired(
            f"of the versions {start} to {end - 1}, entries of the Delta log are gone",
            where=location.uri,
            why=f"it was cleaned up, and goes back to version {there.earliest}",
            fix=keep,
        ) from error


def splits_of(
    adds: Iterable[Mapping[str, Any]], schema: pa.Schema, partition_columns: Sequence[str], *, buckets: bool
) -> Iterator[LakeSplit]:
    """A split for each file, with its bucket where the table has ``buckets``. Raises `IncompatibleTable`."""
    kinds = {name: schema.field(name).type for name in partition_columns}
    for index, add in enumerate(adds):
        path = relative_path(add["path"])
        if add.get("deletionVector"):
            raise IncompatibleTable(
                "a file that was appended has a deletion vector",
                where=path,
                why="the delta plugin of laketier does not apply them",
                fix="Run REORG TABLE … APPLY (PURGE) with Spark, and read the table again into another one.",
            )
        values = add.get("partitionValues") or {}
        if values.keys() != kinds.keys():
            then, now = (", ".join(names) or "nothing" for names in (values, kinds))
            raise IncompatibleTable(
                f"a file was added while the table was partitioned by {then}, and now it is by {now}",
                where=path,
                why="another writer repartitioned it, and columns of that file would be read as nulls",
                fix="Give the table a new target, which begins with a snapshot.",
            )
        yield LakeSplit(
            index=index,
            rows=_rows(add),
            bytes=add.get("size"),
            bucket=bucket_of(path) if buckets else -1,
            partition=tuple((name, text_of_log(values.get(name), kind)) for name, kind in kinds.items()),
            payload=LogFile(path),
        )


def _read(log: DeltaLog, version: int) -> Appended:
    with log.filesystem.open_input_stream(log.path(version)) as stream:
        lines = stream.read().splitlines()
    operation, changes, describes, feed = "unknown", False, False, None
    files, removed, fed = [], [], []
    try:
        for line in filter(None, lines):
            for kind, action in json.loads(line).items():
                if kind == "add" and action.get("dataChange", True):
                    files.append(_of_a_file(action))
                elif kind == "remove" and action.get("dataChange", True):
                    removed.append(_of_a_file(action))
                    changes = True
                elif kind == "cdc":
                    fed.append(_of_a_file(action))
                elif kind == "metaData":
                    feed = has_feed(action.get("configuration") or {})
                elif kind == "commitInfo":
                    operation = str(action.get("operation", operation))
                describes |= kind in ("metaData", "protocol")
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise CorruptTable(f"{log.path(version)} is not a log entry", why=str(error)) from error
    # A restore may only add files: of rows that were there before and had gone.
    changes = changes or operation.upper() == "RESTORE"
    return Appended(version, operation, tuple(files), changes, describes, tuple(removed), tuple(fed), feed)


def _of_a_file(action: dict[str, Any]) -> dict[str, Any]:
    """``action``, if it says of its file what it has to. Raises `TypeError`."""
    values = action.get("partitionValues")
    values = {} if values is None else values
    size = action.get("size")
    fits = isinstance(action.get("path"), str) and isinstance(values, dict) and isinstance(size, int | None)
    texts = [action.get("stats"), *values.values()] if fits else []
    if not fits or not all(text is None or isinstance(text, str) for text in texts):
        raise TypeError(f"what it says of the file {action.get('path')!a} is of other types than those of the protocol")
    return action


def has_feed(properties: Mapping[str, str]) -> bool:
    """Whether a table with these properties keeps a change feed."""
    return str(properties.get(FEED, "false")).lower() == "true"


def _is_there(filesystem: pafs.FileSystem, path: str) -> bool:
    return filesystem.get_file_info(path).type is pafs.FileType.File


def _rows(add: Mapping[str, Any]) -> int | None:
    """None for statistics that another writer left without them, or damaged: nobody needs them."""
    try:
        rows = json.loads(add["stats"])["numRecords"] if add.get("stats") else None
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return rows if isinstance(rows, int) else None
