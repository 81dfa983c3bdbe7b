"""Files that stay open across epochs: written, read at any length, finished by whoever comes next."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from laketier.kit.manifests import document
from laketier.kit.manifests.manifest import Manifest
from laketier.spi import (
    AddColumn,
    ConfigError,
    CorruptTable,
    Leaf,
    Op,
    Overtaken,
    Refused,
    StagedFileLost,
    TableDescriptor,
    Token,
    Watermark,
    WriteMode,
    WriterInitContext,
    new_attempt_id,
)
from laketier.tiering import RoundOutcome
from laketier_localfile.layout import LAYOUT

FORMATS = ("json", "csv", "arrow")
SCHEMA = pa.schema([("id", pa.int64()), ("region", pa.string())])


def rows_of(epoch: int, count: int = 4) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {"id": [epoch * 1000 + i for i in range(count)], "region": [f'r{i}\n"x"' for i in range(count)]}, schema=SCHEMA
    )


def ids_of(*epochs: int, count: int = 4) -> list[int]:
    return [epoch * 1000 + i for epoch in epochs for i in range(count)]


@pytest.mark.parametrize("file_format", FORMATS)
def test_small_epochs_make_one_file(open_table: Any, file_format: str) -> None:
    table = open_table(file_format)
    with table.writer() as writer:
        for epoch in range(5):
            writer.write(epoch, [rows_of(epoch)])
            assert table.read_ids() == ids_of(*range(epoch + 1))
            assert len(table.staged_files()) == 1
            assert table.plain_files() == []
        assert table.read_ids(snapshot_id=2) == ids_of(0, 1)
        assert table.changed_ids(3, 4) == ids_of(2)
    assert len(table.plain_files()) == 1
    assert table.staged_files() == []
    assert table.read_ids() == ids_of(*range(5))
    for reader, ids in table.read_by_others().items():
        assert ids == ids_of(*range(5)), reader
    assert table.read_ids(snapshot_id=2) == ids_of(0, 1)
    assert table.changed_ids(1, 7) == ids_of(*range(5))


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_successor_finishes_what_was_recorded(open_table: Any, file_format: str) -> None:
    table = open_table(file_format)
    first = table.writer()
    for epoch in range(3):
        first.write(epoch, [rows_of(epoch)])
    (open_file,) = table.staged_files()
    with open(open_file, "ab") as zombie:
        zombie.write(b"what nobody recorded")
        with table.writer() as second:
            second.write(3, [rows_of(3)])
            assert table.read_ids() == ids_of(*range(4))
        zombie.write(b"and more")
    assert table.read_ids() == ids_of(*range(4))
    assert table.read_ids(snapshot_id=2) == ids_of(0, 1)
    assert table.changed_ids(1, 5) == ids_of(*range(4))
    for reader, ids in table.read_by_others().items():
        assert ids == ids_of(*range(4)), reader
    assert len(table.plain_files()) == 2


def open_files(table: Any) -> list[Any]:
    return list(table.log.head()[0].open_files)


# -- which files go on ------------------------------------------------------------------------------------------------


def test_partitions_have_a_file_each_that_stays_open_without_rows(open_table: Any) -> None:
    table = open_table("json", file_names="serial")
    with table.writer(**{"lake.partition-by": "region"}) as writer:
        writer.write(0, [pa.record_batch([[0, 1], ["a", "b"]], schema=SCHEMA)])
        for epoch in range(1, 4):
            writer.write(epoch, [pa.record_batch([[epoch * 1000], ["a"]], schema=SCHEMA)])
        assert len(table.staged_files()) == 2
        assert [(entry.partition, entry.rows) for entry in open_files(table)] == [
            ((("region", "b"),), 1), ((("region", "a"),), 4)
        ]  # fmt: skip
        writer.write(4, [pa.record_batch([[4000], ["b"]], schema=SCHEMA)])
        assert table.changed_ids(2, 6) == [1000, 2000, 3000, 4000]
    assert [path.parent.name for path in table.plain_files()] == ["region=a", "region=b"]
    assert all(path.name.startswith("00000001-000") for path in table.plain_files()), "the commit that began them"
    assert table.read_by_others()["DuckDB"] == table.read_ids() == [0, 1, 1000, 2000, 3000, 4000]


def test_an_epoch_without_rows_leaves_files_open(open_table: Any) -> None:
    table = open_table("json")
    with table.writer() as writer:
        writer.write(0, [rows_of(0)])
        assert writer.write(1, []).files == 1, "it says that the file goes on"
        assert table.log.head()[0].added == ()
        writer.write(2, [rows_of(2)])
        assert len(open_files(table)) == 1
    assert len(table.plain_files()) == 1
    assert table.read_ids() == ids_of(0, 2)


@pytest.mark.parametrize("file_format", FORMATS)
def test_sizes_are_those_of_a_files_whole_life(open_table: Any, file_format: str) -> None:
    table = open_table(file_format, target_file_rows="10")
    with table.writer() as writer:
        for epoch in range(6):
            writer.write(epoch, [rows_of(epoch)])
        assert len(table.plain_files()) == 2
        (entry,) = open_files(table)
        assert entry.rows == 4
        assert table.changed_ids(3, 4) == ids_of(2), "of which some are in a finished file"
    assert table.read_by_others()["Polars"] == table.read_ids() == ids_of(*range(6))
    assert table.read_ids(snapshot_id=3) == ids_of(0, 1, 2)
    assert table.changed_ids(1, 3) == ids_of(0, 1)


def test_a_file_that_got_old_is_finished_without_rows(open_table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table = open_table("json", idle_file_seconds="600")
    with table.writer() as writer:
        assert writer.finish_due() is None
        writer.write(0, [rows_of(0)])
        assert writer.finish_due() is None
        with monkeypatch.context() as later:
            later.setattr(writer._slot._files._writer, "_clock", lambda: time.monotonic() + 3600)
            done = writer.finish_due()
        assert done is not None
        assert done.rows == 0
        assert len(table.plain_files()) == 1
        assert writer.finish_due() is None
        assert writer.write(0, [rows_of(0)]).outcome is RoundOutcome.ALREADY_THERE
        assert table.changed_ids(1, 3) == ids_of(0)
    assert table.read_ids() == ids_of(0)


def test_pipelines_have_files_of_their_own(open_table: Any) -> None:
    table = open_table("json")
    with table.writer() as one, table.writer(**{"lake.pipeline": "q"}) as other:
        for epoch in range(3):
            one.write(epoch, [rows_of(epoch)])
            other.write(epoch, [rows_of(epoch + 10)])
        assert [entry.rows for entry in open_files(table)] == [12, 12]
        assert {entry.growth.pipeline for entry in open_files(table)} == {"p", "q"}
    assert len(table.plain_files()) == 2
    assert table.read_by_others()["DuckDB"] == table.read_ids() == ids_of(0, 1, 2, 10, 11, 12)


def test_a_filter_skips_an_open_file_by_what_it_holds_by_now(open_table: Any) -> None:
    table = open_table("csv")
    with table.writer() as writer:
        for epoch in range(3):
            writer.write(epoch, [rows_of(epoch)])
        assert table.scan(filters=(Leaf("id", Op.GE, 3000),)).num_rows == 0
        assert table.scan(filters=(Leaf("id", Op.GE, 2000),)).num_rows == 12, "the file is read; filters remain"
        assert table.scan(filters=(Leaf("id", Op.GE, 2000),), snapshot_id=2).num_rows == 0
        assert table.scan(limit=5).num_rows == 5
        assert table.scan(columns=("region",)).column_names == ["region"]
    history = table.storage.history(table.info).snapshots(9)
    assert [info.rows for info in history] == [0, 4, 4, 4, 0]


# -- commits that fail ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("point", ["open.after_append", "stage.after_fsync", "publish.before_manifest"])
def test_rows_of_an_epoch_that_failed_belong_to_nobody(
    open_table: Any, monkeypatch: pytest.MonkeyPatch, file_format: str, point: str
) -> None:
    table = open_table(file_format)
    with table.writer() as writer:
        writer.write(0, [rows_of(0)])
        (open_file,) = table.staged_files()
        monkeypatch.setenv("LAKETIER_FAILPOINTS", f"{point}=error")
        with pytest.raises(Exception, match=point):
            writer.write(1, [rows_of(1)])
        monkeypatch.delenv("LAKETIER_FAILPOINTS")
        assert open_file.stat().st_size > open_files(table)[0].bytes
        assert table.read_ids() == ids_of(0)
        writer.write(1, [rows_of(1, 2)])
        assert table.read_ids() == ids_of(0) + ids_of(1, count=2)
    assert table.read_by_others()["Polars"] == table.read_ids() == ids_of(0) + ids_of(1, count=2)
    assert len(table.plain_files()) == 2, "the first was given up, and finished by the commit that followed"


def test_a_commit_whose_answer_was_lost_goes_on(open_table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table = open_table("json")
    with table.writer() as writer:
        writer.write(0, [rows_of(0)])
        monkeypatch.setenv("LAKETIER_FAILPOINTS", "publish.after_manifest_before_renames=error@1")
        assert writer.write(1, [rows_of(1)]).outcome is RoundOutcome.RECOVERED
        monkeypatch.delenv("LAKETIER_FAILPOINTS")
        writer.write(2, [rows_of(2)])
        assert len(table.staged_files()) == 1
    assert len(table.plain_files()) == 1
    assert table.read_by_others()["DuckDB"] == ids_of(0, 1, 2)


def test_whoever_finished_a_file_meanwhile_wins(open_table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The epoch is staged, another process commits, and the epoch is refused: its rows were appended to a file that is
    not the table's any more."""
    table = open_table("json")
    with table.writer() as first:
        first.write(0, [rows_of(0)])
        result = _staged_by(first, rows_of(1))
        with table.writer() as second:
            second.write(1, [rows_of(1)])
        committer = table.committer()
        with pytest.raises(Overtaken, match="another commit finished, or continued"):
            committer.publish(committer.open(), [result], None)
        first.write(2, [rows_of(2)])
    assert table.read_by_others()["DuckDB"] == table.read_ids() == ids_of(0, 1, 2)


