"""``python -m benchmarks.metadata_cache``: what is kept of tables, and how fast a schema is looked up by each tier."""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

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
    """Look up the schema of a table of each format."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.metadata_cache", description=__doc__)
    parser.add_argument("--formats", nargs="+", help="only these formats")
    arguments = parser.parse_args()
    console = Console(width=None if Console().is_terminal else 170)
    with TemporaryDirectory() as folder:
        os.environ["LAKETIER_CACHE_DIR"] = str(Path(folder) / "cache")
        forget_process_cache()
        show(lookups(lakes.installed(arguments.formats), Path(folder)), console)


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


def _write(lake: Lake, number: int) -> None:
    factory = lake.tiering_factory(prepare_table(lake, SCHEMA))
    TieringRound(factory, token=None).commit_messages([write_task(factory, [batch(number * ROWS, ROWS)])])


def _lake(name: str, folder: Path, **keys: Any) -> Lake:
    return open_lake(configure(lakes.options(name, folder, **keys), environment={}))


if __name__ == "__main__":
    main()
