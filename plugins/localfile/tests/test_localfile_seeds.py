"""The defects that were found in the code of Arroyo's local sink and of Vine, each tried here."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from laketier.spi import CommitterInitContext, StagedFileLost, Token, TokenMismatch, WatermarkLost, WriterInitContext
from laketier.spi import new_attempt_id as new_id
from laketier.tiering import RoundOutcome, TieringRound
from laketier_localfile.options import FileFormatName, LocalFileOptions


def ids(*epochs: int) -> list[int]:
    return [epoch * 1000 + i for epoch in epochs for i in range(4)]


def test_arroyo_the_footer_is_written_over_the_head_of_a_recovered_file(table: Any) -> None:
    """No Parquet file is continued: what a killed writer left is never published, and each published file is whole
    from its first byte to its last."""
    table.round(0)
    code, said = table.child("write.mid_file=kill@2", 1).join()
    assert code == -signal.SIGKILL, said
    [*torn] = table.staged_files()
    assert torn
    assert table.round(1).outcome is RoundOutcome.PUBLISHED
    for path in table.plain_files():
        content = path.read_bytes()
        assert (content[:4], content[-4:]) == (b"PAR1", b"PAR1")
        assert pq.read_table(path).num_rows
    assert table.read_ids() == ids(0, 1)


def test_arroyo_a_destination_that_exists_ends_the_commit_of_all_others(table: Any) -> None:
    """Killed when the first of two files was in place: the others follow, whoever opens the table."""
    code, said = table.child("publish.mid_renames=kill@1", 0).join()
    assert code == -signal.SIGKILL, said
    assert len(table.plain_files()) == 1
    table.committer().open()
    assert len(table.plain_files()) == 2
    assert table.staged_files() == []
    assert table.read_ids() == ids(0)


@pytest.mark.parametrize("point", ["publish.mid_renames=kill@1", "publish.after_renames_before_head=kill"])
def test_arroyo_a_crash_between_the_renames_and_the_log_loses_the_files(table: Any, point: str) -> None:
    """The log comes first: files that moved are in it, and the replay knows that they landed."""
    code, said = table.child(point, 0).join()
    assert code == -signal.SIGKILL, said
    replay = TieringRound(table.factory, token=Token("p", "run", 0))
    assert replay.begin().name == "DONE"
    table.round(1)
    assert table.read_ids() == ids(0, 1)


def test_arroyo_serial_names_of_a_fresh_job_drop_its_data(table: Any) -> None:
    """A new job in the same table keeps its rows, and one that forgot its state is refused, not skipped."""
    table.round(0)
    table.round(0, pipeline="fresh job")
    assert table.read_ids() == sorted(ids(0, 0))
    with pytest.raises((TokenMismatch, WatermarkLost)):
        TieringRound(table.factory, token=Token("p", "another run", 0)).begin()
    assert len({path.name for path in table.plain_files()}) == 2


@pytest.mark.parametrize("file_format", list(FileFormatName))
def test_arroyo_a_short_file_is_filled_up_with_zeros(make_table: Any, file_format: FileFormatName) -> None:
    """A staged file that lost its end is refused, and nothing of the commit is published."""
    table = make_table(options=LocalFileOptions(file_format=file_format))
    staged = table.stage(table.ids(0))
    victim = table.location / staged.files[0].path
    os.truncate(victim, victim.stat().st_size - 5)
    committer = table.committer()
    with pytest.raises(StagedFileLost):
        committer.publish(committer.open(), [staged], None)
    os.truncate(victim, staged.files[0].bytes)
    with pytest.raises(StagedFileLost):
        committer.publish(committer.open(), [staged], None)
    assert table.plain_files() == []


def test_arroyo_a_missing_temporary_file_is_a_panic(table: Any) -> None:
    staged = table.stage(table.ids(0))
    (table.location / staged.files[0].path).unlink()
    committer = table.committer()
    with pytest.raises(StagedFileLost, match="gone"):
        committer.publish(committer.open(), [staged], None)


def test_arroyo_nobody_collects_what_is_in_progress(table: Any) -> None:
    table.stage(table.ids(7))
    maintenance = table.storage.maintenance(table.info)
    assert [file.kind for file in maintenance.orphans(1 << 60)] == ["data"]
    maintenance.remove_orphans(maintenance.orphans(1 << 60))
    assert table.staged_files() == []


def test_arroyo_recursive_globs_see_files_in_progress(table: Any) -> None:
    table.round(0)
    table.stage(table.ids(1))
    pattern = f"{table.location}/**/*.parquet"
    assert duckdb.sql(f"SELECT count(*) FROM '{pattern}'").fetchall() == [(4,)]


def test_arroyo_two_writers_of_one_pipeline_both_write(table: Any) -> None:
    """The second of two drivers of one epoch is told that it is done."""
    rounds = [TieringRound(table.factory, token=Token("p", "run", 0)) for _ in range(2)]
    for each in rounds:
        each.begin()
    outcomes = [each.commit([table.stage(table.ids(0))]).outcome for each in rounds]
    assert outcomes == [RoundOutcome.PUBLISHED, RoundOutcome.ALREADY_THERE]
    assert table.read_ids() == ids(0)


@pytest.mark.parametrize("value", ["a/b", "..", "../../etc", ".", "k=v", "50%", "a b", "'\"", "ü/☃", None])
def test_arroyo_partition_values_are_not_escaped_and_null_has_no_name(make_table: Any, value: str | None) -> None:
    table = make_table(partition_by=("region",))
    table.round(0, [{"id": 1, "region": value}])
    [path] = table.plain_files()
    assert path.parent.parent == table.location
    assert path.resolve() == path
    assert table.scan().to_pylist() == [{"id": 1, "region": value}]
    pattern = f"{table.location}/**/*.parquet"
    found = duckdb.sql(f"SELECT region FROM read_parquet('{pattern}', hive_partitioning = true)").fetchall()
    assert found == [(value,)]


def test_arroyo_files_roll_at_checkpoints_alone(make_table: Any) -> None:
    """Within one epoch, on write."""
    table = make_table(options=LocalFileOptions(target_file_rows=10))
    table.round(0, table.ids(0, 95))
    rows = sorted(pq.read_metadata(path).num_rows for path in table.plain_files())
    assert rows == [5, *[10] * 9]


@pytest.mark.parametrize("file_format", list(FileFormatName))
def test_arroyo_folders_and_files_are_not_synced(
    make_table: Any, file_format: FileFormatName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each file that a commit adds, and each folder with a new name, is synced before the commit is acknowledged."""
    table = make_table(options=LocalFileOptions(file_format=file_format))
    synced: set[str] = set()
    real = os.fsync

    def fsync(descriptor: int) -> None:
        real(descriptor)
        synced.add(os.readlink(f"/proc/self/fd/{descriptor}"))

    monkeypatch.setattr(os, "fsync", fsync)
    result = table.stage(table.ids(0))
    staged = str(table.location / result.files[0].path)
    committer = table.factory.create_committer(CommitterInitContext(new_id()))
    committer.publish(committer.open(), [result], None)
    assert {staged, str(Path(staged).parent), str(table.location), str(table.log.folder)} <= synced


