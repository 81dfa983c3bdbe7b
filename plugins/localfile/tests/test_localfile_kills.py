"""Small epochs and their folds, with processes that are killed or frozen at any moment: others count the rows."""

from __future__ import annotations

import os
import random
import signal
import threading
from typing import Any

import pytest

from laketier.kit.manifests import files_at
from laketier_localfile.options import FileFormatName, LocalFileOptions
from laketier_localfile.plugin import LocalFilePlugin

FOLD = 3
DRAWN = os.environ.get("LAKETIER_KILLS_SEED", "20261123")


class _Signal:
    """Sends a signal to a process after a moment, which no step of it is tied to."""

    def __init__(self, pid: int, number: int, seconds: float) -> None:
        self._timer = threading.Timer(seconds, os.kill, (pid, number))
        self._timer.start()

    def wait(self) -> None:
        self._timer.join()


def _run(table: Any, rounds: int) -> None:
    frozen: list[Any] = []
    try:
        _turns(table, rounds, frozen)
    finally:
        for sleeper in frozen:
            os.kill(sleeper.pid, signal.SIGKILL)
            sleeper.join()


def _turns(table: Any, rounds: int, frozen: list[Any]) -> None:
    chance = random.Random(DRAWN)
    table.options = LocalFileOptions(fold_files=FOLD)
    acknowledged = -1
    for turn in range(rounds):
        what = f"turn {turn}, seed {DRAWN}"
        # A frozen process may have gone further than anybody heard; whoever begins before the newest epoch is refused.
        watermark = table.committer().open().watermark("p")
        acknowledged = max(acknowledged, -1 if watermark is None else watermark.token.epoch - 1)
        child = table.child("", *range(acknowledged + 1, acknowledged + 40), fold_files=FOLD)
        for _ in range(chance.randint(1, 6)):
            said = child.answer()
            assert said is not None, what
            assert said.split()[0] in ("DONE", "PUBLISHED", "ALREADY_THERE"), f"{what}: {said}"
            acknowledged = int(said.split()[1])
        freeze = chance.random() < 0.15
        shot = _Signal(child.pid, signal.SIGSTOP if freeze else signal.SIGKILL, chance.random() * 0.02)
        shot.wait()
        if freeze:
            frozen.append(child)
        else:
            code, said_last = child.join()
            assert code == -signal.SIGKILL, f"{what}: {said_last}"
            acknowledged = max([acknowledged, *(int(line.split()[1]) for line in said_last)])
        if frozen and (len(frozen) > 1 or chance.random() < 0.5):
            # It wakes up after its successor went on, and is told so; whatever it was about to do changes nothing.
            sleeper = frozen.pop(0)
            os.kill(sleeper.pid, signal.SIGCONT)
            code, words = sleeper.join()
            assert code == 0, f"{what}: {words}"
            landed = [
                int(word.split()[1]) for word in words if word.split()[0] in ("DONE", "PUBLISHED", "ALREADY_THERE")
            ]
            acknowledged = max([acknowledged, *landed])
        _judge(table, acknowledged, what)
    _judge(table, acknowledged, "the end")
    _judge_files(table)


def _judge(table: Any, acknowledged: int, what: str) -> None:
    """By our reader at once, and by others once somebody has opened the table: 0 lost, 0 doubled, 0 torn."""
    expected = [epoch * 1000 + i for epoch in range(acknowledged + 1) for i in range(4)]
    found = table.read_ids()
    beyond = found[len(expected) :]
    assert found[: len(expected)] == expected, f"{what}: lost or doubled {set(expected) ^ set(found)}"
    # Of a process that is killed, one epoch may have landed that nobody heard of; of one that is frozen, all that it
    # said and nobody read. They are whole, and follow each other.
    further = range(acknowledged + 1, acknowledged + 1 + len(beyond) // 4)
    assert beyond == [epoch * 1000 + i for epoch in further for i in range(4)], f"{what}: beyond {beyond}"
    table.committer().open()
    others = _others(table)
    assert others, "nobody else can read the files"
    for reader, ids in others.items():
        assert ids == found, f"{what}, {reader}"


def _others(table: Any) -> dict[str, list[int]]:
    """The ids that the lines give which people are told to read the table with."""
    found = {}
    for reader, line in LocalFilePlugin().open_with(table.info).items():
        if reader in ("DuckDB", "Polars"):
            names: dict[str, Any] = {}
            *imports, last = line.split("; ")
            exec("; ".join(imports), names)  # noqa: S102 - the line that people are told to run
            rows = eval(last, names)  # noqa: S307
            found[reader] = sorted(row[0] for row in (rows.fetchall() if reader == "DuckDB" else rows.rows()))
    return found


def _judge_files(table: Any) -> None:
    head, _ = table.log.head()
    live = files_at(table.log, head.number)
    assert any(entry.level for entry in live)
    # Each epoch has two files, and the newest may be beyond.
    assert sum(entry.level == 0 for entry in live) <= FOLD + 2
    maintenance = table.storage.maintenance(table.info)
    maintenance.remove_orphans(maintenance.orphans(1 << 60))
    assert table.staged_files() == []
    assert len(table.read_ids()) == sum(entry.rows for entry in live)


def test_killed_and_frozen_at_any_moment(table: Any) -> None:
    _run(table, 12)


@pytest.mark.deep
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("file_format", list(FileFormatName))
def test_killed_and_frozen_200_times_at_any_moment(make_table: Any, file_format: FileFormatName) -> None:
    _run(make_table(options=LocalFileOptions(file_format=file_format)), 200)
