"""The change data feed of tables that others wrote: what each commit did, split by split."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from laketier.spi import CHANGE_TYPE, BucketSpec, ConfigError, CorruptTable, IncompatibleTable, OffsetsExpired
from laketier_delta.feed import FEED


@pytest.fixture
def fed(lake: Any, support: Any) -> Any:
    lake.create(delta__enableChangeDataFeed="true")
    lake.epoch(0, support.ids(1, 2, 3))
    return lake


def changes(lake: Any, start: int, end: int, names: tuple[str, ...] = ()) -> tuple[Any, list[tuple[Any, ...]]]:
    feed, source = lake.storage.feed(lake.table), lake.storage.source(lake.table)
    plan = feed.plan(start, end)
    schema = pa.schema([field for field in plan.schema if not names or field.name in names])
    batches = [batch for split in plan.splits for batch in source.read(split, schema)]
    assert all(batch.schema.equals(schema) for batch in batches)
    rows = pa.Table.from_batches(batches, schema=schema).to_pydict()
    return plan, sorted(zip(*rows.values(), strict=True), key=str)


def test_appends_are_inserts(fed: Any) -> None:
    version = DeltaTable(fed.uri).version()
    plan, rows = changes(fed, version, version + 1)
    assert rows == [(1, "v1", "+I"), (2, "v2", "+I"), (3, "v3", "+I")]
    assert plan.snapshot_id == version
    assert plan.schema.names == ["id", "v", CHANGE_TYPE]
    assert all(split.bucket == -1 for split in plan.splits)


def test_updates_and_deletes_of_others(fed: Any) -> None:
    """An update is a row that went and one that came: nothing keeps it from changing the key."""
    start = DeltaTable(fed.uri).version() + 1
    DeltaTable(fed.uri).update(updates={"v": "'new'"}, predicate="id = 2")
    DeltaTable(fed.uri).delete("id = 3")
    plan, rows = changes(fed, start, start + 2)
    assert rows == [(2, "new", "+U"), (2, "v2", "-D"), (3, "v3", "-D")]
    assert [split.index for split in plan.splits] == list(range(len(plan.splits)))
    assert changes(fed, start, start + 2, (CHANGE_TYPE,))[1] == [("+U",), ("-D",), ("-D",)]
    assert changes(fed, start, start + 2, ("id",))[1] == [(2,), (2,), (3,)]


def test_what_went_comes_before_what_came(fed: Any) -> None:
    start = DeltaTable(fed.uri).version() + 1
    DeltaTable(fed.uri).update(updates={"v": "'new'"}, predicate="id = 2")
    feed, source = fed.storage.feed(fed.table), fed.storage.source(fed.table)
    plan = feed.plan(start, start + 1)
    told = [
        kind
        for split in plan.splits
        for batch in source.read(split, plan.schema)
        for kind in batch.column(CHANGE_TYPE).to_pylist()
    ]
    assert told == ["-D", "+U"]


def test_files_without_a_file_of_changes(fed: Any, support: Any) -> None:
    """All rows of a file that went, and of one that came."""
    start = DeltaTable(fed.uri).version() + 1
    DeltaTable(fed.uri).delete()
    fed.epoch(1, support.ids(7))
    _, rows = changes(fed, start, start + 2)
    assert rows == [(1, "v1", "-D"), (2, "v2", "-D"), (3, "v3", "-D"), (7, "v7", "+I")]


def test_buckets_are_told(lake: Any, support: Any) -> None:
    lake.create(support.IDS, buckets=BucketSpec(2, ("id",)), delta__enableChangeDataFeed="true")
    lake.epoch(0, support.ids(*range(8)))
    version = DeltaTable(lake.uri).version()
    plan, _ = changes(lake, version, version + 1)
    assert {split.bucket for split in plan.splits} == {0, 1}


def test_partitions_are_told(lake: Any, support: Any) -> None:
    lake.create(support.IDS, "v", delta__enableChangeDataFeed="true")
    lake.epoch(0, support.ids(1, 2))
    start = DeltaTable(lake.uri).version() + 1
    DeltaTable(lake.uri).delete("v = 'v2'")
    assert changes(lake, start, start + 1)[1] == [(2, "v2", "-D")]


def test_a_table_without_the_feed(lake: Any, support: Any) -> None:
    lake.create()
    lake.epoch(0, support.ids(1))
    with pytest.raises(ConfigError, match="keeps no change feed") as told:
        lake.storage.feed(lake.table)
    assert FEED in (told.value.fix or "")


def test_the_feed_was_off_for_a_while(fed: Any, support: Any) -> None:
    first = DeltaTable(fed.uri).version()
    DeltaTable(fed.uri).alter.set_table_properties({FEED: "false"})
    fed.epoch(1, support.ids(4))
    DeltaTable(fed.uri).alter.set_table_properties({FEED: "true"})
    fed.epoch(2, support.ids(5))
    last = DeltaTable(fed.uri).version()
    with pytest.raises(IncompatibleTable, match="kept no change feed"):
        changes(fed, first + 1, last + 1)
    with pytest.raises(IncompatibleTable, match="kept no change feed"):
        changes(fed, first + 2, last + 1)
    assert changes(fed, first, first + 1)[1] == [(1, "v1", "+I"), (2, "v2", "+I"), (3, "v3", "+I")]
    assert changes(fed, last, last + 1)[1] == [(5, "v5", "+I")]


def test_a_range_that_begins_after_the_newest_version_tells_nothing(fed: Any) -> None:
    """So a follower is not refused that begins where nothing is new, in a process that knows nothing of the table."""
    after = DeltaTable(fed.uri).version() + 1
    assert changes(fed, after, after)[1] == []


def test_versions_that_are_gone(fed: Any, support: Any) -> None:
    for epoch in range(1, 4):
        fed.epoch(epoch, support.ids(epoch + 10))
    last = DeltaTable(fed.uri).version()
    DeltaTable(fed.uri).create_checkpoint()
    log = [f"{fed.uri}/_delta_log/{number:020}.json" for number in range(last)]
    for entry in log:
        os.unlink(entry)
    with pytest.raises(OffsetsExpired):
        changes(fed, last - 1, last + 1)


def test_a_version_whose_properties_nobody_knows_any_more(fed: Any, support: Any) -> None:
    """Its own entry is there, and what leads up to it is not."""
    for epoch in range(1, 5):
        fed.epoch(epoch, support.ids(epoch + 10))
    last = DeltaTable(fed.uri).version()
    DeltaTable(fed.uri).create_checkpoint()
    os.unlink(f"{fed.uri}/_delta_log/{0:020}.json")
    with pytest.raises(OffsetsExpired, match=f"whether version {last - 2} has a change feed") as told:
        changes(fed, last - 2, last + 1)
    assert "logRetentionDuration" in (told.value.fix or "")
    assert changes(fed, last, last + 1)[1] == [(14, "v14", "+I")]


@pytest.mark.parametrize(("partition", "named"), [("v", True), ("v", False), (None, False)])
def test_a_removal_has_to_name_its_partition(lake: Any, support: Any, partition: str | None, named: bool) -> None:
    """Where the table has partitions: else there is nothing to name."""
    lake.create(support.IDS, *([partition] if partition else []), delta__enableChangeDataFeed="true")
    lake.epoch(0, support.ids(1, 2))
    start = DeltaTable(lake.uri).version() + 1
    DeltaTable(lake.uri).delete("v = 'v2'")
    entry = Path(lake.uri, "_delta_log", f"{start:020}.json")
    actions = [json.loads(line) for line in entry.read_bytes().splitlines()]
    actions = [action for action in actions if "cdc" not in action]
    if not named:
        for action in actions:
            action.get("remove", {}).pop("partitionValues", None)
    entry.write_text("\n".join(map(json.dumps, actions)))
    if partition is None:
        assert sorted(changes(lake, start, start + 1)[1]) == [(1, "v1", "+I"), (1, "v1", "-D"), (2, "v2", "-D")]
    elif named:
        assert changes(lake, start, start + 1)[1] == [(2, "v2", "-D")]
    else:
        with pytest.raises(IncompatibleTable, match="which partition a file was removed from"):
            changes(lake, start, start + 1)


def test_a_file_of_changes_with_another_type_is_damage(fed: Any) -> None:
    start = DeltaTable(fed.uri).version() + 1
    DeltaTable(fed.uri).update(updates={"v": "'new'"}, predicate="id = 2")
    (file,) = Path(fed.uri, "_change_data").rglob("*.parquet")
    rows = pq.read_table(file)
    index = rows.schema.get_field_index("_change_type")
    pq.write_table(rows.set_column(index, "_change_type", pa.array(["merged"] * len(rows))), file)
    with pytest.raises(CorruptTable, match="other change types"):
        changes(fed, start, start + 1)


def test_a_file_of_changes_without_rows_tells_none(fed: Any) -> None:
    start = DeltaTable(fed.uri).version() + 1
    DeltaTable(fed.uri).update(updates={"v": "'new'"}, predicate="id = 2")
    (file,) = Path(fed.uri, "_change_data").rglob("*.parquet")
    pq.write_table(pq.read_table(file).slice(0, 0), file)
    assert changes(fed, start, start + 1)[1] == []