def test_vine_files_go_to_their_final_path_and_abort_does_nothing(table: Any) -> None:
    writer = table.factory.create_writer(WriterInitContext(new_id()))
    writer.write(pa.RecordBatch.from_pylist(table.ids(0), schema=table.schema))
    result = writer.complete()
    assert table.plain_files() == []
    writer.abort()
    assert table.staged_files() == []
    committer = table.committer()
    with pytest.raises(StagedFileLost):
        committer.publish(committer.open(), [result], None)


def test_vine_names_come_from_the_clock_and_parallel_tasks_collide(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks of one moment and one number have names of their own, and a name that is taken is refused."""
    monkeypatch.setattr("time.time", lambda: 1_700_000_000.0)
    monkeypatch.setattr("time.time_ns", lambda: 1_700_000_000_000_000_000)
    results = [table.stage(table.ids(epoch)) for epoch in range(20)]
    assert len({result.files[0].path for result in results}) == 20
    attempt = new_id()
    first = table.factory.create_writer(WriterInitContext(attempt))
    first.write(pa.RecordBatch.from_pylist(table.ids(0), schema=table.schema))
    first.complete()
    second = table.factory.create_writer(WriterInitContext(attempt))
    second.write(pa.RecordBatch.from_pylist(table.ids(1), schema=table.schema))
    with pytest.raises(Exception, match="exist"):
        second.complete()
