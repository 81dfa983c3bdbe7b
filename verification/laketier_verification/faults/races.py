"""Two live drivers of one pipeline, in two processes:
``python -m laketier_verification.faults races --format delta --races 1000``.

Both stage rows of their own for the same epoch, under the same token, before either may commit. The five ways in which
they then meet:

- *free*: both commit at once.
- *gated*: both have checked the watermark and stand before the commit; then both go on at once.
- *zombie*: one stands there while the other runs its whole round, and goes on after it.
- *overtaken*: the same, and the other publishes the next epoch too before the zombie goes on.
- *fenced*: both commit at once, and one holds a newer lease.

Nobody sleeps: who is to wait reads from a pipe. Who publishes is counted by the drivers' own words, and checked at the
end by what a reader that is not ours finds.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from laketier_verification.faults.asking import Process
from laketier_verification.faults.foreign_read import NAMES, ForeignReader
from laketier_verification.faults.marked import MarkedTable, marks_of

DRIVERS = ("left", "right")
ROWS = {"left": 3, "right": 5}
"""Rows per task; each round has two. Different, so that a mixture can't look like either."""
KINDS = ("free", "gated", "zombie", "overtaken", "fenced")
WON = frozenset({"PUBLISHED", "RECOVERED"})
LOST = frozenset({"ALREADY_THERE", "Fenced", "Stale"})


@dataclass
class Races:
    """What became of all races of a format. Empty ``wrong`` means: as promised."""

    format: str
    races: int = 0
    epochs: int = 0
    seconds: float = 0.0
    kinds: Counter[str] = field(default_factory=Counter)
    wins: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    refused_commits: int = 0
    """Attempts that had passed the check of the watermark, and lost at the commit itself."""
    double_commits: int = 0
    reader: str = ""
    rows_expected: int = 0
    rows_found: int = 0
    left_files: int = 0
    """Files staged by losers that are still on disk."""
    wrong: list[str] = field(default_factory=list)


@dataclass
class _Arena:
    table: MarkedTable
    drivers: dict[str, Process]
    draw: random.Random
    races: Races
    epoch: int = 0
    fence: int = 0
    published: dict[int, list[str]] = field(default_factory=dict)
    losers_files: list[str] = field(default_factory=list)

    def race(self, kind: str) -> None:
        first, second = self.draw.sample(DRIVERS, 2)
        fences = {first: self.fence, second: self.fence}
        if kind == "fenced":
            self.fence += 1
            fences[first] = self.fence
        gated = {name for name in DRIVERS if kind == "gated" or (kind in ("zombie", "overtaken") and name == first)}
        epoch = self.epoch
        for name in DRIVERS:
            self._begin(name, epoch, fences[name], name in gated)
        for name in DRIVERS:
            self._expect(name, "staged")
        if kind in ("zombie", "overtaken"):
            self._send(first)
            self._expect(first, "at")
            self._send(second)
            self._end(second, epoch)
            if kind == "overtaken":
                self._begin(second, epoch + 1, self.fence, False)
                self._expect(second, "staged")
                self._send(second)
                self._end(second, epoch + 1)
            self._send(first)
            self._end(first, epoch)
        else:
            self._send(first, second)
            if kind == "gated":
                for name in DRIVERS:
                    self._expect(name, "at")
                self._send(first, second)
            for name in DRIVERS:
                self._end(name, epoch)
        self.epoch = epoch + (2 if kind == "overtaken" else 1)
        self.races.races += 1
        self.races.kinds[kind] += 1
        for each in range(epoch, self.epoch):
            if len(self.published.get(each, [])) != 1:
                self.races.wrong.append(f"epoch {each} ({kind}) was published by {self.published.get(each, [])}")

    def _begin(self, name: str, epoch: int, fence: int, gated: bool) -> None:
        self.drivers[name].begin("race", epoch=epoch, rows=ROWS[name], fence=fence, gated=gated)

    def _send(self, *names: str) -> None:
        for name in names:
            self.drivers[name].say()

    def _expect(self, name: str, what: str) -> None:
        answer = self.drivers[name].answer()
        assert what in answer, f"{name} answered {answer}"

    def _end(self, name: str, epoch: int) -> None:
        answer = self.drivers[name].answer()
        outcome = answer.get("outcome", f"failed: {answer}")
        self.races.outcomes[outcome] += 1
        self.races.refused_commits += answer.get("passes", 0) - (1 if outcome in WON else 0)
        if outcome in WON:
            self.races.wins[name] += 1
            self.published.setdefault(epoch, []).append(name)
            return
        self.losers_files += answer.get("files", [])
        if outcome not in LOST:
            self.races.wrong.append(f"epoch {epoch}: {name} ended with {outcome}")


