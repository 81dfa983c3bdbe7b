"""The change feed of a table: what each commit did to rows. Planned on the driver, read on executors.

A commit that has files of changes says all in them. Any other is told by the files that it added and removed, as the
protocol asks. Within a version all rows as they were come before those as they are, so a key that one commit took
away and added is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from laketier.spi import (
    CHANGE_TYPE,
    ConfigError,
    CorruptTable,
    IncompatibleTable,
    LakeFeed,
    LakeSplit,
    OffsetsExpired,
    ScanPlan,
    TableInfo,
)
from laketier_delta.changes import FEED, Appended, commits_of, has_feed, memory_of, splits_of
from laketier_delta.engine import open_table
from laketier_delta.location import Location
from laketier_delta.log_file import Fed, LogFile

_ONE_TYPE = {Fed.INSERTS: "+I", Fed.DELETES: "-D"}
_TYPES = {
    # Not -U: nothing keeps an update from changing the values that the reader takes for the key.
    Fed.BEFORE: {"delete": "-D", "update_preimage": "-D"},
    Fed.AFTER: {"insert": "+I", "update_postimage": "+U"},
}
_KNOWN = [name for types in _TYPES.values() for name in types]


@dataclass(frozen=True)
class DeltaFeed(LakeFeed):
    """The change data feed. A version is that of the Delta log."""

    table: TableInfo
    location: Location

    def plan(self, start: int, end: int) -> ScanPlan:
        """See `LakeFeed.plan`. Raises also `IncompatibleTable`."""
        return _plan(self.table, self.location, start, end)


def check_feed(location: Location) -> None:
    """Raise `ConfigError` for a table whose feed is off."""
    if not has_feed(open_table(location).metadata().configuration):
        raise ConfigError(
            "the table keeps no change feed",
            where=location.uri,
            why=f"{FEED} is not true",
            fix=f"Set the table property {FEED} to true, or leave out read.changes.",
        )


def _plan(table: TableInfo, location: Location, start: int, end: int) -> ScanPlan:
    known, commits = commits_of(table, location, start, end)
    _check_on(table, location, commits, start, end)
    buckets = table.descriptor.buckets is not None
    numbers = count()

    def splits(actions: Iterable[Mapping[str, Any]], fed: Fed) -> Iterator[LakeSplit]:
        actions = list(actions)
        if known.partition_columns:
            _check_values(actions, location)
        for split in splits_of(actions, known.schema, known.partition_columns, buckets=buckets):
            yield replace(split, index=next(numbers), payload=replace(split.payload, fed=fed))

    planned: list[LakeSplit] = []
    for commit in commits:
        if commit.fed:
            planned += [*splits(commit.fed, Fed.BEFORE), *splits(commit.fed, Fed.AFTER)]
        else:
            planned += [*splits(commit.removed, Fed.DELETES), *splits(commit.files, Fed.INSERTS)]
    schema = known.schema.append(pa.field(CHANGE_TYPE, pa.string()))
    return ScanPlan(snapshot_id=end - 1, schema=schema, splits=tuple(planned))


def with_change_types(
    file: LogFile, schema: pa.Schema, read: Callable[[pa.Schema], Iterator[pa.RecordBatch]]
) -> Iterator[pa.RecordBatch]:
    """What ``file`` gives to the feed, in ``schema``. ``read`` gives the file's rows. Raises `CorruptTable`."""
    assert file.fed is not None
    rows = pa.schema([field for field in schema if field.name != CHANGE_TYPE])
    if file.fed in _ONE_TYPE:
        for batch in read(rows):
            yield _typed(batch, pa.repeat(pa.scalar(_ONE_TYPE[file.fed]), batch.num_rows), schema)
        return
    types = _TYPES[file.fed]
    for batch in read(rows.append(pa.field(CHANGE_TYPE, pa.string()))):
        found = batch.column(CHANGE_TYPE)
        if not pc.all(pc.is_in(found, value_set=pa.array(_KNOWN))).as_py() and batch.num_rows:
            raise CorruptTable(f"a file of changes has other change types than {_KNOWN}", where=file.path)
        wanted = batch.filter(pc.is_in(found, value_set=pa.array(list(types))))
        places = pc.index_in(wanted.column(CHANGE_TYPE), value_set=pa.array(list(types)))
        yield _typed(wanted, pa.array(list(types.values())).take(places), schema)


def _typed(batch: pa.RecordBatch, types: pa.Array, schema: pa.Schema) -> pa.RecordBatch:
    if not len(schema):
        return batch.select([])
    arrays = [types if field.name == CHANGE_TYPE else batch.column(field.name) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _check_on(table: TableInfo, location: Location, commits: Iterable[Appended], start: int, end: int) -> None:
    """Without the feed, nothing keeps a writer from leaving out the files of changes."""
    commits = list(commits)
    if not commits:  # the version after the newest is not there to be looked at
        return
    memory = memory_of(location.uri, table.table_uuid)
    on = memory.feed_at == start or _was_on(location, start)
    for commit in commits:
        on = on if commit.feed is None else commit.feed
        if not on:
            raise IncompatibleTable(
                f"version {commit.version} was committed while the table kept no change feed",
                where=location.uri,
                why=f"{FEED} was not true then",
                fix="Give the table a new target, which begins with a snapshot.",
            )
    memory.feed_at = end


def _was_on(location: Location, version: int) -> bool:
    try:
        return has_feed(open_table(location, version).metadata().configuration)
    except CorruptTable as error:
        raise OffsetsExpired(
            f"whether version {version} has a change feed is not known any more",
            where=location.uri,
            why=error.why or error.what,
            fix="Keep delta.logRetentionDuration longer than rounds lag behind.",
        ) from error


def _check_values(actions: Iterable[Mapping[str, Any]], location: Location) -> None:
    for action in actions:
        if action.get("partitionValues") is None:
            raise IncompatibleTable(
                "a commit does not say which partition a file was removed from",
                where=f"{location.uri}/{action['path']}",
                why="the table's writer leaves out extended file metadata",
                fix="Give the table a new target, which begins with a snapshot.",
            )
