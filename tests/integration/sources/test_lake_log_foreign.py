"""What other writers do to a table that is read as a log, beyond what all formats have."""

from __future__ import annotations

import itertools
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.types import LongType

from followed import NAME, FollowedDelta, FollowedIceberg, FollowedLance, ids_in
from laketier.spi import FeatureNotSupported, PartitionField, RowsChanged, SchemaChanged, TableDescriptor, TablePath
from laketier.tables import TableLayout, prepare_table
from laketier_verification.lakes import SCHEMA, append, lake_at, rows_of


def test_a_restored_delta_table(tmp_path: Path) -> None:
    from deltalake import DeltaTable

    source = FollowedDelta(tmp_path).create()
    source.append(1)
    source.append(2)
    log = source.log()
    DeltaTable(source.location).delete()
    DeltaTable(source.location).restore(2)
    restored = source.latest - 1
    with pytest.raises(RowsChanged, match=f"version {restored} \\(RESTORE\\)"):
        ids_in(log, restored, restored + 1)
    assert source.ids(3, restored + 1, skip_changes=True) == []


def test_an_insert_only_merge_into_delta_appends(tmp_path: Path) -> None:
    from deltalake import DeltaTable

    source = FollowedDelta(tmp_path).create()
    source.append(1)
    start = source.latest
    news = pa.Table.from_batches([rows_of(1, 2, 3)])
    merge = DeltaTable(source.location).merge(news, "s.id = t.id", source_alias="s", target_alias="t")
    merge.when_not_matched_insert_all().execute()
    assert source.ids(start, source.latest) == [2, 3]


def test_partition_values_of_delta_are_read_from_the_log(tmp_path: Path) -> None:
    from deltalake import write_deltalake

    source = FollowedDelta(tmp_path)
    fields = [("id", pa.int64()), ("day", pa.date32()), ("at", pa.timestamp("us", "UTC")), ("what", pa.string())]
    schema = pa.schema(fields)
    prepare_table(source.lake, schema, TableLayout(tuple(PartitionField(name) for name, _ in fields[1:])))
    rows = pa.table(
        {"id": [1, 2], "day": [20_000, None], "at": [1_700_000_000_000_001, None], "what": ["a b/c=%", None]},
        schema=schema,
    )
    start = source.latest
    append(source.lake, *rows.to_batches())
    write_deltalake(source.location, rows, mode="append")
    log = source.log()
    assert ids_in(log, start, source.latest) == [1, 1, 2, 2]
    whole, grown = (
        sorted(str(row) for split in log.plan(_range(first, source.latest)) for row in _rows(log, split))
        for first in (0, start)
    )
    assert whole == grown


def _range(start: int, end: int):  # type: ignore[no-untyped-def]
    from laketier.spi import LogOffsets, LogRange

    return LogRange(LogOffsets({"table": start}), LogOffsets({"table": end}))


def _rows(log, split):  # type: ignore[no-untyped-def]
    return [row for batch in log.read(split) for row in batch.to_pylist()]


def test_the_columns_of_delta_are_remembered_until_they_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from laketier_delta import changes

    opened: list[str] = []
    real = changes.open_table
    monkeypatch.setattr(changes, "open_table", lambda location: opened.append(location.uri) or real(location))
    source = FollowedDelta(tmp_path).create()
    log = source.log()
    marks = [source.latest]
    for number in range(4):
        source.foreign_append(number)
        marks.append(source.latest)
        assert ids_in(log, marks[-2], marks[-1]) == [number]
    assert len(opened) == 1
    more = pa.record_batch({"id": [9], "name": ["n9"], "more": [0.5]})
    append(lake_at(source.warehouse, "delta", "db.s", mergeSchema="true"), more)
    with pytest.raises(SchemaChanged, match="changed since its log was opened"):
        ids_in(log, marks[-1], source.latest)
    assert source.ids(marks[-1], source.latest) == [9]


def test_a_rollback_of_iceberg_is_noticed(tmp_path: Path) -> None:
    source = FollowedIceberg(tmp_path).create()
    source.append(1)
    first = source.lake.load_table().snapshot_id
    source.append(2)
    end = source.latest
    table = source._open()
    table.manage_snapshots().rollback_to_snapshot(first).commit()
    assert source.latest < end, "a round that read further is refused by its range"
    source.foreign_append(3)
    with pytest.raises(RowsChanged, match="rolled back"):
        source.ids(end, source.latest)
    assert source.ids(end, source.latest, skip_changes=True) == [3]
    assert source.ids(0, source.latest) == [1, 3]


