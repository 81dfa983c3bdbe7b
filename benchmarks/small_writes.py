"""``python -m benchmarks.small_writes``: many writes of 1,000 rows, with what is kept of tables and without, beside the
libraries alone, all in one run.

``one-process``: a process that stays makes all writes, each planned anew as a batch of Spark's is, into one table and
into 50. ``new-process``: each write is a process of its own, which imports all that it needs.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

from benchmarks import lakes
from benchmarks.dataset import SCHEMA, batch
from benchmarks.report import Section, show
from laketier.registry import Lake, configure, open_lake
from laketier.tables import prepare_table
from laketier.tables.metadata import forget_process_cache
from laketier.tiering import TieringRound, write_task

ROWS = 1_000
TABLES = (1, 50)
SECTIONS = ("one-process", "new-process")
_AT_A_TIME = 10
_INPUT = """
import pyarrow as pa
rows = pa.ipc.open_stream({rows!r}).read_all()
"""
_OURS = """
import time
began = time.perf_counter()
from laketier.registry import configure, open_lake
from laketier.tables import metadata_cache, prepare_table
from laketier.tiering import TieringRound, write_task
imported = time.perf_counter()
lake = open_lake(configure({values!r}, environment={{}}))
factory = lake.tiering_factory(prepare_table(lake, rows.schema))
planned = time.perf_counter()
message = write_task(factory, rows.to_batches())
staged = time.perf_counter()
TieringRound(factory, token=None).commit_messages([message])
print(imported - began, planned - imported, staged - planned, time.perf_counter() - staged)
metadata_cache().flush()
"""
_THEIRS = {
    "write_deltalake": """
from deltalake import write_deltalake
write_deltalake({folder!r} + "/delta", rows, mode="append")
""",
    "lance.write_dataset": """
import lance
lance.write_dataset(rows, {folder!r} + "/t.lance", mode="append")
""",
    "pyiceberg append": """
from pyiceberg.catalog.sql import SqlCatalog
folder = {folder!r}
SqlCatalog("c", uri=f"sqlite:///{{folder}}/c.db", warehouse=f"file://{{folder}}").load_table("db.t").append(rows)
""",
    "pyarrow, files alone": """
import os
import pyarrow.parquet as pq
pq.write_table(rows, f"{folder}/{{os.getpid()}}.parquet", compression="zstd")
""",
}


def main() -> None:
    """Write, and say what a write took."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.small_writes", description=__doc__)
    parser.add_argument("sections", nargs="*", help=f"{', '.join(SECTIONS)}; both by default")
    parser.add_argument("--writes", type=int, default=1_000, help="writes of each case in one process (1,000)")
    parser.add_argument("--tables", type=int, nargs="+", default=TABLES, help="so many tables in turn (1 50)")
    parser.add_argument("--processes", type=int, default=30, help="processes of each case (30)")
    parser.add_argument("--formats", nargs="+", help="only these formats")
    arguments = parser.parse_args()
    console = Console(width=None if Console().is_terminal else 170)
    formats = lakes.installed(arguments.formats)
    asked = arguments.sections or SECTIONS
    with TemporaryDirectory() as folder:
        os.environ["LAKETIER_CACHE_DIR"] = str(Path(folder) / "cache")
        forget_process_cache()
        if SECTIONS[0] in asked:
            for tables in arguments.tables:
                for section in one_process(formats, arguments.writes, tables, Path(folder) / f"of-{tables}"):
                    show(section, console)
        if SECTIONS[1] in asked:
            show(new_processes(formats, arguments.processes, Path(folder) / "processes"), console)


# -- a process that stays ----------------------------------------------------------------------------------------------


def _nothing(number: int) -> None:
    """Replaced by what a case writes."""


@dataclass
class _Case:
    """Seconds by phase, and the CPU-seconds of all threads."""

    write: Callable[[int], None] = _nothing
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    cpu: float = 0.0

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.seconds[name] += time.perf_counter() - began


