"""Small epochs make no small files: a commit also writes the small files before it as one, and nobody sees a row twice,
too late or never."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laketier.kit.file_counts import FILE_COUNTS
from laketier.kit.manifests import FileEntry, FoldSettings, Manifest, files_at
from laketier.kit.manifests import folding as folding_rule
from laketier.kit.manifests.document import encode
from laketier.kit.manifests.folding import Room, due, room_after, room_of
from laketier.kit.partition import OddPartitionValues
from laketier.spi import (
    AddColumn,
    BucketSpec,
    Conflict,
    CorruptTable,
    SnapshotNotFound,
    Token,
    Watermark,
    WidenColumn,
    WriteMode,
)
from laketier_localfile.layout import LAYOUT
from laketier_localfile.options import LocalFileOptions
from laketier_localfile.source import LocalFileSource


def folding(make_table: Callable[..., Any], files: int = 3, **options: Any) -> Any:
    return make_table(options=LocalFileOptions(fold_files=files), **options)


def test_files_as_large_as_the_writer_makes_them_are_not_folded_in_vain(make_table: Callable[..., Any]) -> None:
    """They would be as many as before, and small, so each commit would write all of them again."""
    table = make_table(options=LocalFileOptions(fold_files=3, target_file_rows=4))
    for epoch in range(9):
        table.round(epoch, table.ids(epoch, 5))
    assert table.read_ids() == sorted(epoch * 1000 + i for epoch in range(9) for i in range(5))
    assert max(levels(table)) <= 2
    assert sum(len(table.log.read(number).added) for number in range(10)) < 30
    assert sum(entry.rows < 4 for entry in live(table)) <= 6


def live(table: Any) -> list[FileEntry]:
    head, _ = table.log.head()
    return files_at(table.log, head.number)


def levels(table: Any) -> list[int]:
    return [entry.level for entry in live(table)]


def others(table: Any) -> dict[str, list[int]]:
    pattern = f"{table.location}/**/*.parquet"
    return {
        "DuckDB": [row[0] for row in duckdb.sql(f"SELECT id FROM '{pattern}' ORDER BY id").fetchall()],
        "Polars": sorted(pl.scan_parquet(pattern).collect()["id"].to_list()),
    }


def ids(*epochs: int) -> list[int]:
    return [epoch * 1000 + i for epoch in epochs for i in range(4)]


def test_the_commit_that_makes_it_one_too_many_writes_the_earlier_ones_as_one(make_table: Any) -> None:
    table = folding(make_table)
    seen = []
    for epoch in range(13):
        table.round(epoch)
        seen.append(levels(table))
        assert table.read_ids() == ids(*range(epoch + 1))
    assert seen[2] == [0, 0, 0]
    assert seen[3] == [0, 1]
    assert seen[12] == [0, 1, 2]
    assert others(table) == {"DuckDB": ids(*range(13)), "Polars": ids(*range(13))}
    assert table.staged_files() == []


def test_many_small_epochs_make_few_files_and_each_row_is_written_twice(make_table: Any) -> None:
    table = make_table()
    written = 0
    for epoch in range(120):
        result = table.round(epoch, table.ids(epoch, 10))
        head, _ = table.log.head()
        assert result.rows == 10
        written += sum(entry.rows for entry in head.added)
    assert levels(table).count(0) == 20
    assert levels(table).count(1) == 2
    assert written == 120 * 10 + 100 * 10
    assert len(table.read_ids()) == len(set(table.read_ids())) == 1200


def test_a_reader_of_commits_sees_the_rows_of_each_once(make_table: Any) -> None:
    table = folding(make_table, 2)
    for epoch in range(9):
        table.round(epoch)
    changes = table.storage.changes(table.info)
    first = table.log.head()[0].number - 8
    for epoch in range(9):
        plan = changes.plan(first + epoch, first + epoch + 1)
        source = table.storage.source(table.info)
        rows = [row for split in plan.splits for batch in source.read(split, plan.schema) for row in batch.to_pylist()]
        assert [row["id"] for row in rows] == ids(epoch)
    history = table.storage.history(table.info).snapshots(9)
    assert [snapshot.rows for snapshot in history] == [4] * 9


def test_snapshots_before_a_fold_stay_readable(make_table: Any) -> None:
    table = folding(make_table, 2)
    snapshots = [table.round(epoch).snapshot_id for epoch in range(6)]
    for epoch, snapshot in enumerate(snapshots):
        assert table.read_ids(snapshot_id=snapshot) == ids(*range(epoch + 1))
    with pytest.raises(SnapshotNotFound):
        table.read_ids(snapshot_id=99)


def test_each_partition_and_bucket_is_folded_by_itself(make_table: Any) -> None:
    table = folding(make_table, partition_by=("region",), buckets=BucketSpec(2, ("id",)))
    for epoch in range(8):
        table.round(epoch, [{"id": epoch * 1000 + i, "region": f"r{i % 2}"} for i in range(8)])
    found = live(table)
    for entry in found:
        group = [other for other in found if (other.partition, other.bucket) == (entry.partition, entry.bucket)]
        assert sum(other.level == 0 for other in group) <= 3
    assert any(entry.level for entry in found)
    assert len(table.read_ids()) == len(set(table.read_ids())) == 64
    files = f"{table.location}/**/*.parquet"
    query = f"SELECT count(*), count(DISTINCT id) FROM read_parquet('{files}', hive_partitioning = false)"
    assert duckdb.sql(query).fetchall() == [(64, 64)]


def test_odd_partition_values_that_were_accepted_once_are_folded(make_table: Any) -> None:
    table = folding(make_table, 2, partition_by=("region",))
    table.options = replace(table.options, odd_partition_values=OddPartitionValues.ACCEPT)
    for epoch in range(2):
        table.round(epoch, [{"id": epoch, "region": ""}, {"id": epoch + 10, "region": None}])
    table.options = replace(table.options, odd_partition_values=OddPartitionValues.REFUSE)
    table.round(2, [{"id": 2, "region": "eu"}])
    table.round(3, [{"id": 3, "region": "eu"}])
    table.options = replace(table.options, odd_partition_values=OddPartitionValues.ACCEPT)
    table.round(4, [{"id": 4, "region": ""}])
    assert sorted(table.scan().to_pylist(), key=lambda row: row["id"]) == [
        {"id": 0, "region": ""},
        {"id": 1, "region": ""},
        {"id": 2, "region": "eu"},
        {"id": 3, "region": "eu"},
        {"id": 4, "region": ""},
        {"id": 10, "region": None},
        {"id": 11, "region": None},
    ]
    assert any(levels(table))


def test_files_of_older_schemas_are_folded_into_the_newest(make_table: Any) -> None:
    schema = pa.schema([("id", pa.int32()), ("region", pa.string())])
    table = folding(make_table, 2, schema=schema)
    table.round(0)
    catalog = table.storage.catalog()
    catalog.alter_table(table.path, [WidenColumn("id", pa.int64())])
    catalog.alter_table(table.path, [AddColumn(pa.field("note", pa.string()))])
    table.schema = table.info.schema
    for epoch in range(1, 4):
        table.round(epoch, [{**row, "note": "n"} for row in table.ids(epoch)])
    assert 1 in levels(table)
    found = table.scan().sort_by("id")
    assert found.column("id").to_pylist() == ids(0, 1, 2, 3)
    assert found.column("note").to_pylist() == [None] * 4 + ["n"] * 12
    notes = f"SELECT count(note) FROM read_parquet('{table.location}/*.parquet', union_by_name = true)"
    assert duckdb.sql(notes).fetchall() == [(12,)]


def test_large_files_stay_and_none_of_it_happens_when_it_is_off(make_table: Any) -> None:
    table = make_table(options=LocalFileOptions(fold_files=2, fold_file_bytes=1))
    for epoch in range(5):
        table.round(epoch)
    assert levels(table) == [0] * 5
    table.options = LocalFileOptions(fold_files=0)
    for epoch in range(5, 9):
        table.round(epoch)
    assert levels(table) == [0] * 9
    # What is small is what the settings of now say.
    table.options = LocalFileOptions(fold_files=4)
    table.round(9)
    assert sorted(levels(table)) == [0, 1]
    assert table.read_ids() == ids(*range(10))


def test_an_upsert_folds_what_it_does_not_replace_and_an_overwrite_nothing(make_table: Any) -> None:
    table = folding(make_table, 2)
    for epoch in range(2):
        table.round(epoch)
    [first, second] = [entry.path for entry in live(table)]
    upsert = replace(table.stage(table.ids(0)), replaced=(first,))
    upsert_two = table.stage([{"id": 7, "region": "r"}])
    committer = table.committer(WriteMode.UPSERT)
    committer.publish(committer.open(), [upsert, upsert_two], None)
    head, _ = table.log.head()
    assert (head.replaced, head.folded) == ((first,), ())
    assert table.read_ids() == sorted([7, *ids(0, 1)])
    table.round(2)
    head, _ = table.log.head()
    assert second in head.folded
    assert table.read_ids() == sorted([7, *ids(0, 1, 2)])
    table.round(3, mode=WriteMode.OVERWRITE)
    assert levels(table) == [0]
    assert table.read_ids() == ids(3)
    table.round(4)
    table.round(5)
    assert sorted(levels(table)) == [0, 1]
    assert others(table)["DuckDB"] == ids(3, 4, 5)


@pytest.mark.parametrize(
    "failpoints",
    [
        "fold.before_rewrite=kill",
        "fold.after_rewrite=kill",
        "publish.before_manifest=kill",
        "publish.after_manifest_before_renames=kill",
        "publish.mid_retire=kill@1",
        "publish.mid_retire=kill@2",
        "publish.mid_renames=kill@1",
        "publish.mid_renames=kill@2",
        "publish.after_renames_before_head=kill",
        "publish.after=kill",
    ],
)
def test_a_process_that_is_killed_while_it_folds_loses_and_doubles_nothing(make_table: Any, failpoints: str) -> None:
    table = folding(make_table, 2)
    table.round(0)
    table.round(1)
    code, said = table.child(failpoints, 2, fold_files=2).join()
    assert code == -signal.SIGKILL, said
    assert table.read_ids() in (ids(0, 1), ids(0, 1, 2))
    table.round(2)
    assert table.read_ids() == ids(0, 1, 2)
    assert others(table)["DuckDB"] == ids(0, 1, 2)
    assert 1 in levels(table)
    # What the killed process had staged is found by its age, and is not live.
    left = table.storage.maintenance(table.info).orphans(1 << 60)
    assert not {file.path for file in left} & {entry.path for entry in live(table)}
    table.storage.maintenance(table.info).remove_orphans(left)
    assert table.read_ids() == ids(0, 1, 2)
    assert table.staged_files() == []


def test_a_damaged_small_file_holds_up_no_epoch(make_table: Any, caplog: pytest.LogCaptureFixture) -> None:
    table = folding(make_table, 2)
    table.round(0)
    table.round(1)
    victim = table.location / live(table)[0].path
    whole = victim.read_bytes()
    victim.write_bytes(whole[:-1] + b"?")
    table.round(2)
    assert levels(table) == [0, 0, 0]
    assert "trying again in 2 files" in caplog.text
    assert table.staged_files() == []
    with pytest.raises(CorruptTable):
        table.read_ids()
    victim.write_bytes(whole)
    for epoch in range(3, 6):
        table.round(epoch)
    assert 1 in levels(table)
    assert table.read_ids() == ids(*range(6))


def test_a_file_with_fewer_rows_than_the_table_knows_is_never_folded(
    make_table: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = folding(make_table, 2)
    table.round(0)
    table.round(1)
    read = LocalFileSource.read
    monkeypatch.setattr(LocalFileSource, "read", lambda *args: (batch.slice(1) for batch in read(*args)))
    table.round(2)
    monkeypatch.undo()
    assert "hold 6 rows, and the table knows 8" in caplog.text
    assert table.read_ids() == ids(0, 1, 2)
    assert table.staged_files() == []


def test_who_loses_the_race_deletes_what_it_folded(make_table: Any) -> None:
    table = folding(make_table, 2)
    table.round(0)
    table.round(1)
    mine = table.committer()
    state = mine.open()
    staged = table.stage(table.ids(2))
    table.round(0, pipeline="q")
    assert sorted(levels(table)) == [0, 1]
    with pytest.raises(Conflict):
        mine.publish(state, [staged], Watermark(Token("p", "run", 2), "commit"))
    assert [path.name for path in table.staged_files()] == [Path(staged.files[0].path).name]
    assert table.read_ids() == sorted(ids(0, 0, 1))


def test_manifests_that_fold_are_refused_by_versions_that_would_show_rows_as_new(make_table: Any) -> None:
    table = folding(make_table, 2)
    for epoch in range(4):
        table.round(epoch)
    versions = [
        json.loads(table.log.path(number).read_bytes())["body"]["version"]
        for number in range(table.log.head()[0].number + 1)
    ]
    assert versions == [1, 1, 1, 3, 1]


def test_a_manifest_that_folds_files_and_keeps_them_is_refused(make_table: Any) -> None:
    table = folding(make_table, 2)
    for epoch in range(3):
        table.round(epoch)
    path = table.log.path(table.log.head()[0].number)
    body = json.loads(path.read_bytes())["body"]
    assert Manifest.decode(encode(body), path, LAYOUT).folded
    body["removed"] = body["removed"][1:]
    with pytest.raises(CorruptTable):
        Manifest.decode(encode(body), path, LAYOUT)


def entry(number: int, size: int, level: int, group: int) -> FileEntry:
    return FileEntry(f"f{number}", 1, size, 0, (("p", str(group)),), None, {}, level)


commits = st.lists(
    st.lists(st.tuples(st.sampled_from([1, 2, 3, 100, 120]), st.integers(0, 2)), max_size=5), max_size=40
)


@given(commits, st.integers(1, 5))
def test_no_partition_ever_keeps_more_small_files_of_a_level_than_it_should(
    history: list[list[tuple[int, int]]], limit: int
) -> None:
    """Whatever the sizes and partitions, and though most commits look at no live file. But for what is too much for
    one commit, which other tests look at."""
    settings = FoldSettings(limit, 100)
    files: list[FileEntry] = []
    room: Room | None = None
    number = looks = 0
    for commit in history:
        added = []
        for size, group in commit:
            number += 1
            added.append(entry(number, size, 0, group))
        found = room_after(settings, room, added)
        if found is None:
            looks += 1
            folded = []
            with patch.object(folding_rule, "_AT_ONCE", 10**6):
                sets = due(settings, files, added)
            for old in sets:
                number += 1
                files = [file for file in files if file not in old]
                folded.append(replace(old[0], path=f"f{number}", level=old[0].level + 1))
            files += [*added, *folded]
            found = room_of(settings, files)
        else:
            files += added
        room = found
        assert room == Room.from_plain(room.to_plain())
        for group in range(3):
            for level in range(6):
                small = [
                    file
                    for file in files
                    if file.level == level and file.partition == (("p", str(group)),) and settings.is_small(file)
                ]
                mine = sum(1 for size, of in commit if of == group and size < 100) if level == 0 else 1
                # The files of one commit alone may be more, and one file is not folded with nothing.
                assert len(small) <= max(limit, mine + 1)
    assert looks <= len(history)


def test_an_old_table_of_many_small_files_is_folded_in_many_commits() -> None:
    settings = FoldSettings(5, 1000)
    files = [entry(number, 10, 0, 0) for number in range(1000)]
    commits = 0
    while True:
        commits += 1
        added = [entry(10_000 + commits, 10, 0, 0)]
        sets = due(settings, files, added)
        assert sum(map(len, sets)) <= 20
        files += added
        for old in sets:
            files = [file for file in files if file not in old]
            files.append(replace(old[0], path=f"folded {commits} {len(files)}", level=old[0].level + 1))
        room = room_of(settings, files)
        if room.files >= 0:
            break
    assert commits < 120
    assert sum(file.level == 0 for file in files) <= 5


def test_partitions_that_are_due_at_once_are_folded_as_fast_as_files_come() -> None:
    settings = FoldSettings(5, 1000)
    files: list[FileEntry] = []
    most = 0
    for epoch in range(60):
        added = [entry(epoch * 1000 + group, 10, 0, group) for group in range(300)]
        sets = due(settings, files, added)
        assert sum(map(len, sets)) <= 1200
        gone = {file.path for old in sets for file in old}
        files = [file for file in files if file.path not in gone] + added
        files += [replace(old[0], path=f"folded {epoch} {i}", level=old[0].level + 1) for i, old in enumerate(sets)]
        most = max(most, sum(file.level == 0 for file in files))
    assert most <= 300 * 8, "five for each partition, and what waits for a commit or two"


def test_no_commit_reads_more_bytes_than_an_ordinary_set_has() -> None:
    settings = FoldSettings(5, 1000)
    [old] = due(settings, [entry(number, 999, 0, 0) for number in range(20)], [])
    assert len(old) == 5


@pytest.mark.parametrize("plain", [None, 3, {}, {"files": 3}, {"files": "3", "file_bytes": 1, "room": 0}, ["files"]])
def test_what_a_manifest_says_of_room_and_is_not_understood_is_looked_at_again(plain: Any) -> None:
    assert Room.from_plain(plain) is None


def test_a_commit_tells_how_many_files_it_folded(make_table: Any) -> None:
    _, before = FILE_COUNTS.now()
    table = make_table(options=LocalFileOptions(fold_files=2))
    told = [table.round(epoch, [{"id": epoch, "region": "r"}]).commit.folded for epoch in range(5)]
    _, after = FILE_COUNTS.now()
    assert told[:3] == [0, 0, 2]
    assert sum(told) == sum(len(table.log.read(number).folded) for number in range(6)) == after - before