def run(format: str, races: int, warehouse: Path, seed: int = 0) -> Races:
    """Run the races on a new table below ``warehouse``, and look at what is left."""
    started = time.monotonic()
    table = MarkedTable(format, str(warehouse)).create(partitioned=True)
    drivers = {name: Process("laketier_verification.faults.driver", format, str(warehouse), name) for name in DRIVERS}
    arena = _Arena(table, drivers, random.Random(seed), Races(format))
    try:
        for number in range(races):
            arena.race(_kind(number))
    finally:
        for driver in drivers.values():
            driver.stop()
    _check(arena)
    arena.races.epochs = arena.epoch
    arena.races.seconds = round(time.monotonic() - started, 1)
    return arena.races


def _kind(number: int) -> str:
    """Of ten: four free, five with a pause between check and commit, one with different leases."""
    return ("free", "gated", "free", "zombie", "free", "overtaken", "fenced", "gated", "free", "zombie")[number % 10]


def _check(arena: _Arena) -> None:
    """The table, as someone else reads it, holds each epoch once, by the hand of its winner."""
    races, table = arena.races, arena.table
    location = table.location
    expected = Counter({(epoch, name): 2 * ROWS[name] for epoch, names in arena.published.items() for name in names})
    reader = ForeignReader(table.format, table.warehouse, str(location))
    try:
        rows = reader.read()
    finally:
        reader.close()
    races.reader, races.rows_expected, races.rows_found = NAMES[table.format], expected.total(), rows.num_rows
    found = marks_of(rows)
    by_epoch = Counter(epoch for epoch, _ in found)
    races.double_commits = sum(1 for count in by_epoch.values() if count > 1)
    if found != expected:
        races.wrong.append(
            f"lost {dict(list((expected - found).items())[:5])}, more {dict(list((found - expected).items())[:5])}"
        )
    if table.marks() != expected:
        races.wrong.append("our own reader sees something else")
    races.left_files = sum(1 for path in arena.losers_files if (location / path).exists())
    if races.left_files:
        races.wrong.append(f"{races.left_files} files of losers were left")


def report(races: Races) -> str:
    wins = ", ".join(f"{name} {races.wins[name]}" for name in DRIVERS)
    outcomes = ", ".join(f"{name} {count}" for name, count in sorted(races.outcomes.items()))
    kinds = ", ".join(f"{name} {races.kinds[name]}" for name in KINDS)
    return (
        f"{races.format}: {races.races} races ({kinds}) for {races.epochs} epochs in {races.seconds:.0f} s\n"
        f"  wins: {wins}; outcomes: {outcomes}; lost at the commit itself: {races.refused_commits}\n"
        f"  rows by {races.reader}: {races.rows_found} of {races.rows_expected}; double commits: "
        f"{races.double_commits}; files of losers left: {races.left_files}; wrong: {len(races.wrong)}"
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", required=True, choices=sorted(NAMES))
    parser.add_argument("--races", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="where the figures go; artifacts/faults/ by default")


def main(arguments: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="laketier-races-") as folder:
        races = run(arguments.format, arguments.races, Path(folder) / "warehouse", arguments.seed)
    print(report(races))
    for line in races.wrong[:20]:
        print(f"  WRONG: {line}")
    write_json(arguments.json, f"races-{arguments.format}", dict(vars(races)))
    return 1 if races.wrong else 0


def write_json(path: Path | None, name: str, document: dict[str, Any]) -> None:
    """Figures for the record: below artifacts/faults/ of the checkout unless told otherwise."""
    target = path or Path(__file__).resolve().parents[3] / "artifacts" / "faults" / f"{name}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