@pytest.mark.parametrize("ending", [False, True])
@pytest.mark.parametrize("rows", [0, 1])
def test_a_file_that_is_finished_while_an_epoch_is_staged(open_table: Any, rows: int, ending: bool) -> None:
    """Also where the epoch has no rows for it, or ends it: run again, it goes into another file."""
    table = open_table("json")
    first = table.writer()
    first.write(0, [rows_of(0)])
    first._slot.ending = ending
    staging = first._factory().create_writer(WriterInitContext(new_attempt_id(), open_files=first._slot))
    staging.write(rows_of(1).slice(0, rows))
    with table.writer() as second:
        second.write(1, [rows_of(1)])
    with pytest.raises(Overtaken, match="another process took the table over"):
        staging.complete()
    staging.abort()
    assert table.read_by_others()["DuckDB"] == table.read_ids() == ids_of(0, 1)
    first.write(2, [rows_of(2)])
    assert table.read_ids() == ids_of(0, 1, 2)
    first.close()


def test_a_new_file_that_is_deleted_while_it_is_written(open_table: Any) -> None:
    """No epoch is in it, so nobody can have finished it."""
    table = open_table("json")
    writer = table.writer()
    assert writer.next_epoch == 0
    staging = writer._factory().create_writer(WriterInitContext(new_attempt_id(), open_files=writer._slot))
    staging.write(rows_of(0))
    deleted = []

    def gone(name: str) -> None:
        if name == "open.after_append":
            deleted.extend(table.staged_files())
            for path in deleted:
                path.unlink()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("laketier_localfile.open_writer.failpoint", gone)
        with pytest.raises(FileNotFoundError):
            staging.complete()
    assert len(deleted) == 1
    staging.abort()
    writer.write(0, [rows_of(0)])
    assert table.read_ids() == ids_of(0)


