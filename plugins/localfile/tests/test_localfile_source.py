"""Snapshots, projection, filters, limit and time travel; and that cost does not grow with the history."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from laketier.spi import (
    And,
    ConfigError,
    CorruptTable,
    Leaf,
    Not,
    Op,
    Or,
    ScanPlan,
    ScanRequest,
    SnapshotNotFound,
    WriteMode,
    pack,
    to_arrow,
    unpack,
)
from laketier_localfile import source as source_module
from laketier_localfile.options import LocalFileOptions

NEVER_FOLDED = LocalFileOptions(fold_files=0)
"""So that small files have plain paths, too."""


def plan(table: Any, **request: Any) -> ScanPlan:
    found: ScanPlan = table.storage.source(table.info).plan(ScanRequest(**request))
    return found


def filtered(table: Any, *filters: Any, columns: tuple[str, ...] | None = None) -> pa.Table:
    """What a reader gets that applies what the plan leaves to it."""
    made = plan(table, filters=filters, columns=columns)
    source = table.storage.source(table.info)
    rows = pa.Table.from_batches([b for s in made.splits for b in source.read(s, made.schema)], schema=made.schema)
    for predicate in made.remaining:
        rows = rows.filter(to_arrow(predicate, rows.schema))
    return rows


def test_an_empty_table_and_empty_epochs_have_no_splits(table: Any) -> None:
    assert plan(table).splits == ()
    table.round(0, [])
    assert plan(table).splits == ()
    assert plan(table).snapshot_id == 1
    assert table.scan().schema == table.schema


def test_projection_in_the_order_asked_for_also_of_nothing(table: Any) -> None:
    table.round(0)
    assert table.scan(columns=("region", "id")).column_names == ["region", "id"]
    nothing = table.scan(columns=())
    assert (nothing.num_rows, nothing.num_columns) == (4, 0)
    with pytest.raises(ConfigError, match="'nope'"):
        plan(table, columns=("nope",))
    with pytest.raises(ConfigError, match="'nope'"):
        plan(table, filters=(Leaf("nope", Op.EQ, 1),))


def test_a_source_and_its_splits_cross_processes(table: Any) -> None:
    table.round(0)
    source = pickle.loads(pickle.dumps(table.storage.source(table.info)))  # noqa: S301 - our own bytes
    made = plan(table)
    split = unpack(source.split_serializer, pack(source.split_serializer, made.splits[0]))
    assert split == made.splits[0]
    assert [b.num_rows for b in source.read(split, made.schema)] == [4]


def test_partition_filters_are_answered_by_planning(make_table: Any) -> None:
    table = make_table(partition_by=("region",), options=NEVER_FOLDED)
    table.round(0, [{"id": i, "region": r} for i, r in enumerate(["a", "b", None, "a/b"])])
    for predicate, ids in (
        (Leaf("region", Op.EQ, "a"), [0]),
        (Leaf("region", Op.IN, ("a", "a/b")), [0, 3]),
        (Leaf("region", Op.IS_NULL), [2]),
        (Not(Leaf("region", Op.EQ, "a")), [1, 3]),
        (Or((Leaf("region", Op.IS_NULL), Leaf("region", Op.GT, "a/b"))), [1, 2]),
        (And((Leaf("region", Op.NOT_NULL), Leaf("region", Op.STARTS_WITH, "a"))), [0, 3]),
    ):
        made = plan(table, filters=(predicate,))
        assert made.remaining == ()
        assert filtered(table, predicate).column("id").to_pylist() == ids
        assert len(made.splits) == len(ids)
        assert all(split.plain_parquet for split in made.splits)


def test_statistics_skip_files_and_what_is_left_stays_with_the_reader(table: Any) -> None:
    for epoch in range(3):
        table.round(epoch)
    between = And((Leaf("id", Op.GE, 1002), Leaf("id", Op.LT, 2001)))
    made = plan(table, filters=(between,))
    assert (len(made.splits), made.remaining) == (2, (between,))
    assert filtered(table, between).column("id").to_pylist() == [1002, 1003, 2000]
    sure = Leaf("id", Op.GE, 1000)
    assert (len(plan(table, filters=(sure,)).splits), plan(table, filters=(sure,)).remaining) == (2, ())
    assert plan(table, filters=(Leaf("id", Op.EQ, 5),)).splits == ()


def test_columns_without_exact_order_are_never_skipped_by(make_table: Any) -> None:
    """NaN sorts above all numbers in Spark and is in no Parquet statistics."""
    schema = pa.schema([("x", pa.float64()), ("s", pa.string()), ("t", pa.timestamp("ns")), ("d", pa.date32())])
    table = make_table(schema=schema)
    table.round(0, [{"x": float("nan"), "s": "x" * 100, "t": None, "d": date(1, 1, 1)}])
    for predicate in (Leaf("x", Op.GT, 5.0), Leaf("s", Op.EQ, "y"), Leaf("d", Op.EQ, "0001-01-01")):
        assert len(plan(table, filters=(predicate,)).splits) == 1
        assert plan(table, filters=(predicate,)).remaining == (predicate,)
    assert plan(table, filters=(Leaf("s", Op.IS_NULL),)).splits == ()
    assert plan(table, filters=(Leaf("d", Op.EQ, date(2026, 1, 1)),)).splits == ()


def test_days_that_python_does_not_know_do_no_harm(make_table: Any) -> None:
    table = make_table(schema=pa.schema([("d", pa.date32())]))
    writer = table.factory.create_writer(_context())
    writer.write(pa.record_batch([pa.array([2**30], pa.int32()).cast(pa.date32())], names=["d"]))
    committer = table.committer()
    committer.publish(committer.open(), [writer.complete()], None)
    assert len(plan(table, filters=(Leaf("d", Op.EQ, date(2026, 1, 1)),)).splits) == 1


def test_a_limit_is_planned_exactly(table: Any) -> None:
    table.options = NEVER_FOLDED
    for epoch in range(3):
        table.round(epoch)
    made = plan(table, limit=6)
    assert [(split.rows, bool(split.plain_parquet)) for split in made.splits] == [(4, True), (2, False)]
    assert table.read_ids(limit=6) == [0, 1, 2, 3, 1000, 1001]
    assert table.read_ids(limit=0) == []
    assert table.scan(limit=5, columns=()).num_rows == 5
    unsure = plan(table, limit=1, filters=(Leaf("id", Op.EQ, 1001),))
    assert [(split.rows, split.limit) for split in unsure.splits] == [(4, None)]


def test_time_travel(table: Any) -> None:
    table.options = NEVER_FOLDED
    moments = []
    for epoch in range(5):
        table.round(epoch, mode=WriteMode.OVERWRITE if epoch == 3 else WriteMode.APPEND)
        moments.append(table.log.head()[0].at)
    assert len(table.read_ids(snapshot_id=0)) == 0
    assert table.read_ids(snapshot_id=1) == table.read_ids(as_of=moments[0]) == [0, 1, 2, 3]
    assert len(table.read_ids(snapshot_id=3)) == len(table.read_ids(as_of=moments[2])) == 12
    assert table.read_ids(snapshot_id=4) == table.read_ids(as_of=moments[4] - 1) == [3000, 3001, 3002, 3003]
    assert len(table.read_ids(as_of=moments[4] + 10**9)) == 8
    for request in ({"snapshot_id": 6}, {"snapshot_id": -1}, {"as_of": 5}):
        with pytest.raises(SnapshotNotFound):
            table.read_ids(**request)
    with pytest.raises(ConfigError):
        plan(table, snapshot_id=1, as_of=1)
    for split in plan(table, snapshot_id=3).splits:
        assert pq.read_metadata(split.plain_parquet).num_rows == 4


def test_an_open_scan_outlives_an_overwrite(table: Any) -> None:
    table.round(0)
    made, source = plan(table), table.storage.source(table.info)
    table.round(1, mode=WriteMode.OVERWRITE)
    assert [b.num_rows for split in made.splits for b in source.read(split, made.schema)] == [4]


@pytest.mark.parametrize("step", ["locate", "_opened"])
def test_a_file_that_a_round_moves_while_it_is_opened(table: Any, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table.round(0)
    made, source = plan(table), table.storage.source(table.info)
    real = getattr(source_module, step)

    def overtaken(*arguments: Any) -> Any:
        done = real(*arguments)
        monkeypatch.setattr(source_module, step, real)
        table.round(1, mode=WriteMode.OVERWRITE)
        return done

    monkeypatch.setattr(source_module, step, overtaken)
    assert [b.num_rows for split in made.splits for b in source.read(split, made.schema)] == [4]


def test_a_plain_split_holds_every_column_asked_for(table: Any) -> None:
    table.options = NEVER_FOLDED
    from laketier.spi import AddColumn

    table.round(0)
    table.storage.catalog().alter_table(table.path, [AddColumn(pa.field("more", pa.int32()))])
    assert plan(table).splits[0].plain_parquet is None
    assert plan(table, columns=("id",)).splits[0].plain_parquet is not None
    assert table.scan(columns=("more",)).to_pylist() == [{"more": None}] * 4
    assert plan(table, filters=(Leaf("more", Op.NOT_NULL),)).splits == ()
    assert plan(table, filters=(Leaf("more", Op.IS_NULL),)).remaining == ()


@pytest.mark.parametrize("harm", ["short", "extended", "replaced", "gone", "other footer"])
def test_a_data_file_that_is_not_the_published_one_is_told_by_name(table: Any, harm: str) -> None:
    """Arroyo's `set_len` extends a short file with zeros."""
    table.round(0)
    (path,) = table.plain_files()
    data = path.read_bytes()
    match harm:
        case "short":
            path.write_bytes(data[:-1])
        case "extended":
            path.write_bytes(data + b"\0" * 8)
        case "replaced":
            path.write_bytes(b"\0" * len(data))
        case "other footer":
            path.write_bytes(data.replace(b"region", b"regiom"))
        case "gone":
            path.unlink()
    with pytest.raises(CorruptTable, match=path.name):
        table.read_ids()


