"""What each version of a dataset appended, and what of it can't be told."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lance
import pyarrow as pa
import pytest

from laketier.spi import (
    AddColumn,
    CorruptTable,
    OffsetsExpired,
    RenameColumn,
    RowsChanged,
    SetProperty,
    SnapshotNotFound,
    TableDescriptor,
    TableError,
    WidenColumn,
    WriteMode,
)
from laketier.spi.schema import FIELD_ID
from laketier_lance import changes as module
from laketier_lance.changes import _check_new, _only_widened, _operation, _widened, appended, bounds, names_at, shaped

NAMED = pa.schema([("id", pa.int64())])


def told(table: Any, start: int, end: int, **more: Any) -> list[dict[str, Any]]:
    """The rows of a plan, in its order."""
    changes, source = table.storage.changes(table.info), table.storage.source(table.info)
    plan = changes.plan(start, end, **more)
    return [row for split in plan.splits for batch in source.read(split, plan.schema) for row in batch.to_pylist()]


def ids(table: Any, start: int, end: int, **more: Any) -> list[int]:
    return [row["id"] for row in told(table, start, end, **more)]


# -- plans -----------------------------------------------------------------------------------------------------------


def test_a_plan_tells_its_rows_its_bytes_and_its_snapshot(make_table: Callable[..., Any]) -> None:
    table = make_table(split_rows=2, max_rows_per_file=1)
    for epoch in range(3):
        table.append(epoch, epoch * 2, epoch * 2 + 1)
    plan = table.storage.changes(table.info).plan(2, 4)
    assert (plan.snapshot_id, plan.schema.names, plan.schema.metadata) == (3, ["id", "name"], None)
    files = [file for f in table.open().get_fragments() for file in f.metadata.files]
    assert [(split.index, split.rows, split.bytes) for split in plan.splits] == [
        (index, 1, file.file_size_bytes) for index, file in enumerate(files[:4])
    ]
    assert [split.files for split in plan.splits] == [()] * 4
    assert ids(table, 2, 4) == [0, 1, 2, 3]
    many = make_table(split_rows=3, max_rows_per_file=1)
    many.append(0, *range(18))
    plan = many.storage.changes(many.info).plan(2, 3)
    size = sum(file.file_size_bytes for f in many.open().get_fragments() for file in f.metadata.files)
    assert [split.rows for split in plan.splits] == [3] * 6
    assert sum(split.bytes or 0 for split in plan.splits) == size


def test_a_stamp_is_the_same_in_each_time_zone(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next round may be run by a host of another zone, and would take the table for one from a backup."""
    table.append(0, 1, 2)
    changes, history, stamps = table.storage.changes(table.info), table.storage.history(table.info), set()
    try:
        for zone in ("UTC", "Asia/Kolkata", "America/New_York", zone_whose_clocks_just_went_back()):
            monkeypatch.setenv("TZ", zone)
            time.tzset()
            stamps.add((changes.stamp(2), changes.versions().latest_at, history.snapshots(1)[0].committed_at))
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()
    assert len(stamps) == 1


def zone_whose_clocks_just_went_back() -> str:
    """Half an hour ago, at noon or so: what is done now has the time of what was done an hour before it. As POSIX
    writes a zone: west is positive, and days are counted from 0."""
    now = datetime.now(UTC)
    west = now.hour - 12
    back = now - timedelta(hours=west, minutes=-30)
    return f"STD{west}DST{west - 1},0/0,{back.timetuple().tm_yday - 1}/{back:%H:%M}"


def test_before_the_first_version_there_was_no_snapshot(table: Any) -> None:
    """A range that ends there has nothing to read, and is not one that expired."""
    table.append(0, 1)
    changes = table.storage.changes(table.info)
    assert (changes.snapshot_at(0), changes.snapshot_at(1)) == (None, 1)


def test_versions_before_the_first_appended_nothing(table: Any) -> None:
    table.append(0, 1)
    assert ids(table, 0, 3) == ids(table, 1, 3) == ids(table, 2, 3) == [1]
    assert ids(table, 0, 2) == ids(table, 3, 3) == ids(table, 1, 1) == []
    with pytest.raises(OffsetsExpired):
        ids(table, -1, 3)
    with pytest.raises(SnapshotNotFound, match="the newest version is 2, and 3 was asked for"):
        ids(table, 2, 4)


def test_versions_that_were_cleaned_up_are_expired(table: Any) -> None:
    for epoch in range(3):
        table.append(epoch, epoch)
    table.open().cleanup_old_versions(timedelta(0))
    for start in (1, 2, 3, 4):
        with pytest.raises(OffsetsExpired, match="was cleaned up"):
            ids(table, start, 5)
    assert ids(table, 4, 4) == [], "nothing was asked for"
    table.append(3, 3)
    assert ids(table, 5, 6) == [3]


