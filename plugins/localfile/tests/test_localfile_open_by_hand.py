"""Open files of a pipeline that does not come back: listed, finished by hand, and what its process does if it wakes."""

from __future__ import annotations

import errno
import itertools
import os
import signal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from conftest import SCHEMA

from laketier.cli.app import exit_code
from laketier.spi import Conflict, CorruptTable, Token
from laketier.tiering import TieringRound
from laketier_localfile import growing

FORMATS = ("json", "csv", "arrow")


def rows_of(epoch: int, count: int = 4) -> pa.RecordBatch:
    return pa.record_batch([[epoch * 1000 + i for i in range(count)], ["r"] * count], schema=SCHEMA)


def ids_of(*epochs: int) -> list[int]:
    return [epoch * 1000 + i for epoch in epochs for i in range(4)]


def maintenance(table: Any) -> Any:
    return table.storage.maintenance(table.info)


def others_see(table: Any, ids: list[int]) -> None:
    found = table.read_by_others()
    assert found
    for reader, seen in found.items():
        assert seen == ids, reader


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_file_is_listed_and_finished_by_hand(open_table: Any, file_format: str) -> None:
    table = open_table(file_format)
    lost, other = table.writer(), table.writer(**{"lake.pipeline": "q"})
    for epoch in range(3):
        lost.write(epoch, [rows_of(epoch)])
    other.write(0, [rows_of(7)])
    left, kept = maintenance(table).open_files()
    assert (left.pipeline, left.rows, left.epoch, kept.pipeline) == ("p", 12, 2, "q")
    assert left.began_at <= left.committed_at
    (staged,) = [path for path in table.staged_files() if Path(left.path).name in path.name]
    assert staged.stat().st_size == left.bytes
    before = table.committer().open()
    assert maintenance(table).finish_open_files(["p"]) == []
    after = table.committer().open()
    assert maintenance(table).open_files() == [kept], "another pipeline's file stays as it was"
    assert after.head.watermarks == before.head.watermarks
    others_see(table, ids_of(0, 1, 2))
    assert table.read_ids() == ids_of(0, 1, 2, 7)
    assert table.read_ids(snapshot_id=2) == ids_of(0, 1)
    assert table.changed_ids(1, after.head.number + 1) == ids_of(0, 1, 2, 7)
    assert maintenance(table).finish_open_files(["p"]) == []
    assert table.committer().open().head.number == after.head.number, "nothing to do is no commit"
    other.close()
    others_see(table, ids_of(0, 1, 2, 7))


@pytest.mark.parametrize("file_format", FORMATS)
def test_who_lives_writes_its_next_epoch_into_another_file(open_table: Any, file_format: str) -> None:
    table = open_table(file_format)
    with table.writer() as writer:
        writer.write(0, [rows_of(0)])
        assert maintenance(table).finish_open_files(["p"]) == []
        writer.write(1, [rows_of(1)])
        (file,) = maintenance(table).open_files()
        assert file.rows == 4
        assert maintenance(table).finish_open_files(["p"]) == []
        assert writer.finish_due() is None, "its files are gone, and nothing is due of them"
    others_see(table, ids_of(0, 1))
    assert len(table.plain_files()) == 2
    assert table.staged_files() == []


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize(
    ("point", "is_refused"),
    [
        ("round.opened", False),
        ("open.after_append", True),
        ("publish.before_manifest", True),
    ],
)
def test_a_frozen_process_that_wakes_up(
    open_table: Any, tmp_path: Path, file_format: str, point: str, is_refused: bool
) -> None:
    """SIGSTOP in its third epoch, SIGCONT after its file was finished: refused, or the rows go into another file."""
    table = open_table(file_format)
    table.create()
    flag = tmp_path / "paused"
    child = table.open_child(f"{point}=pause({flag})@3", 0, 1, 2)
    assert [child.answer(), child.answer()] == ["PUBLISHED 0", "PUBLISHED 1"]
    while not flag.exists():
        assert Path(f"/proc/{child.pid}").exists()
    os.kill(child.pid, signal.SIGSTOP)
    flag.unlink()
    assert maintenance(table).finish_open_files(["p"]) == []
    others_see(table, ids_of(0, 1))
    os.kill(child.pid, signal.SIGCONT)
    code, (said,) = child.join()
    assert code == 0
    if is_refused:
        assert "Overtaken" in said
        assert table.read_ids() == ids_of(0, 1)
    else:
        assert said == "PUBLISHED 2"
        assert table.read_ids() == ids_of(0, 1, 2)
    with table.writer() as writer:
        for epoch in range(writer.next_epoch, 4):
            writer.write(epoch, [rows_of(epoch)])
    others_see(table, ids_of(0, 1, 2, 3))
    assert table.staged_files() == []


def test_a_commit_that_comes_between_is_tried_over(open_table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of the tries that lost are gone."""
    table = open_table("json")
    table.writer().write(0, [rows_of(0)])
    finish, commits, tries = growing.finish_open, itertools.count(), [0]

    def overtaken(*given: Any) -> Any:
        done = finish(*given)
        tries[0] += 1
        if tries[0] < limit:
            TieringRound(table.factory, token=Token("other", "run", next(commits))).commit([])
        return done

    monkeypatch.setattr("laketier_localfile.folding.finish_open", overtaken)
    limit = 4
    assert maintenance(table).finish_open_files(["p"]) == []
    assert tries[0] == 4
    assert len(table.plain_files()) == 1
    assert table.staged_files() == []
    table.writer(**{"lake.pipeline": "q"}).write(0, [rows_of(1)])
    limit = 1 << 30
    with pytest.raises(Conflict):
        maintenance(table).finish_open_files(["q"])
    assert len(table.staged_files()) == 1
    assert table.read_ids() == ids_of(0, 1)


def test_what_was_harmed_is_refused_by_hand_too(open_table: Any) -> None:
    table = open_table("json")
    table.writer().write(0, [rows_of(0)])
    (path,) = table.staged_files()
    data = path.read_bytes()
    path.write_bytes(data.replace(b"1", b"7"))
    with pytest.raises(CorruptTable, match="an open data file is not as it was recorded") as told:
        maintenance(table).finish_open_files(["p"])
    assert exit_code(told.value) == 2, "as all damage, also where it is a round that is refused"
    path.write_bytes(data[:5])
    with pytest.raises(CorruptTable, match=r"and \d+ were recorded"):
        maintenance(table).finish_open_files(["p"])
    path.write_bytes(data)
    assert maintenance(table).finish_open_files(["p"]) == []
    others_see(table, ids_of(0))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_what_a_full_disk_can_not_copy_is_told(open_table: Any, full_disk: Any, number: int) -> None:
    table = open_table("json")
    table.writer().write(0, [rows_of(0)])
    before = table.log.head()[0].number
    with full_disk(number):
        (left,) = maintenance(table).finish_open_files(["p"])
        assert left.rows == 4
        assert table.log.head()[0].number == before, "nothing was finished, so nothing is published"
    assert maintenance(table).finish_open_files(["p"]) == []
    others_see(table, ids_of(0))