opened: list[str] | None = None


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    on_the_way = event == "open" and arguments[2] & os.O_DIRECTORY
    if opened is not None and event in ("open", "os.listdir", "os.scandir", "os.link", "os.rename") and not on_the_way:
        opened.append(f"{event} {arguments[0]}")


sys.addaudithook(_hook)


@contextmanager
def counting() -> Iterator[list[str]]:
    global opened
    opened = found = []
    try:
        yield found
    finally:
        opened = None


def test_a_commit_costs_the_same_at_epoch_12_and_at_epoch_140(make_table: Any) -> None:
    """Counted in files opened (not the folders on the way), listed, linked and renamed, with twelve times the files."""
    table = make_table(options=LocalFileOptions(manifests_per_rollup=4))
    costs = {}
    for epoch in range(141):
        staged, committer = table.stage(table.ids(epoch)), table.committer()
        with counting() as steps:
            state = committer.open()
            committer.publish(state, [staged], None)
        costs[epoch] = steps
    assert len(costs[12]) == len(costs[136]) == len(costs[140])
    assert not any("listdir" in step or "scandir" in step for step in costs[140])
    assert len(costs[140]) <= 16, costs[140]
    others = [len(steps) for epoch, steps in costs.items() if epoch % 50 or not epoch]
    assert max(others[1:]) <= 16 + 3 * 12, "every 4th commit also writes rollups, on up to 3 levels"
    looks = [epoch for epoch, steps in costs.items() if len(steps) > 16 + 3 * 12]
    assert looks == [50, 100], "these commits read 50 small files"
    # A manifest names others by their digests: one for each bit of its number.
    sizes = {
        number.bit_count(): table.log.path(number).stat().st_size for number in (127, 126, 124, 120, 112, 130, 128)
    }
    each = {(sizes[bits] - sizes[1]) / (bits - 1) for bits in sizes if bits > 1}
    assert max(each) <= 80, each
    assert table.log.path(129).stat().st_size == table.log.path(130).stat().st_size
    with counting() as steps:
        assert plan(table).snapshot_id == 141
    reads = [step for step in steps if "_laketier_manifests" in step]
    assert len(reads) <= 3 * 4 + 8, reads
    assert len(table.read_ids()) == 141 * 4


