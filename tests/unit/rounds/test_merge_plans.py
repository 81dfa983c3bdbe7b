"""Which task merges what with which files: without a table's whole history, one rule at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from changes import ROWS, ChangeLog
from laketier.rounds import next_range, splits, upsert
from laketier.rounds.upsert import BucketShare, Merge, aligned_buckets, plan_merges
from laketier.spi import (
    BucketSpec,
    IncompatibleData,
    LakeSource,
    LakeSplit,
    LogSplit,
    PartitionField,
    ScanPlan,
    ScanRequest,
    TableDescriptor,
    TableInfo,
    TablePath,
    Transform,
)

BUCKETS = BucketSpec(3, ("id",))


def _rows(*ids: int, name: str | None = "a") -> pa.RecordBatch:
    return pa.record_batch({"id": pa.array(ids, pa.int64()), "name": pa.array([name] * len(ids), pa.string())})


def _changes(*ids: int, op: str = "+U", name: str | None = "new") -> pa.RecordBatch:
    return _rows(*ids, name=name).append_column("op", pa.array([op] * len(ids)))


@dataclass(frozen=True)
class Name:
    name: str


@dataclass(frozen=True)
class Files(LakeSource):
    """Files in memory. ``reads``: which were read, and which columns of them."""

    split_payload: ClassVar[type] = Name

    files: dict[str, pa.RecordBatch | None]
    requests: list[ScanRequest] = field(default_factory=list)
    reads: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)

    def split(self, name: str, *partition: tuple[str, str | None], bucket: int = -1) -> LakeSplit:
        return LakeSplit(index=0, files=(name,), partition=partition, bucket=bucket, payload=Name(name))

    def plan(self, request: ScanRequest) -> ScanPlan:
        self.requests.append(request)
        return ScanPlan(snapshot_id=None, schema=ROWS, splits=())

    def read(self, split: LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        name = split.payload.name
        self.reads.append((name, tuple(schema.names)))
        rows = self.files[name]
        if rows is not None:
            yield rows.select(schema.names)


def _merge(source: Files, *lake: LakeSplit, partitions: tuple[str, ...] = ()) -> Merge:
    return Merge(source, ROWS, lake, ROWS, ("id", *partitions), "op", partitions)


# -- which rows are a task's ---------------------------------------------------------------------------------------


def _owned(numbers: tuple[int, ...], ids: list[int], *, alone: bool = False) -> list[int]:
    share = BucketShare.of(TableDescriptor(ROWS, buckets=BUCKETS), numbers, alone=alone)
    found: list[int] = share.own(_changes(*ids))["id"].to_pylist()
    return found


def test_each_row_is_of_one_share() -> None:
    ids = list(range(100))
    parts = [_owned((number,), ids) for number in range(3)]
    assert sorted(number for part in parts for number in part) == ids
    assert all(parts)
    assert _owned((0, 1, 2), ids) == ids
    assert _owned((0, 1, 2), ids, alone=True) == ids
    assert _owned((0,), parts[0], alone=True) == parts[0]
    assert _owned((0,), []) == _owned((0,), [], alone=True) == []
    with pytest.raises(IncompatibleData, match=r"a row of buckets \[0\] of the log lies in another bucket"):
        _owned((0,), [*parts[0], parts[1][0]], alone=True)


def test_long_batches_that_begin_and_end_alike_are_not_one() -> None:
    ends = list(range(20))
    assert set(_owned((0,), [*ends, *range(100, 130), *ends])) != set(_owned((0,), [*ends, *range(200, 230), *ends]))


# -- which files a task rewrites -----------------------------------------------------------------------------------


def test_files_of_partitions_that_no_change_touches_are_not_read() -> None:
    source = Files(
        {"of a": _rows(1), "of b": _rows(1, name="b"), "of nobody": _rows(1), "of null": _rows(1, name=None)}
    )
    lake = (
        source.split("of a", ("name", "a")),
        source.split("of b", ("name", "b")),
        source.split("of nobody"),
        source.split("of null", ("name", None)),
    )
    replaced: list[str] = []
    merge = _merge(source, *lake, partitions=("name",))
    list(merge.merged(iter([_changes(1, name="a"), _changes(1, op="-U", name="b")]), replaced))
    assert {name for name, _ in source.reads} == {"of a", "of nobody"}
    assert replaced == ["of a", "of nobody"]


def test_a_partition_is_more_than_the_columns_that_tell_splits_apart() -> None:
    """A split says all of its partition, also what is no column to prune by."""
    source = Files({"of a": _rows(1), "of b": _rows(1, name="b")})
    lake = tuple(source.split(f"of {name}", ("name", name), ("day", "2026-01-01")) for name in "ab")
    replaced: list[str] = []
    list(_merge(source, *lake, partitions=("name",)).merged(iter([_changes(1, name="b")]), replaced))
    assert replaced == ["of b"]


@pytest.mark.parametrize("rows", [None, _rows()], ids=["no batch", "an empty batch"])
def test_a_file_without_rows_stays(rows: pa.RecordBatch | None) -> None:
    source = Files({"empty": rows})
    replaced: list[str] = []
    written = list(_merge(source, source.split("empty")).merged(iter([_changes(1)]), replaced))
    assert (replaced, [batch["id"].to_pylist() for batch in written]) == ([], [[1]])
    assert source.reads == [("empty", ("id",))]


def test_only_the_keys_that_a_file_has_leave_it() -> None:
    source = Files({"one": _rows(1, 2, 3), "two": _rows(4, 5)})
    replaced: list[str] = []
    merge = _merge(source, source.split("one"), source.split("two"))
    written = list(merge.merged(iter([_changes(2, 4, 9), _changes(3, op="-D", name=None)]), replaced))
    assert replaced == ["one", "two"]
    assert [batch["id"].to_pylist() for batch in written] == [[1], [5], [2, 4, 9]]
    assert source.reads == [("one", ("id",)), ("one", ("id", "name")), ("two", ("id",)), ("two", ("id", "name"))]


def test_new_rows_are_written_in_small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upsert, "_BATCH_ROWS", 2)
    written = list(_merge(Files({})).merged(iter([_changes(*range(5))]), []))
    assert [batch.num_rows for batch in written] == [2, 2, 1]


# -- how tasks are cut ---------------------------------------------------------------------------------------------


def _info(schema: pa.Schema = ROWS, **more: Any) -> TableInfo:
    return TableInfo(TablePath("db", "t"), TableDescriptor(schema, **more), "uuid", "memory:")


def _planned(log: ChangeLog, info: TableInfo, source: Files | None = None, **more: Any) -> list[tuple[Any, Merge]]:
    wanted = next_range(None, log.bounds()).wanted
    return plan_merges(source or Files({}), info, log.table, log.plan(wanted), None, **more)


def _log(aligned: BucketSpec | None = None, buckets: int = 2) -> ChangeLog:
    log = ChangeLog.of(buckets, aligned)
    log.append(*(("+I", key, "a") for key in range(30)))
    return log


def _weigh(patch: pytest.MonkeyPatch, weight: int) -> None:
    for module in (splits, upsert):
        patch.setattr(module, "WEIGHT_OF_A_TASK", weight)


def test_a_round_without_changes_has_no_task_and_plans_nothing() -> None:
    source = Files({})
    assert _planned(ChangeLog.of(), _info(), source) == []
    assert source.requests == []


def test_the_state_that_a_round_began_with_is_planned() -> None:
    source, state = Files({}), object()
    _planned(_log(), _info(), source, state=state)
    assert [request.state for request in source.requests] == [state]


def test_columns_whose_values_all_formats_spell_alike_tell_splits_apart() -> None:
    kinds = {
        "i": pa.int32(),
        "u": pa.uint8(),
        "s": pa.string(),
        "l": pa.large_string(),
        "d": pa.date32(),
        "t": pa.timestamp("us"),
        "c": pa.decimal128(3, 1),
        "b": pa.bool_(),
        "f": pa.float64(),
        "day": pa.date32(),
        "bin": pa.binary(),
    }
    schema = pa.schema([*ROWS, *kinds.items()])
    fields = [PartitionField(name, Transform.DAY if name == "day" else Transform.IDENTITY) for name in kinds]
    [(_, merge)] = _planned(_log(), _info(schema, partition_by=tuple(fields)))
    assert merge.partitions == ("i", "u", "s", "l", "d")


def test_shared_tasks_own_all_buckets_once(monkeypatch: pytest.MonkeyPatch) -> None:
    _weigh(monkeypatch, 15)
    planned = _planned(_log(), _info(buckets=BucketSpec(5, ("id",))))
    shares = [merge.share for _, merge in planned]
    assert [share.owned for share in shares if share is not None] == [(0, 2, 4), (1, 3)]
    assert {share.alone for share in shares if share is not None} == {False}
    assert [merge.counts_bad for _, merge in planned].count(True) == 1
    assert all(own == planned[0][0] for own, _ in planned)


def test_small_aligned_buckets_share_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    [(own, merge)] = _planned(_log(BUCKETS), _info(buckets=BUCKETS))
    assert merge.share is not None
    assert (merge.share.owned, merge.share.alone, merge.counts_bad) == ((0, 1, 2), True, True)
    assert sorted({split.bucket for split in own}) == ["0", "1", "2"]
    _weigh(monkeypatch, 1)
    alone = _planned(_log(BUCKETS), _info(buckets=BUCKETS))
    assert [merge.share.owned for _, merge in alone if merge.share is not None] == [(0,), (1,), (2,)]


def _splits(*buckets: str) -> list[LogSplit]:
    return [LogSplit(bucket=bucket, start=0, end=1) for bucket in buckets]


def test_buckets_are_aligned_where_their_names_are_the_lakes_numbers() -> None:
    log = ChangeLog.of(aligned=BUCKETS).table
    assert aligned_buckets(BUCKETS, log, _splits("0", "2")) == {"0": 0, "2": 2}
    for odd in ("3", "03", "x", "-1", "²", "٢", ""):
        assert aligned_buckets(BUCKETS, log, _splits("0", odd)) is None, odd
    assert aligned_buckets(BucketSpec(4, ("id",)), log, _splits("0")) is None
    parted = replace(log, partition_by=(PartitionField("name"),))
    assert aligned_buckets(BUCKETS, parted, _splits("0")) is None, "each partition has buckets of its own"
