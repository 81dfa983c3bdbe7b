"""Processes that write epochs and are killed or frozen at any moment: others count the rows."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from laketier.kit.manifests import files_at

FOLD = 3
DRAWN = os.environ.get("LAKETIER_KILLS_SEED", "20261123")


class _Signal:
    """Sends a signal to a process after a moment, which no step of it is tied to."""

    def __init__(self, pid: int, number: int, seconds: float) -> None:
        self._timer = threading.Timer(seconds, os.kill, (pid, number))
        self._timer.start()

    def wait(self) -> None:
        self._timer.join()


Begin = Callable[[Any, range], Any]
"""Starts a process that writes these epochs."""


def folding(table: Any, epochs: range) -> Any:
    return table.child("", *epochs, fold_files=FOLD)


def growing(table: Any, epochs: range) -> Any:
    return table.open_child("", *epochs)


def run(
    table: Any,
    rounds: int,
    begin: Begin = folding,
    *,
    spread: float = 0.02,
    most: int = 6,
    ahead: int = 40,
    seed: str = DRAWN,
) -> None:
    """``spread``: seconds within which a signal comes, after up to ``most`` epochs. ``ahead``: how many a process would
    write that nobody stops. Prints what was done, for ``pytest -rP``."""
    frozen: list[Any] = []
    try:
        done = _turns(table, rounds, frozen, begin, spread, most, ahead, seed)
        rows, readers = len(table.read_ids()), ", ".join(table.read_by_others())
        print(f"{done[signal.SIGKILL]} killed, {done[signal.SIGSTOP]} frozen, {done[signal.SIGCONT]} of them woken up;")
        print(f"{rows // 4} epochs, {rows} rows, by laketier and {readers}: 0 lost, 0 doubled, 0 torn")
    finally:
        for sleeper in frozen:
            os.kill(sleeper.pid, signal.SIGKILL)
            sleeper.join()


def _turns(
    table: Any, rounds: int, frozen: list[Any], begin: Begin, spread: float, most: int, ahead: int, seed: str
) -> Counter[int]:
    chance = random.Random(seed)
    acknowledged = -1
    done: Counter[int] = Counter()
    for turn in range(rounds):
        what = f"turn {turn}, seed {seed}"
        # A frozen process may have gone further than anybody heard; whoever begins before the newest epoch is refused.
        watermark = table.committer().open().watermark("p")
        acknowledged = max(acknowledged, -1 if watermark is None else watermark.token.epoch - 1)
        child = begin(table, range(acknowledged + 1, acknowledged + ahead))
        for _ in range(chance.randint(1, most)):
            said = child.answer()
            assert said is not None, what
            assert said.split()[0] in ("DONE", "PUBLISHED", "ALREADY_THERE"), f"{what}: {said}"
            acknowledged = int(said.split()[1])
        freeze = chance.random() < 0.15
        shot = _Signal(child.pid, signal.SIGSTOP if freeze else signal.SIGKILL, chance.random() * spread)
        shot.wait()
        done[signal.SIGSTOP if freeze else signal.SIGKILL] += 1
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
            done[signal.SIGCONT] += 1
            code, words = sleeper.join()
            assert code == 0, f"{what}: {words}"
            landed = [
                int(word.split()[1]) for word in words if word.split()[0] in ("DONE", "PUBLISHED", "ALREADY_THERE")
            ]
            acknowledged = max([acknowledged, *landed])
        _judge(table, acknowledged, what)
    _judge(table, acknowledged, "the end")
    return done


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
    head, _ = table.log.head()
    finished = [entry.path for entry in files_at(table.log, head.number) if not entry.is_open]
    assert sorted(str(path.relative_to(table.location)) for path in table.plain_files()) == sorted(finished), what
    if not finished:
        return
    others = table.read_by_others()
    assert others, "nobody else can read the files"
    open_rows = sum(entry.rows for entry in head.open_files)
    for reader, ids in others.items():
        assert len(ids) == len(set(ids)) == len(found) - open_rows, f"{what}, {reader}"
        assert set(ids) <= set(found), f"{what}, {reader}"
