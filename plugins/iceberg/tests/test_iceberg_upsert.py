"""Replacing data files: what the metadata says of it, what other readers see, and keys as identifier fields."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.manifest import ManifestEntryStatus

from laketier.cli.demo.verify import evaluate
from laketier.spi import ScanRequest, TablePath, UnsupportedType, WriteMode
from laketier.tiering import TieringRound
from laketier_iceberg.options import IcebergOptions
from laketier_iceberg.plugin import IcebergPlugin


def upsert(table: Any, epoch: int, rows: Sequence[pa.RecordBatch], replaced: Sequence[str] = ()) -> int:
    result = replace(table.stage(*rows), replaced=tuple(replaced))
    tiering = TieringRound(table.factory, token=table.token(epoch), mode=WriteMode.UPSERT)
    tiering.begin()
    committed = tiering.commit([result])
    assert committed.snapshot_id is not None
    return committed.snapshot_id


def files(table: Any) -> dict[str, list[int]]:
    """Each live file and the ids in it."""
    source = table.storage.source(table.info)
    plan = source.plan(ScanRequest(columns=("id",)))
    return {s.files[0]: [i for b in source.read(s, plan.schema) for i in b["id"].to_pylist()] for s in plan.splits}


def holding(table: Any, key: int) -> list[str]:
    return [name for name, ids in files(table).items() if key in ids]


def summary(table: Any) -> dict[str, str]:
    snapshot = table.table().current_snapshot()
    return {"operation": snapshot.summary.operation.value, **snapshot.summary.additional_properties}


def manifests(table: Any) -> dict[str, list[tuple[str, str]]]:
    loaded = table.table()
    return {
        manifest.manifest_path: [
            (ManifestEntryStatus(e.status).name, e.data_file.file_path)
            for e in manifest.fetch_manifest_entry(loaded.io, discard_deleted=False)
        ]
        for manifest in loaded.current_snapshot().manifests(loaded.io)
    }


def test_other_readers_agree(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    table = make(primary_key=("id",))
    for epoch in range(3):
        upsert(table, epoch, [table.batch(epoch * 10, epoch * 10 + 10)])
    upsert(table, 3, [table.batch(10, 15), table.batch(90, 91)], holding(table, 10))
    expected = [*range(15), *range(20, 30), 90]
    assert table.ids() == expected, "pyiceberg"
    lines = IcebergPlugin().open_with(table.storage.catalog().load_table(table.info.path))
    for tool in ("pyiceberg", "Polars", "DuckDB"):
        assert sorted(evaluate(lines[tool])["id"].to_pylist()) == expected, tool


def test_the_summary_counts_both_sides(make: Any) -> None:
    table = make(primary_key=("id",))
    upsert(table, 0, [table.batch(0, 10)])
    assert summary(table)["operation"] == "append"
    upsert(table, 1, [table.batch(10, 20)])
    upsert(table, 2, [table.batch(0, 7)], holding(table, 0))
    found = summary(table)
    assert found["operation"] == "overwrite"
    assert {key: found[key] for key in found if key.endswith(("-records", "-data-files"))} == {
        "added-data-files": "1",
        "added-records": "7",
        "deleted-data-files": "1",
        "deleted-records": "10",
        "total-data-files": "2",
        "total-records": "17",
    }
    upsert(table, 3, [], holding(table, 0))
    assert summary(table)["operation"] == "delete"
    assert (summary(table)["total-records"], summary(table)["total-data-files"]) == ("10", "1")
    upsert(table, 4, [])
    assert summary(table)["operation"] == "append"
    assert summary(table)["laketier.epoch"] == "4"


def test_only_manifests_that_list_a_replaced_file_are_read_and_written(make: Any) -> None:
    """The others may even be gone: the newest are looked at first."""
    table = make(primary_key=("id",))
    for epoch in range(4):
        upsert(table, epoch, [table.batch(epoch * 10, epoch * 10 + 10)])
    [target] = holding(table, 30)
    before = manifests(table)
    [touched] = [path for path, entries in before.items() if any(file == target for _, file in entries)]
    hidden = [Path(path) for path in before if path != touched]
    for path in hidden:
        path.rename(path.with_suffix(".hidden"))
    # As a round does; of writers that began before others committed, these commits' manifests are looked at, too.
    table.factory = table.storage.tiering_factory(table.storage.catalog().load_table(table.info.path))
    upsert(table, 4, [table.batch(30, 33)], [target])
    for path in hidden:
        path.with_suffix(".hidden").rename(path)
    after = manifests(table)
    assert set(before) - set(after) == {touched}
    [fresh] = [entries for path, entries in after.items() if path not in before and ("DELETED", target) in entries]
    assert fresh == [("DELETED", target)]
    assert table.ids() == list(range(33))


def test_manifests_don_t_pile_up(make: Any) -> None:
    """A file is replaced over and over: manifests without live files go with the next commit, and others are merged."""
    table = make(primary_key=("id",), properties={"commit.manifest.min-count-to-merge": "4"})
    upsert(table, 0, [table.batch(0, 1)])
    for epoch in range(1, 30):
        upsert(table, epoch, [table.batch(0, 1), table.batch(epoch, epoch + 1)], holding(table, 0))
        table_files = files(table)
        listed = [entry for entries in manifests(table).values() for entry in entries]
        live = [file for status, file in listed if status != "DELETED"]
        assert sorted(live) == sorted(table_files), epoch
        assert len([1 for status, _ in listed if status == "DELETED"]) == 1, epoch
        assert len(manifests(table)) <= 5
    assert table.ids() == [0, 29], "each epoch took the row of the one before with the file"


def test_a_merged_manifest_tells_what_its_own_snapshot_removed(make: Any) -> None:
    """Readers of changes learn it there alone."""
    table = make(primary_key=("id",), properties={"commit.manifest.min-count-to-merge": "1"})
    upsert(table, 0, [table.batch(0, 1)])
    for epoch in (1, 2):
        [gone] = holding(table, 0)
        upsert(table, epoch, [table.batch(0, 1)], [gone])
        [merged] = manifests(table).values()
        assert sorted(merged) == [("ADDED", *holding(table, 0)), ("DELETED", gone)]


def test_kept_files_keep_their_sequence_numbers(make: Any) -> None:
    """Delete files of others apply by them."""
    table = make(primary_key=("id",), properties={"commit.manifest.min-count-to-merge": "1"})
    upsert(table, 0, [table.batch(0, 1)])
    upsert(table, 1, [table.batch(1, 2)])
    [kept] = holding(table, 0)
    upsert(table, 2, [table.batch(1, 3)], holding(table, 1))
    loaded = table.table()
    entries = [e for m in loaded.current_snapshot().manifests(loaded.io) for e in m.fetch_manifest_entry(loaded.io)]
    assert {e.data_file.file_path: e.sequence_number for e in entries} == {kept: 1, holding(table, 2)[0]: 3}


def test_replaced_files_are_orphans_once_no_snapshot_needs_them(make: Any) -> None:
    table = make(primary_key=("id",))
    upsert(table, 0, [table.batch(0, 10)])
    [gone] = holding(table, 0)
    upsert(table, 1, [table.batch(0, 5)], [gone])

    def orphans() -> list[str]:
        now = time.time_ns() // 1_000_000
        found = table.storage.maintenance(table.info).orphans(now + 60_000)
        return [f"{table.info.location}/{file.path}" for file in found if file.kind == "data"]

    assert orphans() == []
    expiring = make(options=IcebergOptions(expire_in_commit=True), primary_key=("id",))
    with expiring.table().transaction() as transaction:
        transaction.set_properties({"history.expire.max-snapshot-age-ms": "1"})
    time.sleep(0.005)  # until the snapshots are older than that
    upsert(expiring, 2, [])
    assert orphans() == [gone]
    assert table.ids() == list(range(5))


# -- keys ------------------------------------------------------------------------------------------------------------


def test_keys_are_identifier_fields_and_required(make: Any) -> None:
    """Whether or not the descriptor lets them be null, and when it is asked for again."""
    for _ in range(2):
        table = make(primary_key=("s", "id"))
    assert table.info.descriptor.primary_key == ("s", "id")
    assert [field.nullable for field in table.info.schema] == [False, False]
    schema = table.table().schema()
    assert schema.identifier_field_names() == {"s", "id"}


@pytest.mark.parametrize("kind", [pa.float64(), pa.list_(pa.int64()), pa.struct([("a", pa.int64())])])
def test_types_that_are_no_keys(make: Any, kind: pa.DataType) -> None:
    with pytest.raises(UnsupportedType, match="primary key"):
        make(pa.schema([("id", kind)]), primary_key=("id",))


def test_identifier_fields_of_others(make: Any) -> None:
    """A table that another engine gave a key; one of a nested column, which no descriptor can say, is left out."""
    plain = make(pa.schema([pa.field("id", pa.int64(), nullable=False), ("s", pa.string())]))
    with plain.table().update_schema(allow_incompatible_changes=True) as update:
        update.set_identifier_fields("id")
    assert plain.storage.catalog().load_table(plain.info.path).descriptor.primary_key == ("id",)
    plain.round(plain.token(0), plain.batch(0, 3))
    assert plain.ids() == [0, 1, 2]
    inner = pa.struct([pa.field("id", pa.int64(), nullable=False)])
    nested = make(pa.schema([pa.field("key", inner, nullable=False), ("s", pa.string())]), name="nested")
    with nested.table().update_schema(allow_incompatible_changes=True) as update:
        update.set_identifier_fields("key.id")
    assert nested.storage.catalog().load_table(TablePath("db", "nested")).descriptor.primary_key == ()


def test_a_key_outlives_a_new_column(make: Any) -> None:
    from laketier.spi import AddColumn

    table = make(primary_key=("id",))
    info = table.storage.catalog().alter_table(table.info.path, [AddColumn(pa.field("x", pa.int64()))])
    assert info.descriptor.primary_key == ("id",)