def test_a_scan_needs_no_rollup_and_survives_a_damaged_one(make_table: Any, caplog: Any) -> None:
    table = make_table(options=LocalFileOptions(manifests_per_rollup=2))
    for epoch in range(17):
        table.round(epoch, mode=WriteMode.OVERWRITE if epoch == 6 else WriteMode.APPEND)
    expected = table.read_ids()
    assert expected[0] == 6000
    at = {number: table.read_ids(snapshot_id=number) for number in range(18)}
    rollups = sorted((table.log.folder / "rollups").iterdir())
    assert len(rollups) == 9 + 4 + 2 + 1
    rollups[-1].write_bytes(b"damaged")
    rollups[-2].unlink()
    assert table.read_ids() == expected
    for path in (table.log.folder / "rollups").iterdir():
        path.unlink()
    assert {number: table.read_ids(snapshot_id=number) for number in range(18)} == at


def test_a_replaced_manifest_breaks_the_chain(table: Any) -> None:
    for epoch in range(4):
        table.round(epoch)
    from dataclasses import replace

    forged = replace(table.log.read(2), at=1)
    table.log.path(2).write_bytes(forged.encode())
    with pytest.raises(CorruptTable, match="manifest 2 is not the one that manifest 3 follows"):
        table.read_ids()


def test_a_reader_needs_no_write_access(table: Any) -> None:
    assert table.child("publish.mid_renames=kill@1", 0).join() == (-9, [])
    before = sorted(table.location.rglob("*"))
    assert table.read_ids() == [0, 1, 2, 3]
    assert sorted(table.location.rglob("*")) == before
    assert os.path.exists(table.location)


def _context() -> Any:
    from laketier.spi import WriterInitContext, new_attempt_id

    return WriterInitContext(new_attempt_id())
