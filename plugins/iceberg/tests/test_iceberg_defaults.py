"""What the core asks of a table beside rounds and reads: changes, history, columns, properties, drops."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from laketier.spi import (
    AddColumn,
    ConfigError,
    FeatureNotSupported,
    IncompatibleTable,
    RowsChanged,
    SetProperty,
    TableDescriptor,
    TableNotFound,
    TablePath,
    UnsupportedType,
    WriteMode,
)
from laketier_iceberg import commit as commits
from laketier_iceberg.clock import known_time
from laketier_iceberg.connection import CatalogSettings, connect
from laketier_iceberg.types import to_iceberg

SCHEMA = pa.schema([("id", pa.int64())])


def fill(table: Any, epochs: int) -> None:
    for epoch in range(epochs):
        table.round(table.token(epoch), table.batch(epoch * 10, epoch * 10 + 2))


def test_changes_are_the_rows_that_snapshots_appended(events: Any) -> None:
    fill(events, 3)
    changes, source = events.storage.changes(events.info), events.storage.source(events.info)

    def planned(start: int, end: int, **options: Any) -> list[int]:
        plan = changes.plan(start, end, **options)
        return [
            id_ for split in plan.splits for batch in source.read(split, plan.schema) for id_ in batch["id"].to_pylist()
        ]

    bounds = changes.versions()
    assert (bounds.earliest, bounds.latest) == (1, 4)
    assert planned(1, 4) == [0, 1, 10, 11, 20, 21]
    assert planned(2, 3) == [10, 11]
    assert planned(2, 2) == []
    events.round(events.token(3), events.batch(30, 31), mode=WriteMode.OVERWRITE)
    with pytest.raises(RowsChanged, match=r"version 4 \(overwrite\)"):
        planned(3, 5)
    assert planned(3, 5, skip_changes=True) == [20, 21]
    assert changes.snapshot_at(4) == events.table().metadata.current_snapshot_id


def test_changes_of_what_was_rolled_back_are_told(events: Any) -> None:
    fill(events, 3)
    first = events.table().snapshots()[0]
    events.table().manage_snapshots().set_current_snapshot(snapshot_id=first.snapshot_id).commit()
    events.round(events.token(0, "q"), events.batch(50, 51))
    changes = events.storage.changes(events.info)
    latest = changes.versions().latest
    with pytest.raises(RowsChanged, match=r"version 3 \(rolled back\)"):
        changes.plan(4, latest)
    assert len(changes.plan(4, latest, skip_changes=True).splits) == 1
    assert len(changes.plan(2, latest).splits) == 1, "who is at the one that stayed has seen nothing that is gone"


def test_the_history_is_the_newest_snapshots(events: Any) -> None:
    fill(events, 3)
    history = events.storage.history(events.info)
    found = history.snapshots(2)
    newest = [snapshot.snapshot_id for snapshot in reversed(events.table().snapshots())]
    assert [each.snapshot_id for each in found] == newest[:2]
    assert [(each.epoch, each.rows, each.pipeline, each.operation) for each in found] == [
        (2, 2, "p", "append"),
        (1, 2, "p", "append"),
    ]
    assert [each.snapshot_id for each in history.snapshots(9)] == newest


def test_a_change_that_was_made_before_is_made_once(events: Any) -> None:
    catalog, change = events.storage.catalog(), AddColumn(pa.field("more", pa.int64()))
    path = events.info.path
    assert catalog.alter_table(path, [change]).schema.names == ["id", "s", "more"]
    before = events.table().metadata_location
    assert catalog.alter_table(path, [change]).schema.names == ["id", "s", "more"]
    assert events.table().metadata_location == before
    with pytest.raises(FeatureNotSupported):
        catalog.alter_table(path, [SetProperty("a", "b", None)])
    assert "a" not in events.table().properties


def test_old_metadata_that_can_not_be_deleted_is_no_failure(
    events: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The commit has landed."""

    def refuse(*_: Any) -> None:
        raise OSError("read-only")

    monkeypatch.setattr(commits, "delete_old_metadata", refuse)
    fill(events, 1)
    assert events.ids() == [0, 1]
    assert "orphan collection will find them: read-only" in caplog.text


