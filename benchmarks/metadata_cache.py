"""What is kept of tables: look-ups of a schema by tier, and many small writes with the cache and without.

``python -m benchmarks.metadata_cache [lookups] [writes] [--writes N] [--formats …]``. Libraries alone do the same in
the same run.
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

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

from benchmarks import lakes
from benchmarks.dataset import SCHEMA, batch
from benchmarks.report import Section, show
from laketier.registry import Lake, configure, open_lake
from laketier.tables import metadata_cache, prepare_table
from laketier.tables.metadata import MetadataCache, cache_folder, forget_process_cache
from laketier.tiering import TieringRound, write_task

ROWS = 1_000
COMMITS = 50
MANY = 50
COLD_RUNS = 9
_FIRST = """
import time
began = time.perf_counter()
from laketier.registry import configure, open_lake
from laketier.tables import described
imported = time.perf_counter()
lake = open_lake(configure({values!r}, environment={{}}))
schema = {look}.schema
print(imported - began, time.perf_counter() - imported)
"""


def main() -> None:
    """Run the sections that were asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.metadata_cache", description=__doc__)
    parser.add_argument(
        "sections", nargs="*", choices=[[], "lookups", "writes"], help="lookups, writes; both by default"
    )
    parser.add_argument("--writes", type=int, default=1_000, help="writes of 1,000 rows each, per case (1,000)")
    parser.add_argument("--formats", nargs="+", help="only these formats")
    arguments = parser.parse_args()
    console = Console(width=None if Console().is_terminal else 170)
    formats = lakes.installed(arguments.formats)
    with TemporaryDirectory() as folder:
        os.environ["LAKETIER_CACHE_DIR"] = str(Path(folder) / "cache")
        forget_process_cache()
        if "lookups" in (arguments.sections or ["lookups"]):
            show(lookups(formats, Path(folder)), console)
        if "writes" in (arguments.sections or ["writes"]):
            for tables in (1, MANY):
                for section in writes(formats, arguments.writes, tables, Path(folder) / f"of-{tables}"):
                    show(section, console)


# -- look-ups ----------------------------------------------------------------------------------------------------------


def lookups(formats: list[str], work: Path) -> Section:
    """The schema of a table after 50 commits."""
    section = Section(f"Look-up of a table's schema, by tier: 5 columns, after {COMMITS} commits (µs, medians)")
    for name in formats:
        _look_up(_lake(name, work / "lookups" / name), section)
    section.notes.append("memory: described(lake), version check included. load: the plugin's own load_table.")
    section.notes.append("new process: open_lake and the look-up, with the engine's import where it needs it.")
    return section


def _look_up(lake: Lake, section: Section) -> None:
    for number in range(COMMITS):
        _write(lake, number)
    cache = metadata_cache()
    cache.described(lake)
    cache.flush()
    fresh = [MetadataCache(cache_folder()) for _ in range(300)]
    memory = _median(lambda: cache.described(lake), 3_000)
    warm = _median(lake.load_table, 300)
    cold, imports = _first(lake, "lake.load_table()")
    by_disk, _ = _first(lake, "described(lake)")
    section.rows.append(
        {
            "format": lake.config.format,
            "memory": round(memory, 1),
            "of it the check": round(_median(lambda: _check(cache, lake), 3_000), 1),
            "disk": round(_median(lambda: fresh.pop().described(lake), 300), 1),
            "load": round(warm, 1),
            "new process, disk": round(by_disk),
            "new process, load": round(cold),
            "load / memory": round(warm / memory, 1),
            "new process / memory": round(cold / memory),
            "new process / by disk": round(cold / by_disk, 1),
        }
    )
    section.notes.append(
        f"{lake.config.format}: laketier's own import took {imports / 1000:.0f} ms before, either way."
    )


def _check(cache: MetadataCache, lake: Lake) -> object:
    entry = cache._memory.entries()[-1]
    return lake.storage.catalog().table_version(lake.config.table, entry.version)


def _first(lake: Lake, look: str) -> tuple[float, float]:
    """µs of the first look-up in a new process, and of importing laketier before it."""
    config = lake.config
    values = {"lake.format": config.format, "lake.warehouse": config.warehouse, "lake.table": str(config.table)}
    program = _FIRST.format(values=values, look=look)
    found = []
    for _ in range(COLD_RUNS):
        ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        found.append([float(text) * 1e6 for text in ran.stdout.split()])
    return statistics.median(each[1] for each in found), statistics.median(each[0] for each in found)


def _median(look: Callable[[], object], times: int) -> float:
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        look()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken) * 1e6


# -- small writes ------------------------------------------------------------------------------------------------------


def _nothing(number: int) -> None:
    """Replaced by what a case writes."""


@dataclass
class _Case:
    write: Callable[[int], None] = _nothing
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.seconds[name] += time.perf_counter() - began


def writes(formats: list[str], count: int, tables: int, work: Path) -> list[Section]:
    """``count`` writes of 1,000 rows, over so many tables in turn, each planned anew as a batch of Spark's is; and as
    many rounds that find nothing new. All cases in turn, ten writes at a time."""
    cases: dict[str, _Case] = {}
    for name in formats:
        for kept in (True, False):
            case = cases[f"{name}, {'kept' if kept else 'not kept'}"] = _Case()
            opened = [_lake(name, work / f"{name}-{kept}" / str(table), metadata_cache=kept) for table in range(tables)]
            case.write = _by_laketier(case, opened)
    for name, made in _libraries(formats, work, tables).items():
        cases[name] = _Case(made)
    for case in cases.values():
        case.write(count)  # imports and connects
        case.seconds.clear()
    for first in range(0, count, 10):
        for case in cases.values():
            for number in range(first, min(first + 10, count)):
                with case.phase("all"):
                    case.write(number)
    of = "1 table" if tables == 1 else f"{tables} tables"
    written = Section(f"{count:,} writes of {ROWS:,} rows into {of} (ms per write)")
    idle = Section(f"{count:,} rounds that find nothing new, over {of} (ms per round)")
    for name, case in cases.items():
        per = {phase: seconds * 1000 / count for phase, seconds in case.seconds.items()}
        row: dict[str, Any] = {"case": name, "write": round(per["all"], 2)}
        for phase in ("plan", "stage", "commit"):
            row[phase] = round(per[phase], 2) if phase in per else "-"
        written.rows.append(row)
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
    written.notes.append(
        "plan: open_lake, prepare_table and the factory. stage: one file. commit: open, decide, publish."
    )
    idle.notes.append("What such a round does: open_lake, prepare_table, the factory, the state and its watermark.")
    return [written, idle]


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


def _rows(number: int) -> pa.Table:
    return pa.Table.from_batches([batch(number * ROWS, ROWS)])


def _write(lake: Lake, number: int) -> None:
    factory = lake.tiering_factory(prepare_table(lake, SCHEMA))
    TieringRound(factory, token=None).commit_messages([write_task(factory, [batch(number * ROWS, ROWS)])])


def _lake(name: str, folder: Path, **keys: Any) -> Lake:
    return open_lake(configure(lakes.options(name, folder, **keys), environment={}))


if __name__ == "__main__":
    main()
