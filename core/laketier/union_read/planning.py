"""Planning a union read: a snapshot of the lake table, and the rows of the log beyond that snapshot's offsets.

The snapshot and its offsets are read at once, and the lake is scanned at exactly that snapshot. So a round that
commits meanwhile changes neither half: no row is missing or doubled. (Apache Fluss's union read does the same with
the offsets that it keeps beside the snapshot; here the table itself holds them.)
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from laketier.config import LakeConfig
from laketier.kit.storage_errors import naming_storage_errors
from laketier.registry import Lake, open_lake
from laketier.rounds.keyed import rows_of_changes
from laketier.rounds.ranges import next_range
from laketier.rounds.stamps import check_history, stamped
from laketier.spi import (
    ConfigError,
    FeatureNotSupported,
    LogOffsets,
    LogTable,
    ScanRequest,
    SourceRange,
    TableChanged,
    TableInfo,
    TableLog,
    TableNotFound,
    columns_of,
)
from laketier.spi.schema import widens
from laketier.tables import logical_schema, opened
from laketier.tables.scan import limited, plan_scan
from laketier.tiering.committed import committed_offsets
from laketier.union_read.merge_read import MergeRead, check_same_key, merge_splits
from laketier.union_read.scan import LakeHalf, UnionScan, UnionSplit

_LOOKS = 10


def plan_union(
    config: LakeConfig,
    log: TableLog,
    request: ScanRequest | None = None,
    *,
    tolerant: bool = False,
    is_looked_at_again: bool = False,
) -> UnionScan:
    """Plan on the driver. ``config`` names the lake table and the pipeline that tiers it; a table that was not tiered
    yet is read from the log alone. ``tolerant``: records that are no rows are left out, where they are left out of the
    lake; otherwise they are errors, as there. ``is_looked_at_again``: whether the log is, once all was read.

    Raises `ConfigError` for a request that names a snapshot or unknown columns, `OffsetsExpired` when the log lost what
    the lake has not, `OffsetsRewritten` when it was put back from a backup, `TableChanged`, `IncompatibleTable` when
    lake and log have other primary keys, `Refused`, and what either side raises.
    """
    request = request or ScanRequest()
    where = str(config.table)
    if request.snapshot_id is not None or request.as_of is not None:
        raise ConfigError(
            "a union read can only read the present state",
            where=where,
            fix="Read the lake alone for an older snapshot.",
        )
    if log.table.change_column is not None and not log.table.primary_key:
        raise FeatureNotSupported("union read", format=f"the log of changes {log.table.name}", reason="it has no key")
    with naming_storage_errors("a union read was planned"):
        seen = _look(config, log)
        columns = _columns(log)
        lake_names = {} if seen is None else _lake_names(seen.table.schema, columns, log.table.former_names)
        schema = columns if seen is None else _both(seen.table.schema, lake_names, columns)
        wanted = request.projected(schema, where=where)
        keyed = log.table.primary_key
        hidden = sorted({*columns_of(request.filters), *keyed}.difference(wanted.names))
        needed = pa.schema([*wanted, *(schema.field(name) for name in hidden)])
        lake = (
            None
            if seen is None or seen.snapshot_id is None
            else _lake_half(seen, needed, lake_names, request, keyed=bool(keyed))
        )
        # After the lake was looked at: so its end is never before the start.
        upcoming = next_range(None if seen is None else seen.offsets, log.bounds())
        source = None
        if not upcoming.wanted.is_empty:
            source = stamped(upcoming.source, log) if is_looked_at_again else None
            check_history(None if seen is None else seen.read, log, where=where)
        there = () if lake is None else lake.scan.plan.splits
        changes = log.plan(upcoming.wanted)
        splits: tuple[UnionSplit, ...] = (*there, *changes)
        if keyed:
            splits = merge_splits(there, changes, None if seen is None else seen.table, log.table, needed)
    return UnionScan(
        schema=wanted,
        lake=lake,
        log=log,
        splits=splits,
        offsets=upcoming.wanted,
        snapshot_id=None if seen is None else seen.snapshot_id,
        needed=needed,
        filters=request.filters,
        limit=request.limit,
        tolerant=tolerant,
        merge=MergeRead(keyed, log.table.change_column, needed) if keyed else None,
        where=where,
        source=source,
    )


def union_batches(
    config: LakeConfig,
    log: TableLog,
    request: ScanRequest | None = None,
    *,
    tolerant: bool = False,
    look_again: Callable[[], LogTable] | None = None,
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Plan and read a union in this process. Returns the schema and the rows. Arguments and errors as `plan_union`.
    ``look_again``: asks the source for the table as it is now. After the last row it is asked, and the log for its
    stamp: a table that was made again or put back meanwhile may have given rows of both, and the rows end with
    `TableChanged` or `OffsetsRewritten`."""
    planned = plan_union(config, log, request, tolerant=tolerant, is_looked_at_again=True)

    def rows() -> Iterator[pa.RecordBatch]:
        batches = (batch for split in planned.splits for batch in planned.read(split))
        yield from limited(batches, planned.limit)
        planned.look_again(lambda: None if look_again is None else look_again().table_id)

    return planned.schema, rows()