def one_process(formats: list[str], count: int, tables: int, work: Path) -> list[Section]:
    """``count`` writes of 1,000 rows, over so many tables in turn, and as many rounds that find nothing new. All cases
    in turn, some writes at a time. Each table has one write before."""
    cases: dict[str, _Case] = {}
    for name in formats:
        for kept in (True, False):
            case = cases[f"{name}, {_said(kept)}"] = _Case()
            opened = [_lake(name, work / f"{name}-{kept}" / str(table), metadata_cache=kept) for table in range(tables)]
            case.write = _by_laketier(case, opened)
    for name, made in _libraries(formats, work, tables).items():
        cases[name] = _Case(made)
    for case in cases.values():
        for table in range(tables):  # makes the table, imports and connects
            case.write(count * tables + table)
        case.seconds.clear()
    for first in range(0, count, _AT_A_TIME):
        for case in cases.values():
            cpu = time.process_time()
            for number in range(first, min(first + _AT_A_TIME, count)):
                with case.phase("all"):
                    case.write(number)
            case.cpu += time.process_time() - cpu
    of = "1 table" if tables == 1 else f"{tables} tables"
    written = Section(f"{count:,} writes of {ROWS:,} rows into {of} (ms per write)")
    for name, case in cases.items():
        per = {phase: seconds * 1000 / count for phase, seconds in case.seconds.items()}
        row: dict[str, Any] = {"case": name, "write": round(per["all"], 2), "CPU": round(case.cpu * 1000 / count, 2)}
        for phase in ("plan", "stage", "commit"):
            row[phase] = round(per[phase], 2) if phase in per else "-"
        written.rows.append(row)
    written.notes.append(
        "plan: open_lake, prepare_table and the factory. stage: one file. commit: open, decide, publish."
    )
    written.notes.append(_load())
    return [written, _idle_rounds(formats, count, tables, work, of)]


def _idle_rounds(formats: list[str], count: int, tables: int, work: Path, of: str) -> Section:
    idle = Section(f"{count:,} rounds that find nothing new, over {of} (ms per round)")
    for name in formats:
        found = {}
        for kept in (True, False):
            opened = [_lake(name, work / f"{name}-{kept}" / str(table), metadata_cache=kept) for table in range(tables)]
            for _ in range(20):  # a table that changed all the time is passed by for a while
                for each in opened:
                    _idle(each)
            began = time.perf_counter()
            for number in range(count):
                _idle(opened[number % tables])
            found[kept] = (time.perf_counter() - began) * 1000 / count
        idle.rows.append(
            {
                "format": name,
                "kept": round(found[True], 3),
                "not kept": round(found[False], 3),
                "times": round(found[False] / found[True], 1),
            }
        )
    idle.notes.append("What such a round does: open_lake, prepare_table, the factory, the state and its watermark.")
    idle.notes.append(_load())
    return idle


def _by_laketier(case: _Case, opened: list[Lake]) -> Callable[[int], None]:
    def write(number: int) -> None:
        lake = opened[number % len(opened)]
        with case.phase("plan"):
            again = open_lake(lake.config)
            factory = again.tiering_factory(prepare_table(again, SCHEMA))
        with case.phase("stage"):
            message = write_task(factory, [batch(number * ROWS, ROWS)])
        with case.phase("commit"):
            TieringRound(factory, token=None).commit_messages([message])

    return write


def _idle(lake: Lake) -> None:
    again = open_lake(lake.config)
    table = prepare_table(again, SCHEMA)
    again.tiering_factory(table)
    again.state(table).watermark("p")