def test_a_plan_has_the_columns_of_now(table: Any) -> None:
    table.append(0, 1)
    changes = table.storage.changes(table.info)
    assert changes.plan(2, 3).schema.names == ["id", "name"]
    table.foreign("add")
    assert changes.plan(2, 3).schema.names == ["id", "name", "more"]


def test_bounds_are_those_of_the_versions_that_are_there(table: Any) -> None:
    found = bounds(table.location, {})
    assert (found.earliest, found.latest, found.lasting_id) == (1, 2, None)
    for epoch in range(4):
        table.append(epoch, epoch)
    found = table.storage.changes(table.info).versions()
    assert (found.earliest, found.latest) == (1, 6)
    committed = table.storage.history(table.info).snapshots(1)[0].committed_at
    assert found.latest_at == committed > 1_700_000_000_000
    table.open().tags.create("kept", 2)
    table.open().cleanup_old_versions(timedelta(0), error_if_tagged_old_versions=False)
    assert bounds(table.location, {}).earliest == 6, "what the newest appended is unknown, as the one before is gone"
    table.append(4, 4)
    table.append(5, 5)
    assert (bounds(table.location, {}).earliest, bounds(table.location, {}).latest) == (6, 8)
    assert ids(table, 6, 8) == [4, 5]


def test_a_dataset_of_others_is_known_by_its_place(tmp_path: Path) -> None:
    one, other = (str(tmp_path / name / "t.lance") for name in ("a", "b"))
    for place in (one, other):
        lance.write_dataset(pa.table({"id": [1]}), place)
    found = [bounds(place, {}).lasting_id for place in (one, one, other)]
    assert found[0] == found[1] != found[2]
    assert uuid.UUID(found[0]).version == 5


def test_a_dataset_of_others_is_the_same_table_once_laketier_wrote_to_it(make_table: Any) -> None:
    """Who follows it would have to begin anew. What laketier makes in its place is another table."""
    for change in ("round", "property"):
        table = make_table()
        catalog, location, schema = table.storage.catalog(), table.location, table.open().schema.remove_metadata()
        catalog.drop_table(table.path)
        lance.write_dataset(pa.Table.from_pylist([{"id": 1, "name": "a"}], schema=schema), location)
        table.reload()
        known = bounds(location, {}).lasting_id
        assert known is not None
        if change == "property":
            catalog.alter_table(table.path, [SetProperty("a", "b", None)])
            assert bounds(location, {}).lasting_id == known
        for epoch in range(3):
            table.append(epoch, epoch)
            assert bounds(location, {}).lasting_id == known
        table.open().cleanup_old_versions(timedelta(0))
        assert bounds(location, {}).lasting_id == known
        catalog.drop_table(table.path)
        catalog.create_table(table.path, TableDescriptor(schema))
        assert bounds(location, {}).lasting_id is None


@pytest.mark.parametrize(
    ("error", "kind"),
    [(ValueError("a bad manifest"), CorruptTable), (OSError("x"), TableError), (KeyError("x"), KeyError)],
)
def test_bounds_of_what_lance_can_not_list(
    table: Any, monkeypatch: pytest.MonkeyPatch, error: Exception, kind: type[Exception]
) -> None:
    def fails(_: Any) -> list[int]:
        raise error

    monkeypatch.setattr(module, "versions_of", fails)
    with pytest.raises(kind) as failure:
        bounds(table.location, {})
    assert type(failure.value) is kind


# -- versions that changed rows --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "operation"),
    [
        ("delete", "Delete"),
        ("update", "Update"),
        ("merge insert", "Update"),
        ("overwrite", "Overwrite"),
        ("restore", "Restore"),
        ("drop", ""),
        ("compaction", ""),
        ("index", ""),
        ("config", ""),
        ("metadata", ""),
        ("rename", ""),
        ("add", ""),
    ],
)
def test_what_changed_rows_is_refused_or_passed_over(table: Any, change: str, operation: str) -> None:
    table.append(0, 1, 2)
    table.append(1, 3)
    table.foreign(change)
    end = table.open().version
    table.reload()
    table.append(2) if change == "drop" else table.open().update_config({"a": "b"})
    table.reload()
    if not operation:
        assert ids(table, 3, end + 1) == [3]
        return
    with pytest.raises(RowsChanged, match=rf"version {end} \({operation}\)"):
        ids(table, 3, end + 1)
    assert ids(table, 3, end + 2, skip_changes=True) == [3]


def test_a_restore_of_fewer_rows_is_one_of_changed_rows(table: Any) -> None:
    """No fragment is changed, and none is gone that the version before had not."""
    table.append(0, 1)
    kept = int(table.open().version)
    table.append(1, mode=WriteMode.OVERWRITE)
    lance.dataset(table.location, version=kept).restore()
    with pytest.raises(RowsChanged, match=rf"version {kept + 2} \(Restore\)"):
        ids(table, kept + 2, kept + 3)
    assert ids(table, kept + 2, kept + 3, skip_changes=True) == []