def _staged_by(writer: Any, rows: pa.RecordBatch) -> Any:
    staging = writer._factory().create_writer(WriterInitContext(new_attempt_id(), open_files=writer._slot))
    staging.write(rows)
    return staging.complete()


# -- other commits ----------------------------------------------------------------------------------------------------


def test_an_overwrite_takes_open_files_away(open_table: Any) -> None:
    table = open_table("json")
    with table.writer() as writer:
        writer.write(0, [rows_of(0)])
        table.round(0, table.ids(7), pipeline="other", mode=WriteMode.OVERWRITE)
        assert table.read_ids() == ids_of(7)
        assert open_files(table) == []
        assert table.read_ids(snapshot_id=1) == ids_of(0)
        writer.write(1, [rows_of(1)])
    assert table.read_by_others()["DuckDB"] == table.read_ids() == ids_of(1, 7)
    assert table.staged_files() == []


def test_an_upsert_replaces_an_open_file(open_table: Any) -> None:
    table = open_table("arrow")
    with table.writer() as writer:
        writer.write(0, [rows_of(0)])
        (entry,) = open_files(table)
        committer = table.committer(WriteMode.UPSERT)
        staged = replace(table.stage(table.ids(5)), replaced=(entry.path,))
        committer.publish(committer.open(), [staged], None)
        assert table.read_ids() == ids_of(5)
        assert table.read_ids(snapshot_id=1) == ids_of(0)
        writer.write(1, [rows_of(1)])
    assert table.read_by_others()["Polars"] == table.read_ids() == ids_of(1, 5)


