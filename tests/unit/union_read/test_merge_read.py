"""Lake and log of a table with a primary key as one, over a lake and a log in memory."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laketier.bucketing import assigner_for
from laketier.spi import (
    BucketBounds,
    BucketSpec,
    IncompatibleData,
    IncompatibleTable,
    LakeSource,
    LakeSplit,
    Leaf,
    LogOffsets,
    LogRange,
    LogSplit,
    LogTable,
    OnBadRecord,
    Op,
    ScanPlan,
    ScanRequest,
    TableDescriptor,
    TableInfo,
    TableLog,
    TablePath,
    fail_on_bad_record,
)
from laketier.tables.scan import condition_of, plan_scan
from laketier.union_read import merge_read
from laketier.union_read.merge_read import MergeRead, MergeSplit, check_same_key, merge_splits
from laketier.union_read.scan import LakeHalf, UnionScan

ROWS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.int64())])
CHANGES = ROWS.append(pa.field("op", pa.string()))
Change = tuple[str, int, int]


@dataclass(frozen=True)
class MemoryLake(LakeSource):
    """A file per split: its bucket, and its rows as (id, v)."""

    files: tuple[tuple[int, tuple[tuple[int, int], ...]], ...]

    def plan(self, request: ScanRequest) -> ScanPlan:
        splits = tuple(
            LakeSplit(index=index, rows=len(rows), bucket=bucket) for index, (bucket, rows) in enumerate(self.files)
        )
        wanted = request.projected(ROWS, where="memory")
        return ScanPlan(snapshot_id=1, schema=wanted, splits=splits, remaining=request.filters)

    def read(self, split: LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        rows = [{"id": key, "v": v} for key, v in self.files[split.index][1]]
        for row in rows:  # in small batches
            yield pa.RecordBatch.from_pylist([row], schema=ROWS).select(schema.names)


@dataclass(frozen=True)
class MemoryLog(TableLog):
    """Changes by bucket; a split for each."""

    described: LogTable
    changes: Mapping[str, Sequence[Change]]

    @property
    def table(self) -> LogTable:
        return self.described

    def bounds(self) -> Mapping[str, BucketBounds]:
        return {bucket: BucketBounds(0, len(changes)) for bucket, changes in self.changes.items()}

    def plan(self, wanted: LogRange) -> Sequence[LogSplit]:
        """Two splits for each bucket, the later one first."""
        found = []
        for bucket, end in wanted.end.items():
            start = wanted.start[bucket]
            middle = (start + end) // 2
            found += [(middle, end, bucket), (start, middle, bucket)]
        return [LogSplit(bucket=bucket, start=start, end=end) for start, end, bucket in found if end > start]

    def read(
        self, split: LogSplit, *, columns: Sequence[str] | None = None, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        for op, key, v in self.changes[split.bucket][split.start : split.end]:
            yield pa.RecordBatch.from_pylist([{"id": key, "v": v, "op": op}], schema=CHANGES).select(
                CHANGES.names if columns is None else list(columns)
            )


def state_of(changes: Sequence[Change]) -> dict[int, int]:
    rows: dict[int, int] = {}
    for op, key, v in changes:
        if op == "-D":
            rows.pop(key, None)
        elif op != "-U":
            rows[key] = v
    return rows


@dataclass
class World:
    """``tiered``: of each log bucket, how many changes the lake holds. ``files``: how many the lake is spread over."""

    buckets: BucketSpec | None
    aligned: bool
    changes: Mapping[str, Sequence[Change]]
    tiered: Mapping[str, int]
    files: int = 2
    bucketless_file: bool = False
    request: ScanRequest = field(default_factory=ScanRequest)

    @property
    def log(self) -> MemoryLog:
        spec = self.buckets if self.aligned else None
        return MemoryLog(LogTable("t", "1", CHANGES, (), spec, ("id",), "op"), self.changes)

    @property
    def table(self) -> TableInfo:
        descriptor = TableDescriptor(ROWS, buckets=self.buckets, primary_key=("id",))
        return TableInfo(TablePath("db", "t"), descriptor, "u", "memory")

    def lake(self) -> MemoryLake:
        files: dict[tuple[int, int], list[tuple[int, int]]] = {}
        draw = random.Random(1)
        for name, upto in self.tiered.items():
            for key, v in state_of(self.changes[name][:upto]).items():
                file = draw.randrange(self.files)
                bucket = -1 if self.buckets is None or (self.bucketless_file and file == 0) else self.bucket_of(key)
                files.setdefault((bucket, file), []).append((key, v))
        return MemoryLake(tuple((bucket, tuple(rows)) for (bucket, _), rows in files.items()))

    def bucket_of(self, key: int) -> int:
        return bucket_of(self.table.descriptor, key)

    def planned(self) -> UnionScan:
        wanted = self.request.projected(ROWS, where="memory")
        hidden = [ROWS.field(name) for name in ROWS.names if name not in wanted.names]
        needed = pa.schema([*wanted, *hidden])
        lake = plan_scan(self.lake(), ScanRequest(columns=tuple(needed.names), filters=self.request.filters))
        end = LogOffsets({name: len(changes) for name, changes in self.changes.items()})
        offsets = LogRange(LogOffsets({name: self.tiered.get(name, 0) for name in end}), end)
        splits = merge_splits(lake.plan.splits, self.log.plan(offsets), self.table, self.log.table, needed)
        merge = MergeRead(("id",), "op", needed)
        return UnionScan(
            wanted,
            LakeHalf(lake, needed),
            self.log,
            splits,
            offsets,
            1,
            needed,
            self.request.filters,
            self.request.limit,
            merge=merge,
        )

    def read(self) -> list[dict[str, Any]]:
        scan = self.planned()
        tasks = scan.for_tasks()
        return [row for split in scan.splits for batch in tasks.read(split) for row in batch.to_pylist()]

    def expected(self) -> list[dict[str, Any]]:
        rows = [{"id": k, "v": v} for changes in self.changes.values() for k, v in state_of(changes).items()]
        table = pa.Table.from_pylist(rows, schema=ROWS)
        condition = condition_of(self.request.filters, ROWS)
        found: list[dict[str, Any]] = (table if condition is None else table.filter(condition)).to_pylist()
        names = self.request.columns or ROWS.names
        return [{name: row[name] for name in names} for row in found]


def bucket_of(descriptor: TableDescriptor, key: int) -> int:
    batch = pa.record_batch({"id": pa.array([key], pa.int64())})
    return int(assigner_for(descriptor).assign(batch)[0].as_py())


def counted(rows: Sequence[Mapping[str, Any]]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in rows)


OPS = st.sampled_from(["+I", "+U", "-U", "-D"])
HISTORY = st.lists(st.tuples(OPS, st.integers(0, 8)), max_size=25)
FILTERS = st.sampled_from([(), (Leaf("v", Op.LT, 6),), (Leaf("v", Op.GE, 6),), (Leaf("id", Op.LT, 4),)])
COLUMNS = st.sampled_from([None, ("id",), ("v",), ("v", "id")])


@st.composite
def worlds(draw: st.DrawFn) -> World:
    buckets = BucketSpec(3, ("id",)) if draw(st.booleans()) else None
    aligned = buckets is not None and draw(st.booleans())
    descriptor = TableDescriptor(ROWS, buckets=BucketSpec(3, ("id",)))
    changes: dict[str, list[Change]] = {"0": [], "1": [], "2": []}
    for op, key in draw(HISTORY):
        mine = changes[str(bucket_of(descriptor, key) if aligned else key % 3)]
        mine.append((op, key, len(mine)))
    tiered = {name: draw(st.integers(0, len(mine))) for name, mine in changes.items() if draw(st.booleans())}
    request = ScanRequest(columns=draw(COLUMNS), filters=draw(FILTERS))
    return World(buckets, aligned, changes, tiered, draw(st.integers(1, 3)), draw(st.booleans()), request)


@settings(deadline=None, max_examples=150)
@given(worlds(), st.sampled_from([2, 1_000_000]), st.sampled_from([100, 1_000_000]))
def test_of_each_key_the_newest_row_is_read(world: World, changes_of_a_part: int, bytes_of_a_part: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merge_read, "CHANGES_OF_A_PART", changes_of_a_part)
        patch.setattr(merge_read, "LAKE_BYTES_OF_A_PART", bytes_of_a_part)
        assert counted(world.read()) == counted(world.expected())


def by_bucket(aligned: bool, changes: Mapping[str, Sequence[Change]], tiered: Mapping[str, int]) -> World:
    return World(BucketSpec(3, ("id",)), aligned, changes, tiered)


def merges_of(world: World) -> list[MergeSplit]:
    return [split for split in world.planned().splits if isinstance(split, MergeSplit)]


def test_buckets_that_are_the_logs_read_their_own_changes_only() -> None:
    descriptor = TableDescriptor(ROWS, buckets=BucketSpec(3, ("id",)))
    keys = {str(bucket): next(k for k in range(99) if bucket_of(descriptor, k) == bucket) for bucket in range(3)}
    changes = {name: [("+I", key, 0), ("+U", key, 1)] for name, key in keys.items()}
    world = by_bucket(True, changes, {"0": 1, "1": 2, "2": 1})
    merges = merges_of(world)
    assert [[each.bucket for each in merge.log] for merge in merges] == [["0"], ["2"]]
    assert [[each.bucket for each in merge.lake] for merge in merges] == [[0], [2]]
    assert len(world.planned().splits) == 3, "the lake's bucket 1 is read as it is"
    assert counted(world.read()) == {(key, 1): 1 for key in keys.values()}


def test_a_log_whose_rows_are_not_in_the_buckets_that_it_says_is_refused() -> None:
    descriptor = TableDescriptor(ROWS, buckets=BucketSpec(3, ("id",)))
    stray = next(k for k in range(99) if bucket_of(descriptor, k) != 0)
    with pytest.raises(IncompatibleData, match="another bucket"):
        by_bucket(True, {"0": [("+I", stray, 0)]}, {}).read()


def test_many_changes_are_read_bucket_by_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    changes = {"x": [("+I", key, key) for key in range(20)]}
    assert len(merges_of(by_bucket(False, changes, {"x": 10}))) == 1
    monkeypatch.setattr(merge_read, "CHANGES_OF_A_PART", 5)
    world = by_bucket(False, changes, {"x": 10})
    assert [sorted({each.bucket for each in merge.lake}) for merge in merges_of(world)] == [[0], [1], [2]]
    assert counted(world.read()) == counted(world.expected())


def test_many_changes_of_a_lake_without_buckets_are_read_in_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge_read, "CHANGES_OF_A_PART", 5)
    world = World(None, False, {"x": [("+I", key % 10, key) for key in range(20)]}, {"x": 9})
    assert len(merges_of(world)) == 3
    assert counted(world.read()) == counted(world.expected())


def test_a_large_lake_is_read_in_groups_one_of_which_has_the_newest_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge_read, "LAKE_BYTES_OF_A_PART", 100)
    world = World(None, False, {"x": [("+I", key % 10, key) for key in range(20)]}, {"x": 9}, files=3)
    merges = merges_of(world)
    assert len(merges) > 1
    assert [merge.newest for merge in merges] == [True, *[False] * (len(merges) - 1)]
    assert counted(world.read()) == counted(world.expected())


def test_a_lake_without_newer_changes_is_read_as_it_is() -> None:
    world = World(None, False, {"x": [("+I", 1, 0)]}, {"x": 1})
    assert merges_of(world) == []
    assert world.read() == [{"id": 1, "v": 0}]


def test_a_newer_row_that_does_not_fit_the_filter_hides_the_older_one() -> None:
    changes = {"x": [("+I", 1, 3), ("+I", 2, 3), ("+U", 1, 8)]}
    world = World(None, False, changes, {"x": 2}, request=ScanRequest(filters=(Leaf("v", Op.LT, 5),)))
    assert world.read() == [{"id": 2, "v": 3}]


def test_another_key_than_the_lakes_is_refused() -> None:
    world = World(None, False, {"x": []}, {})
    check_same_key(world.table, world.log.table)
    keyless = TableInfo(TablePath("db", "t"), TableDescriptor(ROWS), "u", "memory")
    with pytest.raises(IncompatibleTable, match="is none, and that of its log id"):
        check_same_key(keyless, world.log.table)
