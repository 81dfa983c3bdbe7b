"""Tables of a real Apache Fluss as logs.

Runs where FLUSS_LIBS names a folder with the server's jars (org.apache.fluss:fluss-server, log4j's).
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from fluss_feed import Feed
from fluss_server import FlussServer
from fluss_tables import ORDERS, USERS, orders, source_at, tier
from kafka_logs import read, whole
from laketier.registry import OpenSource
from laketier.spi import (
    BucketSpec,
    LogOffsets,
    LogRange,
    LogSplit,
    OffsetsExpired,
    StorageError,
    TableChanged,
    TableNotFound,
    UnsupportedType,
)

pytestmark = pytest.mark.skipif("FLUSS_LIBS" not in os.environ, reason="FLUSS_LIBS names no folder with Fluss's jars")


def test_our_buckets_are_those_of_fluss(feed: Feed, source: OpenSource) -> None:
    from laketier.bucketing import assigner_for
    from laketier.spi import TableDescriptor

    name = feed.create("plain.buckets", ORDERS, bucket_count=5, bucket_keys=["id", "region"])
    feed.append(name, orders(*range(-500, 500)))
    log = source.open(name, {"include-bucket": True})
    assign = assigner_for(TableDescriptor(log.table.schema, buckets=log.table.buckets)).assign
    for split in log.plan(whole(log)):
        for batch in log.read(split):
            assert set(assign(batch).to_pylist()) == {int(split.bucket)}
            assert assign(batch).equals(batch["_bucket"])


def test_ranges_are_cut_where_they_are_asked_to_be(feed: Feed, source: OpenSource) -> None:
    name = feed.create("plain.ranges", ORDERS, bucket_count=1)
    for start in range(0, 40, 10):
        feed.append(name, orders(*range(start, start + 10)))
    log = source.open(name, {"include-offset": True, "include-timestamp": True})
    for columns in (None, ["_offset"], ["_offset", "_timestamp"]):
        for start in range(0, 40, 7):
            for end in range(start + 1, 41, 6):
                split = LogSplit(bucket="0", start=start, end=end)
                offsets = [
                    offset for batch in log.read(split, columns=columns) for offset in batch["_offset"].to_pylist()
                ]
                assert offsets == list(range(start, end)), (columns, start, end)
    assert read(log, columns=[]).num_rows == 40
    assert read(log, columns=["at", "id"]).schema.names == ["at", "id"]
    assert len(source.open(name, {"split-offsets": 7}).plan(whole(log))) == 6


def test_a_dropped_partition_is_loud(feed: Feed, source: OpenSource, caplog: pytest.LogCaptureFixture) -> None:
    name = feed.create(
        "parts.dropped", ORDERS, [{"region": "eu"}, {"region": "us"}], bucket_count=1, partition_keys=["region"]
    )
    feed.append(name, orders(1, 2, 3))
    log = source.open(name)
    wanted = whole(log)
    (split,) = log.plan(wanted)
    before = set(log.bounds())
    feed.drop_partition(name, region="eu")
    for ask in (lambda: log.plan(wanted), lambda: list(log.read(split))):
        with pytest.raises(OffsetsExpired, match="their partition was dropped"):
            ask()
    with caplog.at_level(logging.WARNING):
        (gone,) = before - set(log.bounds())
    assert f"bucket {gone} is gone with its partition; it ended at offset 3" in caplog.text
    # Made again under its name, it is another one: its offsets begin anew.
    feed.create_partition(name, region="eu")
    feed.append(name, orders(*range(10)))
    again = {bucket: bound.latest for bucket, bound in log.bounds().items() if bound.latest}
    assert list(again.values()) == [10]
    assert again.keys().isdisjoint(before)


def test_a_table_that_was_made_again(feed: Feed, source: OpenSource, tmp_path: Path) -> None:
    name = feed.create("plain.again", ORDERS, bucket_count=1)
    feed.append(name, orders(1, 2, 3))
    log = source.open(name)
    assert tier(log, tmp_path, "delta").rows == 3
    (split,) = log.plan(whole(log))
    feed.drop(name)
    with pytest.raises(TableNotFound, match=r"plain\.again"):
        log.bounds()
    feed.create(name, ORDERS, bucket_count=1)
    feed.append(name, orders(7, 8, 9))
    for ask in (log.bounds, lambda: list(log.read(split))):
        with pytest.raises(TableChanged, match="dropped and recreated"):
            ask()
    with pytest.raises(TableChanged, match="was recreated"):
        tier(source.open(name), tmp_path, "delta")


def test_changes_of_a_table_with_a_primary_key(feed: Feed, source: OpenSource) -> None:
    name = feed.create("keyed.users", USERS, bucket_count=2, primary_keys=["id"])
    feed.upsert(name, [{"id": i, "name": "a"} for i in range(100)])
    feed.upsert(name, [{"id": i, "name": "b"} for i in range(50)])
    feed.delete(name, [{"id": i} for i in range(10)])
    log = source.open(name, {"include-offset": True})
    assert (log.table.primary_key, log.table.change_column) == (("id",), "_change_type")
    assert log.table.buckets == BucketSpec(2, ("id",), "fluss")
    rows = read(log)
    assert Counter(rows["_change_type"].to_pylist()) == {"+I": 100, "-U": 50, "+U": 50, "-D": 10}
    state: dict[int, str] = {}
    for row in rows.to_pylist():
        if row["_change_type"] in ("+I", "+U"):
            state[row["id"]] = row["name"]
        elif row["_change_type"] == "-D":
            assert state.pop(row["id"]) == row["name"]
    assert state == {i: "b" if i < 50 else "a" for i in range(10, 100)}


def test_changes_that_change_nothing_are_no_records_and_nothing_waits_for_them(feed: Feed, source: OpenSource) -> None:
    name = feed.create(
        "keyed.first", USERS, bucket_count=1, primary_keys=["id"], properties={"table.merge-engine": "first_row"}
    )
    log = source.open(name, {"include-offset": True})
    assert log.bounds()["0"].latest == 0
    feed.upsert(name, [{"id": 1, "name": "a"}])
    for _ in range(3):
        feed.upsert(name, [{"id": 1, "name": "again"}])
    assert log.bounds()["0"].latest == 1  # the server says 4, and three of them can't be proven to be none
    assert source.open(name).bounds()["0"].latest == 1
    feed.upsert(name, [{"id": 2, "name": "b"}])
    feed.upsert(name, [{"id": 1, "name": "again"}])
    assert log.bounds()["0"].latest == 5
    assert read(log)["_offset"].to_pylist() == [0, 4]
    for end in range(1, 6):
        split = LogSplit(bucket="0", start=0, end=end)
        assert [offset for batch in log.read(split) for offset in batch["_offset"].to_pylist()] == [0, 4][
            : 1 + (end == 5)
        ]
    assert list(log.read(LogSplit(bucket="0", start=1, end=4))) == []


def test_times_that_python_would_cut_off_are_refused(feed: Feed, source: OpenSource) -> None:
    schema = pa.schema([*USERS, pa.field("at", pa.timestamp("ns"))])
    name = feed.create("keyed.nanoseconds", schema, bucket_count=1, primary_keys=["id"])
    with pytest.raises(UnsupportedType, match="'at'"):
        source.open(name)
    plain = feed.create("plain.nanoseconds", pa.schema([("at", pa.timestamp("ns"))]), bucket_count=1)
    feed.append(plain, [{"at": 1_700_000_000_000_000_123}])
    assert read(source.open(plain))["at"].cast(pa.int64()).to_pylist() == [1_700_000_000_000_000_123]
    with pytest.raises(UnsupportedType, match="include-timestamp"):
        source.open(plain, {"include-timestamp": True})


def test_what_is_beyond_the_log_is_not_waited_for_for_ever(feed: Feed, fluss: FlussServer) -> None:
    name = feed.create("plain.short", ORDERS, bucket_count=1)
    feed.append(name, orders(1, 2, 3))
    impatient = source_at(fluss, **{"timeout-seconds": 1})
    log = impatient.open(name)
    with pytest.raises(StorageError, match="the bucket ends at offset 3"):
        list(log.read(LogSplit(bucket="0", start=0, end=9)))
    with pytest.raises(StorageError, match="bucket 0 ends at offset 3"):
        log.plan(LogRange(LogOffsets({"0": 0}), LogOffsets({"0": 9})))
    impatient.source.close()
