"""Several writers, stale writers and zombies: at most one wins, and nothing of the others is ever seen."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from laketier.spi import (
    Conflict,
    LaketierError,
    RolledBack,
    Stale,
    TableChanged,
    TableNotFound,
    Token,
    TokenMismatch,
    Watermark,
    WriteMode,
)
from laketier.tiering import RoundOutcome, TieringRound
from laketier_localfile.conformance import Harness


def test_of_two_writers_with_one_state_the_second_loses_and_shows_nothing(table: Any) -> None:
    first, second = table.committer(), table.committer()
    states = first.open(), second.open()
    winner, loser = table.stage(table.ids(0)), table.stage(table.ids(1))
    first.publish(states[0], [winner], None)
    with pytest.raises(Conflict):
        second.publish(states[1], [loser], None)
    assert table.read_ids() == [0, 1, 2, 3]
    assert len(table.plain_files()) == 1
    second.discard([loser])
    assert table.staged_files() == []
    assert table.read_ids() == [0, 1, 2, 3]


def test_an_empty_epoch_is_a_compare_and_set_too(table: Any) -> None:
    first, second = table.committer(), table.committer()
    states = first.open(), second.open()
    watermark = Watermark(Token("p", "run", 0), "c1")
    assert first.publish(states[0], [], watermark).snapshot_id == 1
    with pytest.raises(Conflict):
        second.publish(states[1], [], Watermark(Token("q", "run", 0), "c2"))
    assert second.open().watermark("p") == watermark.carried_by(1)
    assert second.open().watermark("q") is None


def test_four_processes_with_pipelines_of_their_own_all_land(table: Any) -> None:
    children = [table.child("", 0, 1, 2, pipeline=f"p{i}") for i in range(4)]
    for child in children:
        assert child.join() == (0, ["PUBLISHED 0", "PUBLISHED 1", "PUBLISHED 2"])
    ids = [epoch * 1000 + i for epoch in range(3) for i in range(4)]
    assert table.read_ids() == sorted(ids * 4)
    state = table.committer().open()
    assert state.snapshot_id == 12
    assert [state.watermark(f"p{i}").token.epoch for i in range(4)] == [2, 2, 2, 2]


def test_four_processes_with_one_pipeline_publish_each_epoch_once(table: Any) -> None:
    children = [table.child("", 0, 1, 2) for _ in range(4)]
    said = [line for child in children for line in child.join()[1]]
    allowed = ("PUBLISHED", "DONE", "ALREADY_THERE", "Traceback")
    assert all(line.startswith(allowed) for line in said), said
    assert all("laketier.spi.errors.Stale" in line for line in said if line.startswith("Traceback")), said
    assert sorted(line for line in said if line.startswith("PUBLISHED")) == [f"PUBLISHED {epoch}" for epoch in range(3)]
    assert table.read_ids() == [epoch * 1000 + i for epoch in range(3) for i in range(4)]


def test_eight_processes_create_one_table(tmp_path: Any, make_table: Any) -> None:
    from concurrent.futures import ThreadPoolExecutor

    table = make_table()
    shutil.rmtree(table.location)
    with ThreadPoolExecutor(8) as pool:
        uuids = {info.table_uuid for info in pool.map(lambda _: table.create(), range(16))}
    assert len(uuids) == 1
    manifests = [path for path in (table.location / "_laketier_manifests").iterdir() if path.is_dir()]
    assert [path.name for path in manifests] == list(uuids), "the losers cleaned up"


def test_a_replay_is_a_no_op_whatever_other_pipelines_did_since(table: Any) -> None:
    """Arroyo's Iceberg sink looks at the newest snapshot only, and an interleaved commit hides its own."""
    table.round(0)
    for epoch in range(40):
        table.round(epoch, [], pipeline="other")
    assert table.round(0).outcome is RoundOutcome.ALREADY_THERE
    assert table.read_ids() == [0, 1, 2, 3]
    assert table.staged_files() == []


def test_a_fresh_job_in_the_same_place_is_refused_and_drops_nothing(table: Any) -> None:
    """Arroyo: serial names and a fresh job in the same directory, and new data is silently dropped."""
    table.round(0)
    with pytest.raises(TokenMismatch):
        TieringRound(table.factory, token=Token("p", "another run", 0)).commit([table.stage(table.ids(7))])
    assert table.round(0, table.ids(7), pipeline="q").rows == 4
    assert table.read_ids() == [0, 1, 2, 3, 7000, 7001, 7002, 7003]


def test_an_older_checkpoint_is_refused(table: Any) -> None:
    table.round(0)
    table.round(1)
    with pytest.raises(Stale):
        table.round(0)
    assert len(table.read_ids()) == 8


def test_freed_names_do_not_let_a_paused_writer_in(table: Any) -> None:
    """Tried in research: after manifests 1 to 18 were deleted, a writer paused at 3 linked manifest 4."""
    for epoch in range(3):
        table.round(epoch)
    zombie = table.committer()
    paused, staged = zombie.open(), table.stage(table.ids(99))
    for epoch in range(3, 18):
        table.round(epoch, [])
    for number in range(1, 18):
        table.log.path(number).unlink()
    with pytest.raises(Conflict, match="deleted manifests"):
        zombie.publish(paused, [staged], None)
    assert not table.log.path(4).exists()
    assert table.log.head()[0].number == 18
    assert len(table.plain_files()) == 3