def test_tables_that_are_not_written_to(make: Callable[..., Any]) -> None:
    with pytest.raises(FeatureNotSupported, match="writing other files than Parquet"):
        make(properties={"write.format.default": "orc"}).factory.create_writer(None)
    upper = make(properties={"write.format.default": "PARQUET"}, name="upper")
    fill(upper, 1)
    assert upper.ids() == [0, 1]


def test_a_struct_whose_last_field_others_dropped_is_refused_by_name(make: Callable[..., Any]) -> None:
    """No Parquet file holds one, of ours or of Spark."""
    table = make(pa.schema([("id", pa.int64()), ("s", pa.struct({"a": pa.int64()}))]))
    with table.table().update_schema() as schema:
        schema.delete_column(("s", "a"))
    info = table.storage.catalog().load_table(table.info.path)
    with pytest.raises(UnsupportedType, match=r"s: a struct without fields can't be stored.*Drop the column"):
        table.storage.tiering_factory(info)


def test_what_lies_in_a_new_tables_place(storage: Any, warehouse: Path) -> None:
    wanted = TableDescriptor(SCHEMA)
    (warehouse / "db").mkdir(parents=True)
    (warehouse / "db" / "t").write_text("x")
    with pytest.raises(IncompatibleTable, match="a file lies in the table's place"):
        storage.catalog().create_table(TablePath("db", "t"), wanted)
    assert (warehouse / "db" / "t").read_text() == "x"
    (warehouse / "db" / "u").mkdir()
    (warehouse / "db" / "u" / "theirs").write_text("x")
    with pytest.raises(IncompatibleTable, match=r"holds something that is no table of this catalog: theirs"):
        storage.catalog().create_table(TablePath("db", "u"), wanted)
    (warehouse / "db" / "v").mkdir()
    made = storage.catalog().create_table(TablePath("db", "v"), wanted)
    assert storage.catalog().list_tables() == storage.catalog().list_tables("db") == [made.path]
    assert storage.catalog().list_tables("other") == []


def test_a_drop_takes_the_table_and_its_files(events: Any, make: Callable[..., Any], warehouse: Path) -> None:
    fill(events, 2)
    other = make(name="other")
    fill(other, 1)
    catalog = events.storage.catalog()
    catalog.drop_table(events.info.path)
    assert not (warehouse / "db" / "events").exists()
    assert other.ids() == [0, 1]
    with pytest.raises(TableNotFound):
        catalog.drop_table(events.info.path)
    again = make()
    fill(again, 1)
    assert again.ids() == [0, 1]


def test_a_warehouse_that_can_not_be_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigError, match="can't be used") as used:
        connect(CatalogSettings("laketier", str(tmp_path / "file" / "below"), True))
    assert str(tmp_path / "file" / "below") in str(used.value)
    database = CatalogSettings("laketier", str(tmp_path / "w"), True).database
    database.mkdir(parents=True)
    with pytest.raises(ConfigError, match="can't be opened"):
        connect(CatalogSettings("laketier", str(tmp_path / "w"), True))


def test_the_bytes_of_what_was_loaded(events: Any) -> None:
    catalog = events.storage.catalog()
    loaded = catalog.load_table(events.info.path)
    assert catalog.handle_bytes(events.info) is None
    size = Path(events.table().metadata_location.removeprefix("file://")).stat().st_size
    assert catalog.handle_bytes(loaded) % size == 0 < catalog.handle_bytes(loaded)


def test_the_time_of_a_table_is_the_later_of_two(events: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table = events.table()
    dated = Path(table.metadata_location.removeprefix("file://")).stat().st_mtime_ns // 1_000_000
    for here in (dated - 5, dated, dated + 5):
        monkeypatch.setattr("laketier_iceberg.clock.host_time", lambda here=here: here)
        assert known_time(table) == max(here, dated)
    table.metadata_location = "nowhere:/m.json"
    assert known_time(table) == dated + 5


def test_a_struct_without_fields_is_no_column() -> None:
    for kind in (pa.struct([]), pa.list_(pa.struct([])), pa.struct([("a", pa.struct([]))])):
        with pytest.raises(UnsupportedType, match="a struct without fields"):
            to_iceberg(pa.schema([("s", kind)]))
