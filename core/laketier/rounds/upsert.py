"""Rounds of tables with a primary key: which task merges what, and how.

A task reads changes, finds the files of the base snapshot that hold rows of the keys they touch, and writes these
files' other rows anew together with the newest rows: copy on write. So a format need only swap files in one step.
**No file is rewritten by two tasks**, as tasks own buckets; and a key never leaves its bucket or partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from laketier.bucketing import assigner_for
from laketier.kit import conform
from laketier.kit.partition import partition_text
from laketier.kit.views import only
from laketier.rounds.changes import LatestChanges, matching_keys, without_keys
from laketier.rounds.splits import WEIGHT_OF_A_TASK, joined_groups, weight_of
from laketier.spi import (
    BucketAssigner,
    BucketSpec,
    IncompatibleData,
    LakeSource,
    LakeSplit,
    LogSplit,
    LogTable,
    Overtaken,
    PluginBroken,
    ScanRequest,
    TableDescriptor,
    TableInfo,
    TableState,
    Transform,
)

_BATCH_ROWS = 131_072


@dataclass(frozen=True)
class BucketShare:
    """The buckets of the lake table that one task owns. ``alone``: the task's log splits hold no others, so a row of
    another bucket is an error; otherwise such rows are other tasks', which read the same splits."""

    assigner: BucketAssigner
    keys: pa.Schema
    owned: tuple[int, ...]
    alone: bool

    @classmethod
    def of(cls, table: TableDescriptor, owned: tuple[int, ...], *, alone: bool = False) -> BucketShare:
        """These of the ``table``'s buckets. Raises `ConfigError` for keys that its bucket function can't hash."""
        assert table.buckets is not None
        keys = pa.schema([table.schema.field(name).with_nullable(True) for name in table.buckets.keys])
        return cls(assigner_for(table), keys, owned, alone)

    def own(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that lie in these buckets. Raises `IncompatibleData` as `BucketAssigner.assign`, and for a row that
        lies in another bucket than its source said."""
        keys = conform(batch.select(self.keys.names), self.keys)
        own = pc.is_in(self.assigner.assign(keys), value_set=pa.array(self.owned, pa.int32()))
        if pc.all(own).as_py() is not False:
            return batch
        if self.alone:
            raise IncompatibleData(
                f"a row of buckets {list(self.owned)} of the log lies in another bucket of the lake",
                why="the log's rows are not in the buckets that its source says",
                fix="Set lake.bucket-by for the lake table to another number of buckets, so that they are not taken to "
                "be the log's.",
            )
        return only(batch, own)


@dataclass(frozen=True)
class Merge:
    """What one task merges with: ``splits`` of the base snapshot, with the rows of ``schema``; no other task's splits
    hold rows of its keys. ``rows`` is the schema of the table. ``partitions``: the columns by whose values splits can
    be told apart without reading them. ``counts_bad``: whether the records that it can't read are its to tell."""

    source: LakeSource
    schema: pa.Schema
    splits: tuple[LakeSplit, ...]
    rows: pa.Schema
    key: tuple[str, ...]
    change_column: str | None
    partitions: tuple[str, ...] = ()
    share: BucketShare | None = None
    counts_bad: bool = True

    @property
    def takes_whole_records(self) -> bool:
        """Whether all rows of the records that the task reads are its own. A record that is left out for one of its
        rows would else be left out by one task, and merged in part by another."""
        return self.share is None or self.share.alone

    def merged(
        self, changes: Iterator[pa.RecordBatch], replaced: list[str], *, unordered: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """The rows to write, for ``changes`` in the order of their log; the files that they take the place of are put
        into ``replaced`` meanwhile. Holds the newest change of each key, and the keys of one split. Executor.
        ``unordered``: as `LogSplit.unordered`, of any of its splits."""
        latest = LatestChanges(self.rows, self.key, self.change_column, unordered=unordered)
        for batch in changes:
            latest.add(batch if self.share is None else self.share.own(batch))
        keys = latest.keys
        if not keys.num_rows:
            return
        touched = _partitions_of(keys, self.partitions)
        for split in self.splits:
            known = dict(split.partition)
            if known.keys() >= set(self.partitions) and tuple(known[name] for name in self.partitions) not in touched:
                continue
            found = self._keys_in(split, keys)
            if not found.num_rows:
                continue
            if not split.files:
                raise PluginBroken(
                    "a split of a table with a primary key does not say which files it reads",
                    why=f"{type(self.source).__name__}.plan leaves LakeSplit.files empty",
                )
            replaced.extend(split.files)
            for batch in self.source.read(split, self.schema):
                yield without_keys(batch, found)
        yield from latest.rows().to_batches(max_chunksize=_BATCH_ROWS)

    def _keys_in(self, split: LakeSplit, keys: pa.Table) -> pa.Table:
        """The ``keys`` that the split has rows of. Reads its key columns only."""
        schema = pa.schema([self.schema.field(name) for name in keys.column_names])
        rows = pa.Table.from_batches(self.source.read(split, schema), schema=schema)
        return matching_keys(rows, keys) if rows.num_rows else keys.slice(0, 0)


def plan_merges(
    source: LakeSource,
    table: TableInfo,
    log: LogTable,
    splits: Sequence[LogSplit],
    base_snapshot: int | None,
    state: TableState | None = None,
) -> list[tuple[tuple[LogSplit, ...], Merge]]:
    """For each task the splits of the log that it reads, and what it merges them with. Driver. ``state``:
    what the round began with, to spare another look. Raises `Overtaken` when the table is not at ``base_snapshot`` any
    more, and what `LakeSource.plan` raises."""
    if not splits:
        return []
    # Not by its number: columns that were renamed since it was made have their old names in an older snapshot.
    planned = source.plan(ScanRequest(state=state))
    if planned.snapshot_id != base_snapshot:
        raise Overtaken(
            f"the table changed while a round was planned: from snapshot {base_snapshot} to {planned.snapshot_id}",
            where=str(table.path),
            fix="Nothing was written. Plan the round again.",
        )
    lake = planned.splits
    prunable = [
        each.column
        for each in table.descriptor.partition_by
        if each.transform is Transform.IDENTITY and _same_text_everywhere(table.schema.field(each.column).type)
    ]
    merges = _Merges(
        Merge(
            source,
            planned.schema,
            lake,
            table.schema,
            log.primary_key,
            log.change_column,
            tuple(prunable),
        ),
        table,
        in_order(splits),
    )
    buckets = table.descriptor.buckets
    if buckets is None or any(not 0 <= split.bucket < buckets.count for split in lake):
        # Any task might need a file that is of no bucket.
        return merges.one()
    numbers = aligned_buckets(buckets, log, splits)
    if numbers is not None:
        return merges.aligned(numbers)
    tasks = min(buckets.count, -(-sum(map(weight_of, splits)) // WEIGHT_OF_A_TASK))
    return merges.one() if tasks == 1 else merges.shared(tasks, buckets.count)


def in_order(splits: Sequence[LogSplit]) -> tuple[LogSplit, ...]:
    """By bucket, and within a bucket by offset: the newest change of a key comes last, if its bucket has them all."""
    buckets = {bucket: index for index, bucket in enumerate(dict.fromkeys(split.bucket for split in splits))}
    return tuple(sorted(splits, key=lambda split: (buckets[split.bucket], split.start)))


def aligned_buckets(buckets: BucketSpec, log: LogTable, splits: Sequence[LogSplit]) -> dict[str, int] | None:
    """The bucket of the lake for each bucket of the log. None when they are not the same."""
    numbers = {name: number for split in splits for name, number in _numbered(split.bucket, buckets.count)}
    same = log.buckets == buckets and not log.partition_by
    return numbers if same and all(split.bucket in numbers for split in splits) else None


@dataclass(frozen=True)
class _Merges:
    whole: Merge
    table: TableInfo
    splits: tuple[LogSplit, ...]

    def one(self) -> list[tuple[tuple[LogSplit, ...], Merge]]:
        return [(self.splits, self.whole)]

    def aligned(self, numbers: Mapping[str, int]) -> list[tuple[tuple[LogSplit, ...], Merge]]:
        """Small buckets share a task; a bucket has one."""
        by_bucket = {name: tuple(each for each in self.splits if each.bucket == name) for name in numbers}
        groups = joined_groups(list(by_bucket.values()))
        return [
            (group, self._of(tuple(sorted({numbers[each.bucket] for each in group})), alone=True)) for group in groups
        ]

    def shared(self, tasks: int, count: int) -> list[tuple[tuple[LogSplit, ...], Merge]]:
        """Each task reads all changes, and keeps those of its buckets. One of them tells the bad records."""
        return [
            (self.splits, self._of(tuple(range(index, count, tasks)), alone=False, counts_bad=index == 0))
            for index in range(tasks)
        ]

    def _of(self, owned: tuple[int, ...], *, alone: bool, counts_bad: bool = True) -> Merge:
        share = BucketShare.of(self.table.descriptor, owned, alone=alone)
        splits = tuple(split for split in self.whole.splits if split.bucket in owned)
        return replace(self.whole, splits=splits, share=share, counts_bad=counts_bad)


def _numbered(bucket: str, count: int) -> list[tuple[str, int]]:
    """With the number that is its name; nothing for other names."""
    return [(bucket, int(bucket))] if bucket.isdecimal() and str(int(bucket)) == bucket and int(bucket) < count else []


def _same_text_everywhere(kind: pa.DataType) -> bool:
    """Whether formats spell values of the type alike; the spelling of times and decimals differs."""
    return bool(pt.is_integer(kind) or pt.is_string(kind) or pt.is_large_string(kind) or pt.is_date(kind))


def _partitions_of(keys: pa.Table, columns: Sequence[str]) -> set[tuple[str | None, ...]]:
    if not columns:
        return {()}
    distinct = keys.select(list(columns)).group_by(list(columns)).aggregate([])
    values = [distinct.column(name).to_pylist() for name in columns]
    return {tuple(map(partition_text, row)) for row in zip(*values, strict=True)}