def test_columns_that_change_end_a_file(open_table: Any) -> None:
    table = open_table("csv")
    with table.writer() as writer:
        writer.write(0, [rows_of(0)])
        table.storage.catalog().alter_table(table.path, [AddColumn(pa.field("more", pa.int64()))])
        assert table.read_ids() == ids_of(0)
        writer.write(1, [rows_of(1)])
        (entry,) = open_files(table)
        assert entry.rows == 4
        assert table.scan().column("more").null_count == 8
    assert table.read_by_others()["DuckDB"] == table.read_ids() == ids_of(0, 1)


def test_open_files_are_never_folded_and_finished_ones_are(open_table: Any) -> None:
    table = open_table("json", fold_files="2")
    for life in range(5):
        with table.writer() as writer:
            for epoch in (2 * life, 2 * life + 1):
                writer.write(epoch, [rows_of(epoch)])
                assert table.read_ids() == ids_of(*range(epoch + 1))
                assert [entry.rows for entry in open_files(table)] == [4 if epoch % 2 == 0 else 8]
    assert sorted(entry.level for entry in table.files()) == [0, 1, 1]
    assert table.changed_ids(1, table.log.head()[0].number + 1) == ids_of(*range(10))
    assert table.read_by_others()["DuckDB"] == ids_of(*range(10))


def test_sums_of_manifests_have_the_last_length_alone(open_table: Any) -> None:
    """Also where a file grew in one block of manifests, and is finished for its process in another."""
    table = open_table("json", manifests_per_rollup="2", target_file_rows="30")
    for life in range(4):
        writer = table.writer()
        for epoch in range(life * 5, life * 5 + 5):
            writer.write(epoch, [rows_of(epoch)])
    assert table.read_ids() == ids_of(*range(20))
    for number in range(1, 21):
        assert table.read_ids(snapshot_id=number) == ids_of(*range(number))
    assert len({entry.path for entry in table.files()}) == len(table.files()) == 4


def test_a_dropped_table_takes_its_open_files_with_it(open_table: Any) -> None:
    table = open_table("json")
    with table.writer() as writer:
        writer.write(0, [rows_of(0)])
        table.storage.catalog().drop_table(table.path)
        table.create()
        writer.write(0, [rows_of(3)])
        assert table.read_ids() == ids_of(3)
    assert table.read_by_others()["DuckDB"] == ids_of(3)


def test_open_files_are_no_orphans(open_table: Any) -> None:
    table = open_table("json")
    first = table.writer()
    first.write(0, [rows_of(0)])
    table.round(0, [], pipeline="other")
    maintenance = table.storage.maintenance(table.info)
    assert maintenance.orphans(1 << 60) == []
    assert maintenance.remove_orphans(maintenance.orphans(1 << 60)) == []
    first.write(1, [rows_of(1)])
    with table.writer() as second:
        second.write(2, [rows_of(2)])
    assert maintenance.orphans(1 << 60) == []
    assert table.read_by_others()["DuckDB"] == ids_of(0, 1, 2)


@pytest.mark.parametrize("mode", [WriteMode.APPEND, WriteMode.OVERWRITE])
def test_an_open_file_that_an_unfinished_commit_takes_away_is_no_orphan(
    open_table: Any, monkeypatch: pytest.MonkeyPatch, mode: WriteMode
) -> None:
    """It lies where it was staged until somebody finishes the commit, and older snapshots need it."""
    table = open_table("json")
    table.writer().write(0, [rows_of(0)])
    monkeypatch.setenv("LAKETIER_FAILPOINTS", "publish.after_manifest_before_renames=error")
    with pytest.raises(Exception, match=r"publish.after_manifest"):
        table.committer(mode).publish(table.committer().open(), [table.stage(table.ids(1))], token("p", 1))
    monkeypatch.delenv("LAKETIER_FAILPOINTS")
    maintenance = table.storage.maintenance(table.info)
    assert [file for file in maintenance.orphans(1 << 60) if file.kind == "data"] == []
    table.committer().open()
    assert table.read_ids(snapshot_id=1) == ids_of(0)


def token(pipeline: str, epoch: int) -> Watermark:
    return Watermark(Token(pipeline, "batch", epoch), new_attempt_id(), rows=4, committed_at=0)


