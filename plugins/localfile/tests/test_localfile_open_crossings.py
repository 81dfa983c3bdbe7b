"""Files that stay open, crossed with everything else that a table can have: each is exact, or refused by name."""

from __future__ import annotations

import datetime
import os
import resource
import shutil
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from conftest import SCHEMA

import laketier
from laketier.kit.manifests import files_at
from laketier.spi import (
    CorruptTable,
    Gap,
    IncompatibleTable,
    LaketierError,
    RolledBack,
    TableNotFound,
    TablePath,
    WatermarkLost,
)

FORMATS = ("json", "csv", "arrow")
TIMED = pa.schema([("id", pa.int64()), ("region", pa.string()), ("at", pa.timestamp("us", "UTC"))])
START = datetime.datetime(2026, 11, 24, 10, tzinfo=datetime.UTC)


def timed(table: Any, **keys: str) -> Any:
    return replace(table, schema=TIMED, keys={**table.keys, **keys})


def hours(epoch: int, *of: int) -> pa.RecordBatch:
    """Two rows for each of these hours."""
    moments = [START + datetime.timedelta(hours=hour, minutes=minute) for hour in of for minute in (0, 59)]
    ids = [epoch * 1000 + i for i in range(len(moments))]
    return pa.record_batch([ids, ["r"] * len(ids), moments], schema=TIMED)


def row(epoch: int) -> pa.RecordBatch:
    return pa.record_batch([[epoch], ["r"]], schema=SCHEMA)


def others_see(table: Any, ids: list[int]) -> None:
    found = table.read_by_others()
    assert found
    for reader, seen in found.items():
        assert seen == ids, reader


@pytest.mark.parametrize(
    ("file_format", "pattern"),
    [("json", None), ("csv", "%Y/%m/%d/%H"), ("arrow", "day=%Y-%m-%d/hour=%H")],
)
def test_partitions_by_time(open_table: Any, file_format: str, pattern: str | None) -> None:
    """More folders than a task may have open, rows that come late, and a reader of each state."""
    keys = {"lake.partition-by": "region, hour(at)", "lake.localfile.max-open-files": "3"}
    table = timed(
        open_table(file_format), **keys, **({} if pattern is None else {"lake.localfile.time-pattern": pattern})
    )
    ids: list[int] = []
    states = {}
    with table.writer() as writer:
        for epoch in range(8):
            rows = hours(epoch, epoch, max(0, epoch - 1), 0)
            ids += rows["id"].to_pylist()
            done = writer.write(epoch, [rows])
            states[done.snapshot_id] = sorted(ids)
            head, _ = table.log.head()
            assert 1 <= len(head.open_files) <= 3
            assert table.read_ids() == sorted(ids)
    for number, known in states.items():
        assert table.read_ids(snapshot_id=number) == known
    head, _ = table.log.head()
    assert head.open_files == ()
    assert table.changed_ids(1, head.number + 1) == sorted(ids)
    others_see(table, sorted(ids))
    assert table.staged_files() == []


@pytest.mark.parametrize("file_format", FORMATS)
def test_files_that_end_by_event_time(open_table: Any, file_format: str) -> None:
    table = timed(
        open_table(file_format),
        **{"lake.localfile.target-file-event-seconds": "7200", "lake.localfile.event-time-column": "at"},
    )
    ids: list[int] = []
    with table.writer() as writer:
        for epoch in range(7):
            rows = hours(epoch, epoch)
            ids += rows["id"].to_pylist()
            writer.write(epoch, [rows])
            assert table.read_ids() == ids
    others_see(table, ids)
    assert len(table.plain_files()) == 4
    assert table.staged_files() == []


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("validate", ["every", "first", "never"])
def test_values_that_are_refused(open_table: Any, file_format: str, validate: str) -> None:
    """A bad epoch leaves the file as it was recorded."""
    table = open_table(file_format)
    table.keys["lake.validate"] = validate
    bad_text = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")])
    good = pa.record_batch([[1], ["r"]], schema=table.schema)
    with table.writer() as writer:
        writer.write(0, [good])
        if validate != "never":
            with pytest.raises(LaketierError, match="values that are no string"):
                writer.write(1, [pa.record_batch([pa.array([2]), bad_text], schema=table.schema)])
        writer.write(1, [pa.record_batch([[3], ["r"]], schema=table.schema)])
    assert table.read_ids() == [1, 3]
    others_see(table, [1, 3])
    assert table.staged_files() == []


@pytest.mark.parametrize("compression", ["none", "lz4", "zstd"])
def test_arrow_files_with_each_codec(open_table: Any, compression: str) -> None:
    table = open_table("arrow", arrow_compression=compression)
    first = table.writer()
    for epoch in range(3):
        first.write(epoch, [pa.record_batch([[epoch], ["r" * 9000]], schema=table.schema)])
    assert table.read_ids() == [0, 1, 2]
    with table.writer() as second:  # finishes the other's by copy
        second.write(3, [pa.record_batch([[3], ["r" * 9000]], schema=table.schema)])
    others_see(table, [0, 1, 2, 3])


@pytest.mark.parametrize("file_format", FORMATS)
def test_columns_outside_of_the_files_are_refused_at_create(open_table: Any, file_format: str) -> None:
    table = open_table(file_format, partition_columns_in_files="false")
    table.keys["lake.partition-by"] = "region"
    with pytest.raises(LaketierError, match="which is built for Parquet alone"):
        table.writer().write(0, [row(0)])
    assert not table.location.exists()


