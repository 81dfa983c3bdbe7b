"""A soak: ``python -m laketier_verification.faults.soak --format delta --epochs 10000``.

A driver commits epoch after epoch and is killed at random moments; others append, compact and expire, orphans are
collected, and a reader that is not ours looks at the table all the time. The folder given by ``--work`` holds all of
it, so the same command goes on where the last one ended.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console
from rich.live import Live
from rich.table import Table

from laketier.maintenance.orphans import collect_orphans
from laketier_verification.faults.foreign_read import NAMES, ForeignReader
from laketier_verification.faults.housekeeping import Foreigner, create_for
from laketier_verification.faults.marked import MarkedTable, marks_of
from laketier_verification.faults.progress import Progress
from laketier_verification.faults.soak_driver import OPTIONS, ROWS

_LOOK_SECONDS = 1.0
_GRACE = timedelta(seconds=30)
_PROPERTIES = {
    "delta": {"delta.logRetentionDuration": "interval 1 minutes"},
    "iceberg": {"history.expire.max-snapshot-age-ms": "10000", "history.expire.min-snapshots-to-keep": "20"},
}
"""A Delta log that is cleaned up in no time at all is gone while a round reads it. Iceberg keeps its snapshots for five
days otherwise, and lists them all in each metadata file."""
_RECENT = 50
"""Epochs that a look reads: those behind are read once, at the end."""


@dataclass
class Soak:
    """What happened so far; kept in ``soak.json``."""

    format: str
    seed: int
    epochs: int = 0
    kills: int = 0
    theirs: int = 0
    compactions: int = 0
    collections: int = 0
    orphans: int = 0
    looks: int = 0
    seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)

    def save(self, folder: Path) -> None:
        """Write it down."""
        (folder / "soak.json").write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path, format: str, seed: int) -> Soak:
        """Go on, or begin."""
        path = folder / "soak.json"
        return cls(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else cls(format, seed)


class Others:
    """Everybody but the driver, in turn: foreign writers, maintenance, and the reader."""

    def __init__(self, soak: Soak, table: MarkedTable, foreigner: Foreigner, progress: Progress) -> None:
        self._soak = soak
        self._table = table
        self._foreigner = foreigner
        self._progress = progress
        self._is_owed = False
        self._reader = ForeignReader(table.format, table.warehouse, str(table.location))

    def work(self, epochs: int) -> None:
        """What is due at this number of epochs. A conflict with the driver is what others have to live with."""
        soak = self._soak
        if soak.theirs < epochs // 50:
            self._try("append", lambda: self._foreigner.append(soak.theirs))
            soak.theirs += 1
        if soak.compactions < epochs // 500:
            self._is_owed = not self._compact()
            soak.compactions += 1
        if soak.collections < epochs // 250:
            collected = collect_orphans(self._table.storage, self._table.info, grace=_GRACE)
            soak.orphans += len(collected.removed)
            soak.collections += 1

    def catch_up(self) -> None:
        """While no driver is at work: the compaction that lost against one that commits ten times a second."""
        if self._is_owed:
            self._is_owed = not self._compact()

    def look(self) -> None:
        """Whole epochs, all of the acknowledged among the recent, each row once."""
        acknowledged = self._progress.next_epoch
        if not acknowledged:
            return  # plain files have no schema before the first
        since = max(0, acknowledged - _RECENT)
        try:
            marks = marks_of(self._reader.read(since))
        except FileNotFoundError:
            return  # plain files are read without a snapshot: one was compacted or moved in mid-look
        except AssertionError as error:
            self._soak.wrong.append(str(error))
            return
        self._soak.looks += 1
        ours = {epoch: rows for (epoch, driver), rows in marks.items() if driver == "ours" and epoch >= since}
        newest = max(ours, default=-1)
        torn = {e: n for e, n in ours.items() if n != ROWS and not (self._table.format == "localfile" and e == newest)}
        lost = [epoch for epoch in range(since, acknowledged) if epoch not in ours]
        if torn or lost:
            self._soak.wrong.append(f"at {acknowledged} epochs: torn {torn}, lost {lost}")

    def close(self) -> None:
        """Let go of the table."""
        self._reader.close()
        self._foreigner.close()

    def _compact(self) -> bool:
        return self._try("compact", self._foreigner.compact) and self._try(
            "expire", lambda: self._foreigner.expire(100)
        )

    def _try(self, what: str, work: Any) -> bool:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - theirs may lose a race; ours may not lose rows
            print(f"their {what}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
            return False
        return True


def run(format: str, epochs: int, folder: Path, seed: int, kill_every: int) -> Soak:
    """Go on to ``epochs`` epochs."""
    folder.mkdir(parents=True, exist_ok=True)
    soak = Soak.load(folder, format, seed)
    draw = random.Random(f"{soak.seed}-{soak.kills}")
    table, foreigner = create_for(format, str(folder / "warehouse"), **_PROPERTIES.get(format, {}))
    table = MarkedTable(format, table.warehouse, OPTIONS.get(format, {}))
    progress = Progress(folder / "progress")
    others = Others(soak, table, foreigner, progress)
    started = time.monotonic()
    before = soak.seconds
    console = Console(stderr=True)
    with Live(console=console, refresh_per_second=2, transient=True) as live:
        while (done := progress.next_epoch) < epochs:
            driver = _driver(folder, format, epochs)
            try:
                _until_killed(driver, soak, others, progress, done + draw.randrange(1, 2 * kill_every), live, folder)
                time.sleep(draw.random() * 0.05)
            finally:
                driver.kill()
                driver.wait()
            if driver.returncode > 0:
                soak.wrong.append(f"the driver ended with {driver.returncode} at epoch {progress.next_epoch}")
                break
            soak.kills += driver.returncode < 0
            others.catch_up()
            soak.epochs, soak.seconds = progress.next_epoch, before + time.monotonic() - started
            soak.save(folder)
            if not console.is_terminal:
                console.print(f"{format}: {soak.epochs} epochs, {soak.kills} kills, {soak.looks} looks")
    _check(soak, table, progress)
    others.close()
    soak.save(folder)
    return soak


def _until_killed(
    driver: subprocess.Popen[bytes],
    soak: Soak,
    others: Others,
    progress: Progress,
    until: int,
    live: Live,
    folder: Path,
) -> None:
    """Everybody works until the driver has got to ``until`` epochs, or ended."""
    looked = 0.0
    while driver.poll() is None and (epochs := progress.next_epoch) < until:
        others.work(epochs)
        if time.monotonic() - looked > _LOOK_SECONDS:
            others.look()
            looked = time.monotonic()
            live.update(_view(soak, epochs, driver.pid, folder))
        time.sleep(0.02)


def _driver(folder: Path, format: str, epochs: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "laketier_verification.faults.soak_driver", str(folder), format, str(epochs)]
    return subprocess.Popen(command)


def _check(soak: Soak, table: MarkedTable, progress: Progress) -> None:
    """The whole table, at the end."""
    try:
        marks = marks_of(table.read())
    except AssertionError as error:
        soak.wrong.append(str(error))
        return
    expected = Counter({(epoch, "ours"): ROWS for epoch in range(progress.next_epoch)})
    found = Counter({key: rows for key, rows in marks.items() if key[1] == "ours"})
    extra = {key for key in found - expected if key[0] > progress.next_epoch}
    if (expected - found) or extra or any(found[key] > ROWS for key in found):
        soak.wrong.append(f"lost {len(expected - found)} epochs, alien {len(extra)}")


def _view(soak: Soak, epochs: int, process: int, folder: Path) -> Table:
    view = Table(title=f"{soak.format}, seed {soak.seed}")
    for column in ("epochs", "rows", "kills", "theirs", "looks", "memory MB", "open files", "table MB", "wrong"):
        view.add_column(column, justify="right")
    try:
        driver = psutil.Process(process)
        memory, files = driver.memory_info().rss // 2**20, driver.num_fds()
    except psutil.Error:
        memory = files = 0
    size = sum(path.stat().st_size for path in (folder / "warehouse").rglob("*") if path.is_file()) // 2**20
    figures = (epochs, epochs * ROWS, soak.kills, soak.theirs, soak.looks, memory, files, size, len(soak.wrong))
    view.add_row(*map(str, figures))
    return view


def figures(folder: Path) -> dict[str, float]:
    """Medians of the first and the last tenth: commit in ms of wall and of CPU, memory in MB, open files."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    tenth = max(1, len(lines) // 10)
    found = {}
    for name, key, scale in (
        ("commit ms", "commit", 1e3),
        ("commit CPU ms", "cpu", 1e3),
        ("memory MB", "rss", 2**-20),
        ("open files", "files", 1),
    ):
        for when, part in (("first", lines[:tenth]), ("last", lines[-tenth:])):
            found[f"{name}, {when} tenth"] = round(statistics.median(line[key] for line in part) * scale, 1)
    return found