@dataclass(frozen=True)
class _Look:
    """A lake table, and its offsets at just this snapshot. None of either: it was created, and nothing committed."""

    lake: Lake
    table: TableInfo
    snapshot_id: int | None
    offsets: LogOffsets | None
    read: SourceRange | None
    """What its last round read, which ended at ``offsets``."""


def _look(config: LakeConfig, log: TableLog) -> _Look | None:
    lake = open_lake(config)
    assert config.pipeline is not None
    for _ in range(_LOOKS):
        try:
            table = opened(lake)
        except TableNotFound:
            return None
        state = lake.state(table)
        if (state.table_uuid, state.schema_fingerprint) != (table.table_uuid, table.schema_fingerprint):
            # Of a format that looks twice, recreated or given a column in between: the snapshot has what the table
            # lacks.
            continue
        watermark = state.watermark(config.pipeline)
        offsets = committed_offsets(watermark, log.table, where=str(config.table))
        if state.snapshot_id is None and offsets is not None:
            raise FeatureNotSupported("union read", format=config.format, reason="its tables have no snapshots")
        check_same_key(table, log.table)
        read = None if watermark is None or offsets is None else watermark.token.source
        return _Look(lake, table, state.snapshot_id, offsets, read)
    raise TableChanged(
        f"the table changed its schema or was recreated during each of {_LOOKS} attempts to read it",
        where=str(config.table),
        fix="Try again when fewer changes are made.",
    )


def _columns(log: TableLog) -> pa.Schema:
    """Those of the log's rows."""
    columns = logical_schema(log.table.schema)
    return rows_of_changes(columns, log.table.change_column) if log.table.primary_key else columns


def _lake_names(lake: pa.Schema, columns: pa.Schema, former_names: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The lake's columns by what the source calls them now: it may have renamed some since the last round."""
    now = {name: name for name in lake.names}
    for name in columns.names:
        if name not in lake.names:
            known = (old for old in former_names.get(name, ()) if old in lake.names and old not in columns.names)
            now |= dict.fromkeys(itertools.islice(known, 1), name)
    return {new: old for old, new in now.items()}


def _both(lake: pa.Schema, lake_names: Mapping[str, str], columns: pa.Schema) -> pa.Schema:
    """The lake's columns, and those that the source has got since its last round; with its types where these are wider
    by now."""
    have = []
    for name, old in lake_names.items():
        field = lake.field(old).remove_metadata().with_name(name)
        wider = name in columns.names and widens(field.type, columns.field(name).type)
        have.append(field.with_type(columns.field(name).type) if wider else field)
    return pa.schema([*have, *(field.with_nullable(True) for field in columns if field.name not in lake_names)])


def _lake_half(
    seen: _Look, needed: pa.Schema, lake_names: Mapping[str, str], request: ScanRequest, *, keyed: bool
) -> LakeHalf:
    """Filters on columns that the lake lacks, or has otherwise, are the union's own to apply, and then the limit is
    too; so it is where the log may say that rows are gone."""
    table = seen.table.schema
    rows = pa.schema([field for field in needed if field.name in lake_names])
    same = {field.name for field in rows if field.name in table.names and table.field(field.name).type == field.type}
    filters = tuple(predicate for predicate in request.filters if columns_of((predicate,)) <= same)
    scan = plan_scan(
        seen.lake.source(seen.table),
        ScanRequest(
            columns=tuple(lake_names[name] for name in rows.names),
            filters=filters,
            limit=request.limit if len(filters) == len(request.filters) and not keyed else None,
            snapshot_id=seen.snapshot_id,
        ),
    )
    return LakeHalf(scan, rows)