def test_a_table_that_is_dropped_and_made_anew_beneath_its_writer(open_table: Any) -> None:
    table = open_table("json")
    writer = table.writer()
    writer.write(0, [row(0)])
    table.storage.catalog().drop_table(table.path)
    table.create()
    with pytest.raises(WatermarkLost):
        writer.write(1, [row(1)])
    assert table.read_ids() == []
    for epoch in range(2):
        writer.write(epoch, [row(epoch)])
    assert table.read_ids() == [0, 1]
    writer.close()
    others_see(table, [0, 1])
    assert table.staged_files() == []


def test_the_newest_manifest_is_lost_beneath_a_writer(open_table: Any) -> None:
    """Nothing goes on until a person accepts it; then the open file is as long as the manifest before says."""
    table = open_table("json")
    writer = table.writer()
    for epoch in range(3):
        writer.write(epoch, [row(epoch)])
    newest = table.log.path(table.log.head()[0].number)
    newest.unlink()
    with pytest.raises(RolledBack, match="manifest 3 is gone"):
        writer.write(3, [row(3)])
    newest.with_name("head.json").unlink()
    assert table.read_ids() == [0, 1]
    with pytest.raises(Gap):
        writer.write(3, [row(3)])
    writer.write(2, [row(2)])
    writer.close()
    assert table.read_ids() == [0, 1, 2]
    others_see(table, [0, 1, 2])


def test_the_first_file_of_a_table_is_lost_beneath_a_writer(open_table: Any) -> None:
    table = open_table("json")
    with table.writer() as writer:
        writer.write(0, [row(0)])
        (table.location / "_laketier_manifests/table.json").unlink()
        with pytest.raises(CorruptTable, match="laketier schema rebuild"):
            writer.write(1, [row(1)])
        assert table.storage.adoption().rebuild(table.path).rows == 1
        writer.write(1, [row(1)])
    others_see(table, [0, 1])
    assert table.staged_files() == []


@pytest.mark.parametrize("kept", [False, True])
def test_an_open_file_alone_is_what_is_left_of_a_table(open_table: Any, kept: bool) -> None:
    """All rows of the table are in it, so nobody makes a new table beside it, nor adopts the folder."""
    table = open_table("json")
    writer = table.writer()
    writer.write(0, [row(0)])
    manifests = table.location / "_laketier_manifests"
    shutil.rmtree(manifests)
    if kept:
        manifests.mkdir()
    for action in (lambda: writer.write(1, [row(1)]), lambda: table.writer().next_epoch, table.read_ids):
        with pytest.raises(CorruptTable, match="its files are there, because it holds __in_progress/part-"):
            action()
    with pytest.raises(IncompatibleTable, match="whose manifests are gone"):
        laketier.adopt(table.location, lake_format="localfile")
    adoption = table.storage.adoption()
    with pytest.raises(IncompatibleTable, match="or how much of it, where files stay open"):
        adoption.rebuild(table.path)
    with pytest.raises(TableNotFound, match="Move the folder away"):
        adoption.rebuild(table.path, leave_staged=True)
    with pytest.raises(CorruptTable):
        writer.close()
    table.location.rename(table.location.with_name("aside"))
    assert table.writer().next_epoch == 0


def test_two_pipelines_and_a_fold_beside(open_table: Any) -> None:
    """One keeps a file open, the other writes small ones, which are folded; both by time."""
    table = timed(open_table("json", fold_files="2", time_pattern="%Y/%m/%d"), **{"lake.partition-by": "day(at)"})
    ids: list[int] = []
    with table.writer() as stays, table.writer(**{"lake.pipeline": "q"}) as other:
        for epoch in range(6):
            stays.write(epoch, [hours(2 * epoch, 0)])
            small = {"lake.pipeline": "r", "lake.localfile.open-files": "false"}
            table.writer(**small).write(epoch, [hours(2 * epoch + 1, 1)])
            other.write(epoch, [hours(100 + epoch, 25)])
            for number in (2 * epoch, 2 * epoch + 1, 100 + epoch):
                ids += [number * 1000, number * 1000 + 1]
            assert table.read_ids() == sorted(ids)
        live = files_at(table.log, table.log.head()[0].number)
        assert sum(entry.is_open for entry in live) == 2
        assert any(entry.level for entry in live)
    head = table.log.head()[0]
    assert table.changed_ids(1, head.number + 1) == sorted(ids)
    others_see(table, sorted(ids))
    assert table.staged_files() == []


def test_writers_of_many_tables_leave_descriptors(open_table: Any) -> None:
    """Those that came first keep their files open; each epoch of the others finishes its own."""
    tables = [replace(open_table("json"), path=TablePath("db", f"t{number}")) for number in range(4)]
    first, *others = [table.writer() for table in tables]
    first.write(0, [row(0)])
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (2 * len(os.listdir("/dev/fd")) - 10, limits[1]))
    try:
        for epoch in range(1, 3):
            first.write(epoch, [row(epoch)])
        for epoch in range(3):
            for writer in others:
                writer.write(epoch, [row(epoch)])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert [len(table.plain_files()) for table in tables] == [0, 3, 3, 3]
    others[0].write(3, [row(3)])
    assert len(tables[1].plain_files()) == 3, "there is room again"
    for writer in (first, *others):
        writer.close()
    assert [table.read_ids() for table in tables] == [[0, 1, 2], [0, 1, 2, 3], [0, 1, 2], [0, 1, 2]]