def test_a_column_that_others_cast_is_not_told_as_nulls(table: Any) -> None:
    """It has another id then, as one that was dropped and added again has."""
    table.append(0, 1)
    start = int(table.open().version)
    table.foreign("cast")
    table.reload()
    end = int(table.open().version) + 1
    with pytest.raises(RowsChanged, match=rf"version {start + 1} \(Merge\)"):
        ids(table, start + 1, end)
    with pytest.raises(RowsChanged, match="has a column id of type int64, and now it is int32"):
        ids(table, start, end, skip_changes=True)
    assert ids(table, start + 1, end, skip_changes=True) == []


def test_a_column_that_others_made_anew_is_another_one(table: Any) -> None:
    table.append(0, 1)
    start = int(table.open().version)
    table.foreign("drop")
    table.open().add_columns(pa.schema([("name", pa.string())]))
    table.reload()
    assert told(table, start, int(table.open().version) + 1) == [{"id": 1, "name": None}]


def test_a_version_without_its_transaction(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fragments that are new were appended, whoever did it; those that changed, nobody can tell how."""
    table.append(0, 1, 2)
    table.append(1, 3)
    table.foreign("delete")
    end = table.open().version
    table.append(2, 4)
    monkeypatch.setattr(module, "read_transaction", lambda *_: None)
    assert ids(table, 2, end) == [1, 2, 3]
    assert ids(table, end + 1, end + 2) == [4]
    for skip in (False, True):
        with pytest.raises(OffsetsExpired, match=f"the transaction of version {end} is gone"):
            ids(table, 2, end + 1, skip_changes=skip)


def test_what_a_version_is_called(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = table.open()
    for answer, name in ((None, None), (SimpleNamespace(operation=lance.LanceOperation.Append([])), "Append")):
        monkeypatch.setattr(module, "read_transaction", lambda *_, answer=answer: answer)
        assert _operation(dataset, 1) == name


def test_each_version_is_opened_with_what_the_store_is_told(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table.append(0, 1)
    table.append(1, 2)
    asked: list[Any] = []

    def spy(location: str, storage: Any, version: int | None = None) -> Any:
        asked.append((location, storage, version))
        return lance.dataset(location, version)

    monkeypatch.setattr(module, "open_dataset", spy)
    found = list(appended(table.open(), table.location, {"a": "b"}, 3, 4, skip_changes=False))
    assert [(each.version, len(each.fragments), int(each.dataset.version)) for each in found] == [(3, 1, 3)]
    assert asked == [(table.location, {"a": "b"}, 2), (table.location, {"a": "b"}, 3)]


# -- columns then and now --------------------------------------------------------------------------------------------


def test_columns_that_were_added_renamed_and_widened_since(table: Any) -> None:
    catalog = table.storage.catalog()
    catalog.alter_table(table.path, [AddColumn(pa.field("n", pa.int16())), AddColumn(pa.field("f", pa.float32()))])
    table.reload()
    start = int(table.open().version) + 1
    rows = table.rows(1).append_column("n", pa.array([7], pa.int16())).append_column("f", pa.array([0.5], pa.float32()))
    table.round(0).commit([table.stage(rows)])
    then = table.open()
    assert names_at(then, table.open()) == {}
    catalog.alter_table(table.path, [RenameColumn("name", "title"), AddColumn(pa.field("late", pa.string()))])
    assert names_at(then, table.open()) == {"title": "name", "late": None}
    catalog.alter_table(table.path, [WidenColumn("n", pa.int32()), WidenColumn("f", pa.float64())])
    assert names_at(then, table.open()) == {"title": "name", "late": None, "n": "n", "f": "f"}
    table.reload()
    expected = {"id": 1, "title": "n1", "n": 7, "f": 0.5, "late": None}
    assert told(table, start, int(table.open().version) + 1) == [expected], "a version that only widens appends nothing"
    assert table.storage.changes(table.info).plan(start, start + 1).schema.field("f").type == pa.float64()


def _schema(*columns: tuple[str, pa.DataType, int]) -> pa.Schema:
    return pa.schema(
        [pa.field(name, kind, metadata={FIELD_ID: str(number).encode()}) for name, kind, number in columns]
    )


def _dataset(schema: pa.Schema, version: int = 4) -> Any:
    plain = pa.schema([pa.field(each.name, each.type) for each in schema])
    return SimpleNamespace(lance_schema=schema, schema=plain, version=version, uri="/lake/t.lance")


@pytest.fixture
def told_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dataset's schema of Lance is Arrow's, with the ids in it."""
    monkeypatch.setattr(module, "with_field_ids", lambda schema: schema)


SAME = {0: ("a.lance", "none"), 1: ("b.lance", "gone.arrow")}
OTHER_FILES = {0: ("a.lance", "c.lance", "none"), 1: ("b.lance", "d.lance", "gone.arrow")}


@pytest.mark.parametrize(
    ("then", "now", "states", "is_it"),
    [
        ([("n", pa.int32(), 0)], [("n", pa.int64(), 1)], OTHER_FILES, True),
        ([("n", pa.int32(), 0), ("m", pa.int8(), 1)], [("n", pa.int64(), 2), ("m", pa.int16(), 3)], OTHER_FILES, True),
        ([("n", pa.int32(), 0), ("m", pa.int8(), 1)], [("n", pa.int64(), 2), ("m", pa.int8(), 1)], OTHER_FILES, True),
        ([("n", pa.int32(), 0)], [("n", pa.int32(), 0)], OTHER_FILES, False),
        ([("n", pa.int64(), 0)], [("n", pa.int32(), 1)], OTHER_FILES, False),
        ([("n", pa.int32(), 0)], [("m", pa.int64(), 1)], OTHER_FILES, False),
        ([("n", pa.int32(), 0)], [("n", pa.int32(), 1)], OTHER_FILES, False),
        ([("n", pa.int32(), 0), ("m", pa.int8(), 1)], [("n", pa.int64(), 2)], OTHER_FILES, False),
        ([("n", pa.int32(), 0)], [("n", pa.int64(), 1), ("m", pa.int8(), 2)], OTHER_FILES, False),
        (
            [("n", pa.int32(), 0), ("m", pa.int8(), 1)],
            [("n", pa.int64(), 2), ("m", pa.string(), 3)],
            OTHER_FILES,
            False,
        ),
        ([("n", pa.int32(), 0)], [("n", pa.int64(), 1)], {0: ("a.lance", "none")}, False),
        ([("n", pa.int32(), 0)], [("n", pa.int64(), 1)], {**OTHER_FILES, 2: ("e.lance", "none")}, False),
        ([("n", pa.int32(), 0)], [("n", pa.int64(), 1)], {**OTHER_FILES, 1: ("b.lance", "other.arrow")}, False),
    ],
)
def test_a_version_only_widened_columns(told_ids: None, then: Any, now: Any, states: Any, is_it: bool) -> None:
    assert _only_widened(_dataset(_schema(*then)), _dataset(_schema(*now)), SAME, states) is is_it


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [(pa.int16(), pa.int32(), True), (pa.int32(), pa.int16(), False), (pa.int16(), pa.string(), False)],
)
def test_a_column_that_was_widened_is_found_by_its_name(old: pa.DataType, new: pa.DataType, found: bool) -> None:
    gone = {"n": pa.field("n", old)}
    assert _widened(pa.field("n", new), gone) == (gone["n"] if found else None)
    assert _widened(pa.field("m", new), gone) is None


