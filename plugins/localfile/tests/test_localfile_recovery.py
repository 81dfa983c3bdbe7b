"""A process is killed at every step of a round; the next one continues, and every row is there once."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from laketier.spi import CorruptTable, Decision, LaketierError, Token, WriteMode
from laketier.tiering import RoundOutcome, TieringRound

EPOCH_0 = [0, 1, 2, 3]
EPOCH_1 = [1000, 1001, 1002, 1003]

BEFORE_MANIFEST = [
    "write.mid_file=kill@2",
    "stage.after_close_before_fsync=kill@2",
    "stage.after_fsync=kill@2",
    "publish.before=kill",
    "publish.before_manifest=kill",
]
AFTER_MANIFEST = [
    "publish.after_manifest_before_renames=kill",
    "publish.mid_renames=kill@1",
    "publish.mid_renames=kill@2",
    "publish.after_renames_before_sync=kill",
    "publish.after_renames_before_head=kill",
    "publish.after=kill",
    "ack.before=kill",
]


def plain_ids(table: Any) -> list[int]:
    """What DuckDB finds below the table's folder: it reads every .parquet file, also in folders that begin with _."""
    files = f"{table.location}/**/*.parquet"
    try:
        return [row[0] for row in duckdb.sql(f"SELECT id FROM read_parquet('{files}') ORDER BY id").fetchall()]
    except duckdb.IOException:
        return []


def kill_in(table: Any, failpoints: str, *epochs: int, **options: Any) -> None:
    code, said = table.child(failpoints, *epochs, **options).join()
    assert code == -signal.SIGKILL, said


@pytest.mark.parametrize("failpoints", BEFORE_MANIFEST)
def test_a_crash_before_the_manifest_shows_nothing_and_the_epoch_is_redone_once(table: Any, failpoints: str) -> None:
    table.round(0)
    kill_in(table, failpoints, 1)
    assert table.read_ids() == EPOCH_0
    assert plain_ids(table) == EPOCH_0
    assert table.round(1).outcome is RoundOutcome.PUBLISHED
    assert table.read_ids() == EPOCH_0 + EPOCH_1
    assert plain_ids(table) == EPOCH_0 + EPOCH_1


@pytest.mark.parametrize("failpoints", AFTER_MANIFEST)
def test_a_crash_after_the_manifest_loses_nothing_and_the_replay_is_a_no_op(table: Any, failpoints: str) -> None:
    table.round(0)
    kill_in(table, failpoints, 1)
    # Our reader needs no recovery: the manifest says which files there are, wherever they are now.
    assert table.read_ids() == EPOCH_0 + EPOCH_1
    replay = TieringRound(table.factory, token=Token("p", "run", 1))
    assert replay.begin() is Decision.DONE
    # Looking was enough to finish the renames.
    assert plain_ids(table) == EPOCH_0 + EPOCH_1
    assert table.staged_files() == []
    table.round(2)
    assert table.read_ids() == plain_ids(table) == sorted(EPOCH_0 + EPOCH_1 + [2000, 2001, 2002, 2003])


def test_after_k_of_n_renames_our_reader_sees_all_and_plain_readers_whole_published_files(table: Any) -> None:
    kill_in(table, "publish.mid_renames=kill@1", 0, fold_files=0)
    assert table.read_ids() == EPOCH_0
    assert plain_ids(table) == [0, 1], "file by file: the first of two was moved"
    source = table.storage.source(table.info)
    assert [bool(split.plain_parquet) for split in source.plan(_request()).splits] == [True, False]


def test_a_crash_during_recovery_is_recovered_from(table: Any) -> None:
    kill_in(table, "publish.after_manifest_before_renames=kill", 0)
    kill_in(table, "publish.mid_renames=kill@1", 0)
    kill_in(table, "publish.after_renames_before_sync=kill", 0)
    kill_in(table, "publish.after_renames_before_head=kill", 0)
    assert table.child("", 0, 1).join() == (0, ["DONE 0", "PUBLISHED 1"])
    assert table.read_ids() == plain_ids(table) == EPOCH_0 + EPOCH_1