# -- recovery ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("point", ["recover.before_copy", "recover.before_sync", "recover.after_copy"])
def test_recover_crash_during_recovery(open_table: Any, file_format: str, point: str) -> None:
    table = open_table(file_format)
    table.writer().write(0, [rows_of(0)])
    for _ in range(2):
        code, _ = table.open_child(f"{point}=kill", 1).join()
        assert code == -signal.SIGKILL
        assert table.read_ids() == ids_of(0)
    with table.writer() as writer:
        writer.write(1, [rows_of(1)])
    assert table.read_by_others()["Polars"] == table.read_ids() == ids_of(0, 1)
    assert len(table.plain_files()) == 2


@pytest.mark.parametrize("file_format", FORMATS)
def test_recover_both_missing_is_a_loud_error(open_table: Any, file_format: str) -> None:
    table = open_table(file_format)
    table.writer().write(0, [rows_of(0)])
    (open_file,) = table.staged_files()
    open_file.rename(open_file.with_name("aside"))
    with pytest.raises(
        CorruptTable, match=r"an open data file with 4 rows is lost.*rows that were acknowledged are gone"
    ):
        table.writer().write(1, [rows_of(1)])
    with pytest.raises(CorruptTable, match="is missing"):
        table.read_ids()
    open_file.with_name("aside").rename(open_file)
    with table.writer() as writer:
        writer.write(1, [rows_of(1)])
    assert table.read_ids() == ids_of(0, 1)


@pytest.mark.parametrize("file_format", FORMATS)
def test_recover_a_short_file_is_never_filled(open_table: Any, file_format: str) -> None:
    table = open_table(file_format)
    table.writer().write(0, [rows_of(0)])
    (open_file,) = table.staged_files()
    os.truncate(open_file, open_file.stat().st_size - 1)
    with pytest.raises(CorruptTable, match=r"has [0-9]+ bytes, and [0-9]+ were recorded"):
        table.writer().write(1, [rows_of(1)])
    with pytest.raises(CorruptTable, match="is damaged"):
        table.read_ids()


@pytest.mark.parametrize("file_format", FORMATS)
def test_recover_other_bytes_are_refused(open_table: Any, file_format: str) -> None:
    table = open_table(file_format)
    table.writer().write(0, [rows_of(0)])
    (open_file,) = table.staged_files()
    data = bytearray(open_file.read_bytes())
    data[-3] ^= 1
    open_file.write_bytes(data)
    before = table.log.head()[0].number
    with pytest.raises(CorruptTable, match="an open data file is not as it was recorded") as caught:
        table.writer().write(1, [rows_of(1)])
    assert caught.value.where == str(open_file)
    assert "Nothing was published. Restore these bytes" in str(caught.value.fix)
    assert isinstance(caught.value, Refused)
    assert table.log.head()[0].number == before
    with pytest.raises(CorruptTable, match="not the one that was published"):
        table.read_ids()