def plot(folder: Path, title: str) -> str:
    """Commit time and memory by epoch, for a terminal or a file."""
    import plotext

    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    step = max(1, len(lines) // 200)
    parts = [lines[i : i + step] for i in range(0, len(lines), step)]
    epochs = [part[0]["epoch"] for part in parts]
    drawn = []
    for label, key, scale in (("commit, ms of CPU (median)", "cpu", 1e3), ("memory of the driver, MB", "rss", 2**-20)):
        plotext.clear_figure()
        plotext.theme("clear")
        plotext.plot_size(100, 16)
        plotext.title(f"{title}: {label}")
        plotext.plot(epochs, [statistics.median(line[key] for line in part) * scale for part in parts])
        plotext.ylim(0, None)
        drawn.append(plotext.uncolorize(plotext.build()))
    return "\n".join(drawn)


def main() -> int:
    """Exit code 1 when anything was lost, doubled or torn."""
    parser = argparse.ArgumentParser(
        prog="python -m laketier_verification.faults.soak",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--format", nargs="+", choices=sorted(NAMES), default=sorted(NAMES))
    parser.add_argument("--epochs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kill-every", type=int, default=200, help="epochs between kills, on average")
    parser.add_argument("--work", type=Path, default=Path("build/soak"))
    arguments = parser.parse_args()
    wrong = False
    for name in arguments.format:
        folder = (arguments.work / name).resolve()
        soak = run(name, arguments.epochs, folder, arguments.seed, arguments.kill_every)
        print(plot(folder, name))
        print(json.dumps(asdict(soak) | figures(folder)))
        wrong = wrong or bool(soak.wrong)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