@pytest.mark.parametrize(
    ("then", "gone", "place", "is_refused"),
    [
        (["a", "n"], {"n": pa.int16()}, 1, True),
        (["n"], {"n": pa.int16()}, 1, False),
        (["a", "n"], {"n": pa.int16()}, 0, False),
        (["a", "n"], {}, 1, False),
        (["a", "n"], {"n": pa.int64()}, 1, False),
        (["a", "n"], {"n": pa.string()}, 1, False),
    ],
)
def test_a_wider_column_in_the_place_of_one_that_is_gone(then: Any, gone: Any, place: int, is_refused: bool) -> None:
    dataset = _dataset(_schema(*((name, pa.int16(), at) for at, name in enumerate(then))))
    fields = {name: pa.field(name, kind) for name, kind in gone.items()}
    if not is_refused:
        _check_new(pa.field("m", pa.int32()), place, dataset, fields)
        return
    with pytest.raises(RowsChanged, match="version 4 has a column n, and now a wider one, m, is in its place"):
        _check_new(pa.field("m", pa.int32()), place, dataset, fields)


def test_rows_are_shaped_as_the_table_is_now() -> None:
    batch = pa.record_batch({"a": pa.array([1, None], pa.int16()), "b": ["x", "y"]})
    schema = pa.schema([("c", pa.string()), ("n", pa.int32()), ("late", pa.float64())])
    found = shaped(batch, schema, {"c": "b", "n": "a", "late": None})
    assert found.schema.equals(schema)
    assert found.to_pylist() == [{"c": "x", "n": 1, "late": None}, {"c": "y", "n": None, "late": None}]
    assert shaped(batch, pa.schema([("b", pa.string())]), {}).to_pydict() == {"b": ["x", "y"]}
    counted = shaped(batch.replace_schema_metadata({"a": "b"}), pa.schema([]), {})
    assert (counted.num_rows, counted.num_columns, counted.schema.metadata) == (2, 0, None)
