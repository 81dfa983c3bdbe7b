"""What one commit costs as a table grows old: the bare protocol, without Spark."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import lakes
from benchmarks.dataset import batch
from benchmarks.measure import folder_bytes, tree_cpu
from benchmarks.report import Section
from laketier.spi import Outcome, Token
from laketier.tiering import TieringRound, write_task

ROWS = 100
WINDOW = 10


def run(formats: list[str], epochs: int, work: Path, say: Callable[[str], None]) -> Section:
    """``epochs`` rounds of one small file each into one table per format."""
    section = Section(f"Commit time by epoch ({epochs} epochs of {ROWS} rows; median of {WINDOW} around the epoch)")
    for name in formats:
        with TemporaryDirectory(dir=work) as folder:
            section.rows.append(_grow(name, Path(folder), epochs, say))
    section.notes.append("A round: open and decide, stage one file, open, decide and publish. Commit: the last three.")
    return section


def _grow(name: str, folder: Path, epochs: int, say: Callable[[str], None]) -> dict[str, object]:
    factory = lakes.factory(name, folder)
    commits: list[float] = []
    rounds: list[float] = []
    cpu = tree_cpu()
    for epoch in range(epochs):
        if epoch % 100 == 0:
            say(f"{name}: epoch {epoch}")
        started = time.perf_counter()
        tiering = TieringRound(factory, token=Token(pipeline="bench", run="bench", epoch=epoch))
        assert tiering.begin() is Outcome.PROCEED
        message = write_task(factory, [batch(epoch * ROWS, ROWS)])
        staged = time.perf_counter()
        tiering.commit_messages([message])
        commits.append(time.perf_counter() - staged)
        rounds.append(time.perf_counter() - started)
    cpu = tree_cpu() - cpu
    lakes.expect_rows(name, folder, epochs * ROWS)
    early, late = _around(commits, min(10, epochs - 1)), _around(commits, epochs - 1)
    return {
        "format": name,
        "commit ms at 10": round(early * 1000, 1),
        f"commit ms at {epochs}": round(late * 1000, 1),
        "slope": round(late / early, 2),
        "slowest ms": round(max(commits[1:]) * 1000, 1),
        "round ms at 10": round(_around(rounds, min(10, epochs - 1)) * 1000, 1),
        f"round ms at {epochs}": round(_around(rounds, epochs - 1) * 1000, 1),
        "cpu ms per round": round(cpu / epochs * 1000, 1),
        "MB on disk": round(folder_bytes(folder) / 1e6, 1),
    }


def _around(times: list[float], epoch: int) -> float:
    """The median of the `WINDOW` epochs around ``epoch``, or the last ones."""
    first = max(0, min(epoch - WINDOW // 2, len(times) - WINDOW))
    return statistics.median(times[first : first + WINDOW])