def _finished_but_not_renamed(table: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The temporary file and the destination of a file whose end is written and published."""
    code, _ = table.open_child("publish.after_manifest_before_renames=kill@3", 0, 1).join()
    assert code == -signal.SIGKILL
    (staged,) = table.staged_files()
    (entry,) = table.log.head()[0].added
    assert not entry.is_open
    return staged, table.location / entry.path


def test_recover_both_exist(open_table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a copy or a restore that knows no hard links leaves them."""
    table = open_table("json")
    staged, destination = _finished_but_not_renamed(table, monkeypatch)
    shutil.copy(staged, destination)
    with table.writer() as writer:
        writer.write(2, [rows_of(2)])
    assert table.staged_files() == []
    assert table.read_by_others()["DuckDB"] == table.read_ids() == ids_of(0, 1, 2)


def test_recover_both_exist_and_differ(open_table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table = open_table("json")
    _, destination = _finished_but_not_renamed(table, monkeypatch)
    destination.write_bytes(b"another")
    with pytest.raises(CorruptTable, match="another file has the name of a published data file"):
        table.writer().write(2, [rows_of(2)])
    assert destination.read_bytes() == b"another"


def test_what_a_full_disk_can_not_copy_stays_open(open_table: Any, full_disk: Any) -> None:
    table = open_table("json")
    table.writer().write(0, [rows_of(0)])
    with full_disk():
        second = table.writer()
        second.write(1, [rows_of(1)])
        assert table.read_ids() == ids_of(0, 1)
        assert len(open_files(table)) == 2
    second.write(2, [rows_of(2)])
    assert len(open_files(table)) == 1
    second.close()
    assert table.read_by_others()["DuckDB"] == ids_of(0, 1, 2)
    assert table.staged_files() == []


# -- what is refused --------------------------------------------------------------------------------------------------


def test_older_versions_refuse_the_manifests(open_table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table = open_table("json", manifests_per_rollup="2")
    table.writer().write(0, [rows_of(0)])
    table.round(0, [], pipeline="other")
    for path in table.log.folder.rglob("0*.json"):
        if path.name != "00000000000000000000.json":
            assert json.loads(path.read_text())["body"]["version"] == 7, path
    monkeypatch.setattr(document, "_VERSIONS", (1, 2, 3, 4, 5, 6))
    with pytest.raises(CorruptTable, match=r"the file has version 7.*Use a newer laketier"):
        table.read_ids()


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"lake.localfile.file-format": "parquet"}, "files of parquet can't stay open"),
        ({"lake.localfile.text-compression": "gzip"}, "files of json with gzip can't stay open"),
        ({"lake.localfile.file-format": "csv", "lake.localfile.text-compression": "zstd"}, "files of csv with zstd"),
    ],
)
def test_files_that_can_not_be_read_at_any_length_are_refused(open_table: Any, keys: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        open_table("json").writer(**keys).write(0, [rows_of(0)])


def test_a_table_with_a_key_is_refused(open_table: Any) -> None:
    table = open_table("json")
    catalog = table.storage.catalog()
    schema = pa.schema([SCHEMA.field("id").with_nullable(False), SCHEMA.field("region")])
    catalog.create_table(table.path, TableDescriptor(schema, primary_key=("id",)))
    storage = table.with_options(open_files=True).storage
    with pytest.raises(ConfigError, match="the table has a primary key"):
        storage.tiering_factory(table.info)


def test_forged_growth_is_refused(open_table: Any) -> None:
    """Of a file of another attempt, beside a partition, with a length that the table does not know, named twice."""
    table = open_table("json")
    with table.writer() as writer:
        writer.write(0, [rows_of(0)])
        good = _staged_by(writer, rows_of(1))
        (file,) = good.files
        growth = json.loads(file.payload["growth"])

        def forged(**changes: Any) -> Any:
            payload = {**file.payload, "growth": json.dumps({**growth, **changes})}
            return replace(good, files=(replace(file, payload=payload),))

        other = f"__in_progress/part-00000-{'0' * 32}-0000.json.inprogress"
        committer = table.committer()
        state = committer.open()
        for result, error in [
            (forged(rows=growth["rows"] + 1), Overtaken),
            (forged(bytes=growth["bytes"] - 1), Overtaken),
            (forged(rows=0, bytes=0), StagedFileLost),
            (replace(good, files=(file, file)), StagedFileLost),
            (replace(good, files=(replace(file, partition=(("region", "x"),)),)), StagedFileLost),
            (replace(good, files=(replace(file, path=other),)), Overtaken),
        ]:
            with pytest.raises(error):
                committer.publish(state, [result], None)
        over = table.committer(WriteMode.OVERWRITE)
        with pytest.raises(Exception, match="is open across rounds"):
            over.publish(state, [good], None)
        committer.discard([good])
        assert table.read_ids() == ids_of(0)
        committer.publish(state, [good], None)
    assert table.read_by_others()["DuckDB"] == table.read_ids() == ids_of(0, 1)


def test_a_manifest_that_contradicts_itself_is_refused(open_table: Any, tmp_path: Path) -> None:
    table = open_table("json")
    table.writer().write(0, [rows_of(0)])
    table.round(0, [], pipeline="other")
    head, _ = table.log.head()
    body = json.loads(head.encode())["body"]
    (entry,) = body["open"]

    def read(**changes: Any) -> Manifest:
        return Manifest.decode(document.encode({**body, **changes}), tmp_path / "m", LAYOUT)

    assert read().open_files == head.open_files
    for wrong in (
        {"open": [{**entry, "growth": {**entry["growth"], "open": False}}]},
        {"open": [{**entry, "growth": {**entry["growth"], "upto": entry["bytes"] + 1}}]},
        {"open": [{**entry, "growth": {**entry["growth"], "rows": entry["rows"] + 1}}]},
        {"open": [{**entry, "growth": {**entry["growth"], "digest": 5}}]},
        {"open": [{**entry, "path": "../other/part-0.json"}]},
        {"removed": [entry["path"]]},
        {"added": [entry]},
    ):
        with pytest.raises(CorruptTable):
            read(**wrong)