def test_commits_to_other_branches_of_iceberg_are_not_of_the_table(tmp_path: Path) -> None:
    source = FollowedIceberg(tmp_path).create()
    source.append(1)
    start = source.latest
    table = source._open()
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "side").commit()
    source._open().append(pa.Table.from_batches([rows_of(7)]), branch="side")
    source.foreign_append(2)
    log = source.log()
    assert source.latest == start + 2
    assert ids_in(log, start, start + 2) == [2]
    assert ids_in(log, start, start + 1) == []
    assert ids_in(log, start + 1, start + 2) == [2], "a range may begin at a number that main never had"


def test_a_renamed_column_of_iceberg_keeps_its_values(tmp_path: Path) -> None:
    source = FollowedIceberg(tmp_path).create()
    start = source.latest
    source.append(1)
    before = source.log()
    with source._open().update_schema() as update:
        update.rename_column("name", "called")
    with pytest.raises(SchemaChanged, match="changed since its log was opened"):
        ids_in(before, start, source.latest)
    log = source.log()
    assert [row for split in log.plan(_range(start, source.latest)) for row in _rows(log, split)] == [
        {"id": 1, "called": "n1"}
    ]


def test_a_first_read_of_iceberg_after_columns_changed_alone(tmp_path: Path) -> None:
    """That makes no snapshot, so the newest one has the columns from before, also when the log is opened again."""
    source = FollowedIceberg(tmp_path).create()
    source.append(1)
    with source._open().update_schema() as update:
        update.rename_column("name", "called")
        update.add_column("more", LongType())
    log = source.log()
    expected = [{"id": 1, "called": "n1", "more": None}]
    assert [row for split in log.plan(_range(0, source.latest)) for row in _rows(log, split)] == expected
    older = _range(0, source.latest)
    source._open().append(pa.table({"id": [2], "called": ["n2"], "more": [2]}))
    with pytest.raises(SchemaChanged, match="changed since its log was opened"):
        log.plan(older)  # its rows are at hand in a newer snapshot


def test_iceberg_tables_of_version_1_are_refused(tmp_path: Path) -> None:
    from laketier_iceberg.connection import CatalogSettings, connect
    from laketier_iceberg.options import IcebergOptions

    catalog = connect(CatalogSettings.of(str(tmp_path), IcebergOptions()))
    catalog.create_namespace("db")
    catalog.create_table("db.s", SCHEMA, properties={"format-version": "1"})
    with pytest.raises(FeatureNotSupported, match="version 1"):
        FollowedIceberg(tmp_path).log()


def test_renamed_and_computed_columns_of_lance(tmp_path: Path) -> None:
    source = FollowedLance(tmp_path).create()
    start = source.latest
    source.append(1)
    source._open().alter_columns({"path": "name", "name": "called"})
    log = source.log()
    renamed = source.latest
    assert [row for split in log.plan(_range(start, renamed)) for row in _rows(log, split)] == [
        {"id": 1, "called": "n1"}
    ]
    source._open().add_columns({"twice": "id * 2"})
    with pytest.raises(RowsChanged, match="Merge"):
        source.ids(start, source.latest)
    assert source.ids(start, renamed) == [1]


def test_a_lance_dataset_of_others_keeps_its_identity(tmp_path: Path) -> None:
    import lance

    place = tmp_path / "db" / "s.lance"
    for number in range(3):
        rows = pa.Table.from_batches([rows_of(number)])
        lance.write_dataset(rows, place, mode="append" if number else "create")
    source = FollowedLance(tmp_path)
    before = source.log().table.table_id
    source.expire()
    assert source.log().table.table_id == before
    assert source.ids(0, source.latest) == [0, 1, 2]


def test_merged_manifests_of_iceberg_hold_no_row_twice(tmp_path: Path) -> None:
    source = FollowedIceberg(tmp_path)
    properties = {"commit.manifest-merge.enabled": "true", "commit.manifest.min-count-to-merge": "2"}
    source.lake.storage.catalog().create_table(TablePath.parse(NAME), TableDescriptor(SCHEMA, properties=properties))
    marks = [source.latest]
    for number in range(4):
        source.foreign_append(number)
        marks.append(source.latest)
    table = source._open()
    assert len(table.current_snapshot().manifests(table.io)) == 1
    log = source.log()
    assert [ids_in(log, start, end) for start, end in itertools.pairwise(marks)] == [[0], [1], [2], [3]]
    assert ids_in(log, marks[0], marks[-1]) == [0, 1, 2, 3]
