"""Planning a read of a table of many files: cold, in a process that is warm, and with what is kept.

``python -m benchmarks.planning [--files N] [--formats …]``. The files are named in each table's metadata, as a table of
years would name them, in ten commits; they are not there, as no plan opens one.
"""

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

import pyarrow as pa
from rich.console import Console

from benchmarks import lakes
from benchmarks.report import Section, show
from laketier.kit.manifests import FileEntry
from laketier.kit.manifests.manifest import ADOPTED
from laketier.registry import Lake, configure, open_lake
from laketier.spi import Leaf, Op, ScanRequest, TableDescriptor
from laketier.tables import metadata_cache, open_source
from laketier.tables.metadata import forget_process_cache

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("price", pa.float64())])
ROWS = 1_000
COMMITS = 10
RUNS = 5
_COLD = """
import time
began = time.perf_counter()
from laketier.registry import configure
from laketier.spi import ScanRequest
from laketier.tables import open_source
imported = time.perf_counter()
plan = open_source(configure({values!r}, environment={{}})).plan(ScanRequest())
print(imported - began, time.perf_counter() - imported, len(plan.splits))
"""


def main() -> None:
    """Make the tables, and measure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.planning", description=__doc__)
    parser.add_argument("--files", type=int, default=100_000, help="files of each table (100,000)")
    parser.add_argument("--formats", nargs="+", help="only these formats")
    arguments = parser.parse_args()
    console = Console(width=None if Console().is_terminal else 170)
    section = Section(f"Planning a read of a table of {arguments.files:,} files (ms, medians of {RUNS})")
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.environ["LAKETIER_CACHE_DIR"] = str(Path(folder) / "cache")
        forget_process_cache()
        for name in lakes.installed(arguments.formats):
            values = lakes.options(name, Path(folder) / name)
            lake = open_lake(configure(values, environment={}))
            began = time.perf_counter()
            _MAKE[name](lake, arguments.files)
            made = time.perf_counter() - began
            section.rows.append({"format": name, **_planned(lake, values, arguments.files)})
            section.notes.append(f"{name}: made in {made:.0f} s; {_about(lake)}")
    section.notes.append(
        "new process: after its import of laketier, with the engine's. warm: nothing kept. kept: checked."
    )
    section.notes.append("one file: with a filter that only one file's statistics allow.")
    show(section, console)


def _planned(lake: Lake, values: dict[str, Any], files: int) -> dict[str, Any]:
    not_kept = configure(values | {"lake.metadata-cache": "false"}, environment={})

    def plan(config: Any, *filters: Any) -> Any:
        return open_source(config).plan(ScanRequest(filters=filters))

    if sum(split.rows or 0 for split in plan(lake.config).splits) != files * ROWS:
        raise AssertionError(f"{lake.config.format}: the plan has another number of rows")
    cold = [_in_a_new_process(values) for _ in range(3)]
    metadata_cache().flush()
    one = Leaf("id", Op.EQ, 5 * ROWS + 1)
    return {
        "new process": round(statistics.median(cold)),
        "warm": round(_median(lambda: plan(not_kept))),
        "kept": round(_median(lambda: plan(lake.config))),
        "one file, warm": round(_median(lambda: plan(not_kept, one))),
        "one file, kept": round(_median(lambda: plan(lake.config, one))),
        "splits of it": len(plan(lake.config, one).splits),
    }


def _in_a_new_process(values: dict[str, Any]) -> float:
    program = _COLD.format(values=values)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return float(ran.stdout.split()[1]) * 1000


def _median(look: Callable[[], object]) -> float:
    taken = []
    for _ in range(RUNS):
        began = time.perf_counter()
        look()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken) * 1000


def _about(lake: Lake) -> str:
    root = Path(lake.load_table().location.removeprefix("file://"))
    size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file())
    return f"{size / 1e6:.0f} MB of metadata"


# -- tables whose metadata names files that nobody wrote -------------------------------------------------------------


def _commits(files: int) -> list[range]:
    each = files // COMMITS
    return [range(at * each, files if at == COMMITS - 1 else (at + 1) * each) for at in range(COMMITS)]


def _localfile(lake: Lake, files: int) -> None:
    """In one manifest, as adopted ones are."""
    entries = [
        FileEntry(
            path=f"{number:07}.parquet",
            rows=ROWS,
            bytes=20_000,
            schema=0,
            details={
                "footer": f"{number:016x}",
                "stats": {"id": (str(number * ROWS), str(number * ROWS + ROWS - 1), 0)},
            },
        )
        for number in range(files)
    ]
    catalog: Any = lake.storage.catalog()
    catalog.create_of(lake.config.table, TableDescriptor(SCHEMA), entries, origin=ADOPTED, last_look=lambda: None)


def _delta(lake: Lake, files: int) -> None:
    import json

    from deltalake import DeltaTable
    from deltalake.transaction import AddAction

    info = lake.storage.catalog().create_table(lake.config.table, TableDescriptor(SCHEMA))
    for some in _commits(files):
        table = DeltaTable(info.location)
        actions = [
            AddAction(f"{number:07}.parquet", 20_000, {}, 0, True, json.dumps(_delta_stats(number))) for number in some
        ]
        table.create_write_transaction(actions, "append", table.schema(), [])
    DeltaTable(info.location).create_checkpoint()


def _delta_stats(number: int) -> dict[str, Any]:
    low, high = number * ROWS, number * ROWS + ROWS - 1
    return {"numRecords": ROWS, "minValues": {"id": low}, "maxValues": {"id": high}, "nullCount": {"id": 0}}


def _iceberg(lake: Lake, files: int) -> None:
    from pyiceberg.conversions import to_bytes
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record
    from pyiceberg.types import LongType

    info = lake.storage.catalog().create_table(lake.config.table, TableDescriptor(SCHEMA))
    for some in _commits(files):
        table: Any = lake.load_table().handle
        table = getattr(table, "table", table)
        with table.transaction() as change, change.update_snapshot().fast_append() as append:
            for number in some:
                low, high = number * ROWS, number * ROWS + ROWS - 1
                file = DataFile.from_args(
                    content=DataFileContent.DATA,
                    file_path=f"{info.location}/data/{number:07}.parquet",
                    file_format=FileFormat.PARQUET,
                    partition=Record(),
                    record_count=ROWS,
                    file_size_in_bytes=20_000,
                    lower_bounds={1: to_bytes(LongType(), low)},
                    upper_bounds={1: to_bytes(LongType(), high)},
                    null_value_counts={1: 0},
                    value_counts={1: ROWS},
                )
                file.spec_id = 0
                append.append_data_file(file)


def _lance(lake: Lake, files: int) -> None:
    import lance
    from lance.fragment import DataFile, FragmentMetadata

    info = lake.storage.catalog().create_table(lake.config.table, TableDescriptor(SCHEMA))
    for some in _commits(files):
        dataset = lance.dataset(info.location)
        major, minor = (int(part) for part in dataset.data_storage_version.split("."))
        fragments = [
            FragmentMetadata(
                id=0,
                files=[DataFile(f"{number:07}.lance", [0, 1, 2], [0, 1, 2], major, minor, 20_000, None)],
                physical_rows=ROWS,
            )
            for number in some
        ]
        lance.LanceDataset.commit(
            info.location,
            lance.LanceOperation.Append(fragments),
            read_version=dataset.version,
            enable_v2_manifest_paths=True,
        )


_MAKE: dict[str, Callable[[Lake, int], None]] = {
    "localfile": _localfile,
    "delta": _delta,
    "iceberg": _iceberg,
    "lance": _lance,
}

if __name__ == "__main__":
    main()
