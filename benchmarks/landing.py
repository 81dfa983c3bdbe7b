"""``python -m benchmarks.landing``: how long it takes to discover the files of a landing zone, and what that writes."""

from __future__ import annotations

import argparse
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from benchmarks.report import Section, show
from laketier.registry import OpenSource, open_log_source
from laketier.spi import LogOffsets, LogRange, TableLog

READ = {"format": "json", "columns.id": "int64"}


def run(files: int, new: int, work: Path) -> Section:
    zone = work / "landing"
    shutil.rmtree(zone, ignore_errors=True)
    (zone / "t").mkdir(parents=True)
    _land(zone, 0, files)
    section = Section(f"Discovery: {files:,} files of 9 bytes on a local disk")

    def row(case: str, act: Callable[[], object]) -> None:
        before = _size(zone)
        began = time.perf_counter(), time.process_time()
        act()
        wall, cpu = time.perf_counter() - began[0], time.process_time() - began[1]
        written = _size(zone) - before
        section.rows.append({"case": case, "wall_s": round(wall, 3), "cpu_s": round(cpu, 3), "bytes": written})

    log = _open(zone)
    row("first bounds()", log.bounds)
    row("next, nothing new", log.bounds)
    _land(zone, files, new)
    row(f"next, {new} new files", log.bounds)
    other = _open(zone)
    row("first of a new process", other.bounds)
    end = other.bounds()["files"].latest
    row(f"plan of the {new}", lambda: other.plan(_range(end - new, end)))
    row("plan of all", lambda: other.plan(_range(0, end)))
    whole = _range(0, end)
    text = whole.start.to_text() + whole.end.to_text()
    section.notes.append(f"The range in an epoch's record: {len(text)} bytes.")
    shutil.rmtree(zone)
    return section


def _open(zone: Path) -> TableLog:
    source: OpenSource = open_log_source("files", {"path": str(zone)}, name="drop", origin="benchmark")
    return source.open("t", READ)


def _range(start: int, end: int) -> LogRange:
    return LogRange(LogOffsets({"files": start}), LogOffsets({"files": end}))


def _land(zone: Path, first: int, count: int) -> None:
    for number in range(first, first + count):
        (zone / "t" / f"part-{number:08d}.json").write_bytes(b'{"id": 1}')


def _size(zone: Path) -> int:
    """Of the ledger."""
    return sum(path.stat().st_size for path in (zone / "_laketier").rglob("*") if path.is_file())


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.landing", description=__doc__)
    parser.add_argument("--files", type=int, default=100_000, help="files at the start (100,000)")
    parser.add_argument("--new", type=int, default=10, help="files that land later (10)")
    parser.add_argument("--work", type=Path, default=Path("build/bench"), help="where they are made (build/bench)")
    arguments = parser.parse_args()
    show(run(arguments.files, arguments.new, arguments.work.resolve()), Console())


if __name__ == "__main__":
    main()
