"""The ledger under kills, races and damage: every file taken once, in one order for all drivers."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from laketier.connectors.files import ledger as ledger_module
from laketier.connectors.files.files import Files
from laketier.connectors.files.ledger import Ledger
from laketier.connectors.files.segment import LedgerCheckpoint
from laketier.kit.failpoints import VARIABLE, observed
from laketier.spi import CorruptTable, TableNotFound
from landing import JSON, all_of, ids, land, log_of, opened

SUPPORT = Path(__file__).parents[2] / "support"
FILES = 1000


@pytest.fixture
def zone(tmp_path: Path) -> Path:
    (tmp_path / "zone" / "t").mkdir(parents=True)
    return tmp_path / "zone"


@contextmanager
def driver(zone: Path, *stop: Path, **environment: str) -> Iterator[subprocess.Popen[str]]:
    settings = {"SEGMENTS_PER_CHECKPOINT": "256", "PYTHONPATH": str(SUPPORT), **environment}
    command = [sys.executable, str(SUPPORT / "landing_driver.py"), str(zone), *map(str, stop)]
    with subprocess.Popen(command, env={**os.environ, **settings}, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def killed(zone: Path, **environment: str) -> None:
    with driver(zone, **environment) as process:
        assert process.wait(60) == -signal.SIGKILL


def segments(zone: Path) -> list[Path]:
    return sorted((zone / "_laketier" / "ledger" / "t" / "segments").glob("[!.]*"))


def taken(zone: Path) -> list[str]:
    """The files by ordinal, straight from the segments."""
    return [path for segment in segments(zone) for path in json.loads(segment.read_bytes())["files"]["path"]]


def test_two_drivers_agree_while_files_land(zone: Path, tmp_path: Path) -> None:
    stop = tmp_path / "stop"
    with driver(zone, stop) as one, driver(zone, stop) as other:
        drivers = (one, other)
        assert [process.stdout.readline() for process in drivers] == ["0\n"] * 2, "both are at work"
        for number in range(FILES):
            land(zone, f"{number:04d}.json", number)
        stop.touch()
        told = [[int(line) for line in process.stdout] for process in drivers]
        for process in drivers:
            process.wait(60)
    assert [process.returncode for process in drivers] == [0, 0]
    assert all(counts == sorted(counts) and counts[-1] == FILES for counts in told)
    assert len(segments(zone)) > 1, "they discovered while files landed"
    order = taken(zone)
    assert sorted(order) == [f"{number:04d}.json" for number in range(FILES)], "every file once"
    assert ids(log_of(zone)) == [int(name[:4]) for name in order]


@pytest.mark.parametrize("point", ["ledger.before_segment", "before", "after", "ledger.after_segment"])
def test_a_killed_driver_loses_nothing_and_doubles_nothing(zone: Path, point: str) -> None:
    land(zone, "a.json", 1, at=10)
    before = log_of(zone)
    wanted = all_of(before)
    land(zone, "b.json", 2, at=20)
    killed(zone, **({VARIABLE: f"{point}=kill"} if "." in point else {"KILL_AT_LINK": point}))
    assert len(taken(zone)) == (2 if "after" in point else 1)
    land(zone, "c.json", 3, at=30)
    after = log_of(zone)
    assert ids(after) == [1, 2, 3]
    assert before.bounds() == after.bounds()
    assert taken(zone) == ["a.json", "b.json", "c.json"]
    assert ids(before, wanted) == [1]


def test_a_driver_killed_before_the_ledger_was_made(zone: Path) -> None:
    land(zone, "a.json", 1)
    killed(zone, **{VARIABLE: "ledger.made_folders=kill"})
    assert ids(log_of(zone)) == [1]


def test_a_driver_killed_before_a_checkpoint(zone: Path) -> None:
    for number in range(2):
        land(zone, f"{number}.json", number, at=number + 1)
        log_of(zone).bounds()
    land(zone, "2.json", 2, at=3)
    killed(zone, **{VARIABLE: "ledger.before_checkpoint=kill", "SEGMENTS_PER_CHECKPOINT": "3"})
    assert taken(zone) == ["0.json", "1.json", "2.json"]
    assert ids(log_of(zone)) == [0, 1, 2]


def test_who_is_overtaken_takes_what_is_left(zone: Path) -> None:
    land(zone, "a.json", 1, at=10)
    slow, quick = log_of(zone), log_of(zone)

    def overtake(point: str) -> None:
        if point == "ledger.before_segment" and not segments(zone):
            land(zone, "b.json", 2, at=5)
            quick.bounds()

    with observed(_once(overtake)):
        assert slow.bounds()["files"].latest == 2
    assert taken(zone) == ["b.json", "a.json"]
    assert slow.bounds() == quick.bounds()


def test_two_threads_of_one_source_take_each_file_once(zone: Path) -> None:
    land(zone, "a.json", 1)
    source = opened(zone)
    slow, quick = source.open("t", JSON), source.open("t", JSON)
    new_of = slow._new_of  # type: ignore[attr-defined]

    def overtaken(*listed: Any) -> Files:
        assert quick.bounds()["files"].latest == 1
        files: Files = new_of(*listed)
        return files

    slow._new_of = overtaken  # type: ignore[attr-defined]
    assert slow.bounds()["files"].latest == 1
    assert taken(zone) == ["a.json"]


def _once(act: Callable[[str], None]) -> Callable[[str], None]:
    busy = []

    def observer(point: str) -> None:
        if not busy:
            busy.append(1)
            act(point)
            busy.clear()

    return observer


def test_a_new_process_reads_a_checkpoint_and_few_segments(zone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_module, "SEGMENTS_PER_CHECKPOINT", 4)
    log = log_of(zone)
    for number in range(14):
        land(zone, f"{number:02d}.json", number)
        log.bounds()
    folder = zone / "_laketier" / "ledger" / "t"
    checkpoints = sorted((folder / "checkpoints").iterdir())
    assert [int(path.stem) for path in checkpoints] == [8, 12], "the newest two stay"
    for path in segments(zone)[:11]:
        path.unlink()  # so that reading them would be noticed
    assert ids(log_of(zone)) == list(range(14))


def test_a_damaged_checkpoint_is_told_and_not_needed(
    zone: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(ledger_module, "SEGMENTS_PER_CHECKPOINT", 2)
    log = log_of(zone)
    for number in range(4):
        land(zone, f"{number}.json", number, at=number + 1)
        log.bounds()
    for path in (zone / "_laketier" / "ledger" / "t" / "checkpoints").iterdir():
        path.write_bytes(path.read_bytes()[:-1])
    assert ids(log_of(zone)) == [0, 1, 2, 3]
    assert sum("checkpoint" in record.message for record in caplog.records) >= 1


def test_a_checkpoint_of_another_history_is_not_used(zone: Path, caplog: pytest.LogCaptureFixture) -> None:
    land(zone, "a.json", 1)
    log_of(zone).bounds()
    folder = zone / "_laketier" / "ledger" / "t"
    ledger_id = json.loads((folder / "ledger.json").read_bytes())["id"]
    foreign = LedgerCheckpoint(ledger_id, "sha256:0", 0, Files.of(["x.json", "y.json"], [1, 1], [1, 1]))
    (folder / "checkpoints" / f"{2:020d}.arrow").write_bytes(foreign.encode())
    assert ids(log_of(zone)) == [1]
    assert sum("does not fit" in record.message for record in caplog.records) >= 1


def test_what_bounds_tells_is_durable_whoever_wrote_it(zone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver that was killed may not have synced the name that another one goes on from."""
    synced: list[str] = []
    fsync = os.fsync

    def noting(descriptor: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noting)
    land(zone, "a.json", 1)
    log_of(zone).bounds()
    folder = str(segments(zone)[0].parent)
    assert any(path.startswith(f"{folder}/.") for path in synced), "the segment, under its first name"
    assert folder in synced
    synced.clear()
    log_of(zone).bounds()
    assert folder in synced


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text[:-5], "can't be read"),
        (lambda text: text.replace('"version":1', '"version":2'), "version 2"),
        (lambda text: text.replace("a.json", "x.json"), "chain"),
        (lambda text: text.replace('"size":[10]', '"size":[]'), "different length"),
    ],
)
def test_a_damaged_segment_stops_everything(zone: Path, change: Callable[[str], str], said: str) -> None:
    for name in ("a.json", "b.json"):
        land(zone, name, 1)
        log_of(zone).bounds()
    first = segments(zone)[0]
    text = first.read_text()
    assert change(text) != text
    first.write_text(change(text))
    with pytest.raises(CorruptTable, match=said):
        log_of(zone).bounds()


def test_a_ledger_that_was_removed_is_told_and_a_new_one_is_another_table(zone: Path) -> None:
    land(zone, "a.json", 1)
    log = log_of(zone)
    wanted = all_of(log)
    shutil.rmtree(zone / "_laketier")
    with pytest.raises(TableNotFound, match="recreated"):
        log.bounds()
    again = log_of(zone)
    assert again.table.table_id != log.table.table_id
    with pytest.raises(CorruptTable, match="holds 0 files, and the range ends at 1"):
        again.plan(wanted)
    with pytest.raises(TableNotFound, match="recreated"):
        log.bounds()


def test_one_ledger_used_by_many_threads(tmp_path: Path) -> None:
    one = Ledger.open(tmp_path / "l", path="p", table="t")
    other = Ledger.open(tmp_path / "l", path="p", table="t")

    def take(number: int) -> None:
        mine = (one, other)[number % 2]
        while not mine.append(Files.of([str(number)], [1], [1]), after=len(mine)):
            mine.refresh()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(take, range(40)))
    one.refresh()
    other.refresh()
    assert one.files.paths == other.files.paths
    assert sorted(map(int, one.files.paths.to_pylist())) == list(range(40))