def test_the_freed_name_of_the_newest_manifest_lets_nobody_in_either(table: Any) -> None:
    paused = table.committer()
    state, staged = paused.open(), table.stage(table.ids(9))
    table.round(0)
    table.log.path(1).unlink()
    with pytest.raises(Conflict, match="deleted manifests"):
        paused.publish(state, [staged], None)
    with pytest.raises(RolledBack):
        paused.open()


def test_a_deleted_newest_manifest_is_noticed_by_writers_and_warned_of_to_readers(table: Any, caplog: Any) -> None:
    table.round(0)
    table.round(1)
    Harness().roll_back(table.storage, table.info, 1)
    for epoch in (1, 2):
        with pytest.raises(RolledBack, match=r"manifest 2 is gone"):
            table.round(epoch)
    with pytest.raises(RolledBack, match=r"manifest 2 is gone"):
        table.storage.state(table.info)
    caplog.clear()
    assert table.read_ids() == [0, 1, 2, 3]
    assert "manifest 2 is gone" in caplog.text


def test_a_state_moves_no_file_of_a_commit_that_is_not_finished(table: Any) -> None:
    table.round(0)
    table.child("publish.after_manifest_before_renames=kill", 1).join()
    staged, plain = table.staged_files(), table.plain_files()
    state = table.storage.state(table.info)
    assert (state.snapshot_id, state.watermark("p").token.epoch) == (2, 1)
    assert staged
    assert (table.staged_files(), table.plain_files()) == (staged, plain)
    table.committer().open()
    assert table.staged_files() == []


def test_restored_manifests_that_were_continued_elsewhere_are_noticed(table: Any, tmp_path: Any) -> None:
    table.round(0)
    shutil.copytree(table.log.folder, tmp_path / "backup")
    table.round(1)
    published = (table.log.folder / "head.json").read_bytes()
    shutil.rmtree(table.log.folder)
    shutil.copytree(tmp_path / "backup", table.log.folder)
    table.round(1, table.ids(5))
    (table.log.folder / "head.json").write_bytes(published)
    with pytest.raises(RolledBack, match="not the one that was published"):
        table.round(2)


def test_a_writer_of_a_dropped_table_can_not_write_into_its_successor(table: Any) -> None:
    zombie = table.committer()
    paused, staged = zombie.open(), table.stage(table.ids(0))
    table.storage.catalog().drop_table(table.path)
    table.create()
    with pytest.raises(LaketierError):
        zombie.publish(paused, [staged], None)
    assert table.read_ids() == []
    assert table.log.head()[0].number == 0
    with pytest.raises(TableChanged):
        TieringRound(table.factory, token=None).commit([staged])


def test_a_commit_into_a_dropped_table_is_certainly_lost(table: Any) -> None:
    committer = table.committer()
    state = committer.open()
    table.storage.catalog().drop_table(table.path)
    with pytest.raises(Conflict, match="dropped"):
        committer.publish(state, [], None)
    with pytest.raises(TableNotFound):
        committer.open()


def test_a_schema_change_between_staging_and_publish_is_refused(table: Any) -> None:
    import pyarrow as pa

    from laketier.spi import AddColumn

    staged, committer = table.stage(table.ids(0)), table.committer()
    state = committer.open()
    table.storage.catalog().alter_table(table.path, [AddColumn(pa.field("more", pa.int32()))])
    with pytest.raises(Conflict):
        committer.publish(state, [staged], None)
    with pytest.raises(TableChanged):
        TieringRound(table.factory, token=None).commit([staged])
    assert table.read_ids() == []


def test_discard_keeps_what_the_newest_commit_published(table: Any) -> None:
    """Spark calls abort with every message after a commit whose answer was lost."""
    assert table.child("publish.after_manifest_before_renames=kill", 0).join() == (-9, [])
    head, _ = table.log.head()
    from laketier.spi import StagedFile, WriteResult
    from laketier_localfile.layout import attempt_of, staged_path

    table.committer().discard(
        [
            WriteResult.of(table.info, attempt_of(e.path), (StagedFile(staged_path(e.path), e.rows, e.bytes),))
            for e in head.added
        ]
    )
    assert table.read_ids() == [0, 1, 2, 3]


def test_landed_finds_a_commit_behind_any_number_of_others(table: Any) -> None:
    committer = table.committer(commit_id="needle")
    committer.publish(committer.open(), [], None)
    for epoch in range(70):
        table.round(epoch, [])
    state = committer.open()
    assert state.landed("needle")
    assert not state.landed("another")


def test_watermarks_of_other_pipelines_survive_an_overwrite(table: Any) -> None:
    table.round(0)
    table.round(0, table.ids(3), pipeline="q", mode=WriteMode.OVERWRITE)
    assert table.read_ids() == [3000, 3001, 3002, 3003]
    assert table.round(0).outcome is RoundOutcome.ALREADY_THERE
    assert table.committer().open().watermark("p").snapshot_id == 1