@pytest.mark.parametrize(
    "failpoints",
    [
        "publish.after_manifest_before_renames=kill",
        "publish.mid_retire=kill@1",
        "publish.mid_retire=kill@2",
        "publish.mid_renames=kill@1",
        "publish.after_renames_before_head=kill",
    ],
)
def test_a_crash_in_an_overwrite_never_shows_old_rows_beside_new_ones(table: Any, failpoints: str) -> None:
    table.round(0)
    table.round(1)
    kill_in(table, failpoints, 2, mode="overwrite")
    new = [2000, 2001, 2002, 2003]
    assert table.read_ids() == new
    seen = plain_ids(table)
    assert set(seen) <= set(new) or set(seen) <= set(EPOCH_0 + EPOCH_1)
    assert table.read_ids(snapshot_id=2) == EPOCH_0 + EPOCH_1
    table.committer().open()
    assert plain_ids(table) == new
    assert table.read_ids(snapshot_id=2) == EPOCH_0 + EPOCH_1


@pytest.mark.parametrize("point", ["publish.mid_renames=error@1", "publish.after_manifest_before_renames=error@1"])
def test_an_error_between_the_renames_is_resumed_and_not_repeated(table: Any, point: str) -> None:
    """Arroyo returns from the whole commit when the first target exists; files 2 to n were never published."""
    assert table.child(point, 0).join() == (0, ["RECOVERED 0"])
    assert table.read_ids() == plain_ids(table) == EPOCH_0
    assert table.staged_files() == []


def test_a_file_that_is_in_place_already_does_not_stop_the_others(table: Any) -> None:
    """Arroyo: `if destination.exists() { return Ok(()) }` where `continue` was meant."""
    kill_in(table, "publish.after_manifest_before_renames=kill", 0)
    head, _ = table.log.head()
    first = head.added[0]
    (table.location / "__in_progress" / f"{first.path}.inprogress").rename(table.location / first.path)
    table.committer().open()
    assert plain_ids(table) == EPOCH_0


def test_a_published_file_that_is_nowhere_is_a_loud_error(table: Any) -> None:
    """Flink's FileSink accepts in silence that both names are missing."""
    kill_in(table, "publish.after_manifest_before_renames=kill", 0)
    table.staged_files()[0].unlink()
    with pytest.raises(CorruptTable, match="2 rows is lost"):
        table.committer().open()
    with pytest.raises(CorruptTable, match="missing"):
        table.read_ids()


def test_another_file_under_the_final_name_is_refused_and_never_replaced(table: Any) -> None:
    kill_in(table, "publish.after_manifest_before_renames=kill", 0)
    head, _ = table.log.head()
    target = table.location / head.added[0].path
    target.write_bytes(b"somebody's")
    with pytest.raises(CorruptTable, match="another file has the name"):
        table.committer().open()
    assert target.read_bytes() == b"somebody's"
    target.unlink()
    table.committer().open()
    assert plain_ids(table) == EPOCH_0


def test_both_names_of_one_file_are_one_file(table: Any) -> None:
    kill_in(table, "publish.after_renames_before_sync=kill", 0)
    assert len(table.staged_files()) == 2
    assert plain_ids(table) == table.read_ids() == EPOCH_0
    table.committer().open()
    assert table.staged_files() == []
    assert plain_ids(table) == table.read_ids() == EPOCH_0


def test_what_a_killed_creation_left_is_no_table_and_no_obstacle(tmp_path: Any, make_table: Callable[..., Any]) -> None:
    table = make_table()
    (table.location / "_laketier_manifests" / "table.json").unlink()
    with pytest.raises(LaketierError, match="no table"):
        _ = table.info
    table.create()
    table.round(0)
    assert table.read_ids() == EPOCH_0
    maintenance = table.storage.maintenance(table.info)
    left = maintenance.orphans(2**62)
    assert {Path(file.path).name for file in left} == {"00000000000000000000.json", "head.json"}
    assert maintenance.remove_orphans(left) == left
    assert maintenance.orphans(2**62) == []
    assert table.read_ids() == EPOCH_0


def test_a_lost_head_file_costs_a_listing_and_nothing_else(table: Any) -> None:
    table.round(0)
    for content in (None, b"", b"half a docum"):
        hint = table.log.folder / "head.json"
        hint.unlink() if content is None else hint.write_bytes(content)
        assert table.read_ids() == EPOCH_0
        assert table.round(0).outcome is RoundOutcome.ALREADY_THERE


def test_a_copy_of_the_folder_is_the_table(table: Any, tmp_path: Any) -> None:
    table.round(0)
    table.round(1, mode=WriteMode.OVERWRITE)
    shutil.copytree(table.warehouse, tmp_path / "copy")
    table.warehouse = tmp_path / "copy"
    assert table.read_ids() == EPOCH_1
    assert table.read_ids(snapshot_id=1) == EPOCH_0


def _request() -> Any:
    from laketier.spi import ScanRequest

    return ScanRequest()