def _libraries(formats: list[str], work: Path, tables: int) -> dict[str, Callable[[int], None]]:
    """The same by each library alone, and by pyarrow, which makes files and no table."""
    folders = [work / "alone" / str(table) for table in range(tables)]
    for folder in folders:
        folder.mkdir(parents=True)

    def by_pyarrow(number: int) -> None:
        pq.write_table(_rows(number), folders[number % tables] / f"{number}.parquet", compression="zstd")

    found: dict[str, Callable[[int], None]] = {"pyarrow, files alone": by_pyarrow}
    if "delta" in formats:
        from deltalake import write_deltalake

        found["write_deltalake"] = lambda number: write_deltalake(
            folders[number % tables] / "delta", _rows(number), mode="append"
        )
    if "lance" in formats:
        import lance

        found["lance.write_dataset"] = lambda number: _lance(lance, folders[number % tables] / "t.lance", number)
    if "iceberg" in formats:
        from pyiceberg.catalog.sql import SqlCatalog

        catalogs = [SqlCatalog("c", uri=f"sqlite:///{folder}/c.db", warehouse=f"file://{folder}") for folder in folders]
        for catalog in catalogs:
            catalog.create_namespace("db")
            catalog.create_table("db.t", SCHEMA)
        found["pyiceberg append"] = lambda number: catalogs[number % tables].load_table("db.t").append(_rows(number))
    return found


def _lance(lance: Any, place: Path, number: int) -> None:
    lance.write_dataset(_rows(number), place, mode="append" if place.exists() else "create")


# -- a process for each write ------------------------------------------------------------------------------------------


def new_processes(formats: list[str], count: int, work: Path) -> Section:
    """``count`` processes for each case, one after the other, all cases in turn. Each table has one write before."""
    section = Section(f"A process for each write of {ROWS:,} rows, {count} writes (ms, medians)")
    work.mkdir(parents=True)
    rows = work / "rows.arrows"
    with pa.ipc.new_stream(str(rows), SCHEMA) as stream:
        stream.write_batch(batch(0, ROWS))
    programs: dict[str, str] = {}
    for name in formats:
        for kept in (True, False):
            values = lakes.options(name, work / f"{name}-{kept}", metadata_cache=str(kept).lower())
            programs[f"{name}, {_said(kept)}"] = _OURS.format(values=values)
    for name, write in _libraries(formats, work, 1).items():
        write(0)
        programs[name] = _THEIRS[name].format(folder=str(work / "alone" / "0"))
    taken: dict[str, list[tuple[float, float]]] = defaultdict(list)
    phases: dict[str, list[list[float]]] = defaultdict(list)
    for number in range(count + 1):
        for name, program in programs.items():
            wall, cpu, told = _in_a_new_process(_INPUT.format(rows=str(rows)) + program)
            if number:  # the first makes the table, and Python's own caches
                taken[name].append((wall, cpu))
                phases[name].append(told)
    for name in programs:
        row: dict[str, Any] = {"case": name}
        row["wall"], row["CPU"] = (round(statistics.median(each) * 1000) for each in zip(*taken[name], strict=True))
        middle = [round(statistics.median(each) * 1000) for each in zip(*phases[name], strict=True)]
        row |= dict(zip(("import", "plan", "stage", "commit"), middle or ["-"] * 4, strict=True))
        section.rows.append(row)
    section.notes.append("Python's start, and importing pyarrow and reading the rows, are in all: see pyarrow's line.")
    section.notes.append(_load())
    return section


def _in_a_new_process(program: str) -> tuple[float, float, list[float]]:
    """Seconds, CPU-seconds, and the numbers that it printed."""
    began = time.perf_counter()
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"a process ended with {process.returncode}")
    return time.perf_counter() - began, used.ru_utime + used.ru_stime, [float(each) for each in told.split()]


def _load() -> str:
    return f"Load of the machine at the end, over a minute: {psutil.getloadavg()[0]:.1f}, {psutil.cpu_count()} cores."


def _said(kept: bool) -> str:
    return "kept" if kept else "not kept"


def _rows(number: int) -> pa.Table:
    return pa.Table.from_batches([batch(number * ROWS, ROWS)])


def _lake(name: str, folder: Path, **keys: Any) -> Lake:
    return open_lake(configure(lakes.options(name, folder, **keys), environment={}))


if __name__ == "__main__":
    main()
