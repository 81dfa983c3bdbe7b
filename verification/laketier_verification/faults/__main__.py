"""``python -m laketier_verification.faults matrix | open | spark | random | list | docs`` for the matrix, and
``races | readers | foreign | union | service``."""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import importlib
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from laketier_verification.faults import report
from laketier_verification.faults.cells import Cell
from laketier_verification.faults.matrix import FORMATS, BareLane, Result, run_bare, run_spark, scratch
from laketier_verification.faults.open_files import FILE_FORMATS, LANES, run_open

ROOT = Path(__file__).parents[3]
MATRIX = ROOT / "artifacts" / "faults" / "matrix.json"
PAGE = ROOT / "docs" / "proof" / "faults.md"

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Faults put into real pipelines.")
Formats = Annotated[list[str] | None, typer.Option("--format", "-f", help="Only these formats.")]
Only = Annotated[str, typer.Option("--only", "-k", help="Only cells whose name fits, as in a shell: '*kill*'.")]
Json = Annotated[Path, typer.Option("--json", help="Where results are added to those of earlier runs.")]
Fresh = Annotated[bool, typer.Option(help="Forget earlier runs of these lanes and formats.")]


class _Show:
    """Progress: a bar on a terminal, else a line per failure and per twenty cells."""

    def __init__(self, json: Path) -> None:
        self.console = Console(highlight=False)
        self.json = json
        self.results = report.load(json)
        self.bar = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
            TextColumn("{task.fields[cell]}"), console=self.console, transient=True,
        )  # fmt: skip
        self.task = self.bar.add_task("starting", cell="", total=None)
        self.done = self.failed = self.ran = 0

    def forget(self, lanes: tuple[str, ...], formats: tuple[str, ...]) -> None:
        self.results = [r for r in self.results if not (r.lane in lanes and r.format in formats)]

    def begun(self, what: str, cells: int) -> None:
        self.console.print(f"{what}: {cells} cells")
        self.bar.reset(self.task, description=what, total=cells)
        self.done = 0

    def all(self, results: Iterator[Result]) -> None:
        """Show and save each; exit code 1 when one failed."""
        started = time.monotonic()
        with self.bar if self.console.is_terminal else contextlib.nullcontext():
            for result in results:
                self._one(result)
        good = "all passed" if not self.failed else f"[bold red]{self.failed} failed[/]"
        self.console.print(f"{self.ran} cells run in {time.monotonic() - started:.0f} s: {good}; {self.json}")
        if self.failed:
            raise typer.Exit(1)

    def _one(self, result: Result) -> None:
        self.results.append(result)
        report.save(self.json, self.results)
        self.done += 1
        self.ran += result.status != "not run"
        self.bar.update(self.task, advance=1, cell=f"{result.fault}, {result.point}"[:60])
        if result.status == "failed":
            self.failed += 1
            told = [life.get("error", life["outcome"]) for life in result.lives]
            rows = f"lost {result.lost}, doubled {result.doubled}, alien {result.alien}, torn {result.torn}"
            self.console.print(f"FAILED {result.name}: {rows}: {result.why[:600]} {told}", markup=False)
        elif not self.console.is_terminal and self.done % 20 == 0:
            self.console.print(f"  {self.done} done")


def _chosen(pattern: str, cell: Cell) -> bool:
    return fnmatch.fnmatch(cell.name, pattern)


@app.command()
def matrix(format: Formats = None, only: Only = "*", json: Json = MATRIX, fresh: Fresh = False) -> None:
    """The bare lane: each fault at each failpoint."""
    show, formats = _Show(json), tuple(format or FORMATS)
    if fresh:
        show.forget(("bare",), formats)
    show.all(run_bare(formats, lambda cell: _chosen(only, cell), show.begun))


@app.command("open")
def open_files(only: Only = "*", json: Json = MATRIX, fresh: Fresh = False) -> None:
    """Local files that stay open from epoch to epoch, in each file format that can be appended to."""
    show = _Show(json)
    if fresh:
        show.forget(LANES, ("localfile",))
    show.all(run_open(FILE_FORMATS, lambda cell: _chosen(only, cell), show.begun))


@app.command()
def spark(
    format: Formats = None, only: Only = "*", json: Json = MATRIX, fresh: Fresh = False,
    every: Annotated[bool, typer.Option(help="All lanes and actions at each failpoint, not a sample.")] = False,
) -> None:  # fmt: skip
    """The Spark lanes: each failpoint once per format, lanes and actions in turn; workers and checkpoints."""
    show, formats = _Show(json), tuple(format or FORMATS)
    if fresh:
        show.forget(("batch", "split", "stream"), formats)
    show.all(run_spark(formats, lambda cell: _chosen(only, cell), show.begun, every=every))


@app.command("random")
def random_kills(
    format: Formats = None,
    seed: Annotated[int | None, typer.Option(help="Drawn when not given.")] = None,
    rounds: int = 10,
    span: Annotated[float, typer.Option(help="Seconds: the longest delay before a kill.")] = 1.0,
    json: Json = MATRIX,
) -> None:
    """SIGKILL at random moments; the seed that is printed replays the choice of delays."""
    from laketier_verification.faults.killing import run_random

    seed = secrets.randbelow(1_000_000) if seed is None else seed
    show = _Show(json)
    show.console.print(f"seed {seed}: --seed {seed} --rounds {rounds} --span {span}")

    def results() -> Iterator[Result]:
        for name in format or FORMATS:
            show.begun(f"random {name}", rounds)
            yield from run_random(name, seed, rounds, span)

    show.all(results())


@app.command("list")
def list_cells(format: Formats = None, only: Only = "*") -> None:
    """The cells of the bare lane."""
    for name in format or FORMATS:
        with scratch() as folder, BareLane(name, folder) as lane:
            for cell in lane.cells:
                if _chosen(only, cell):
                    typer.echo(cell.name)


@app.command()
def docs(json: Json = MATRIX, page: Path = PAGE) -> None:
    """Write the page from the results."""
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(report.page(report.load(json)), encoding="utf-8")
    typer.echo(f"{page}")


def _pass_on(name: str) -> None:
    """A subcommand with a parser of its own."""
    module = importlib.import_module(f"laketier_verification.faults.{name}")
    settings = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": list[str]()}

    @app.command(name, context_settings=settings, help=(module.__doc__ or "").partition(":")[0] + ".")
    def run(context: typer.Context) -> None:
        parser = argparse.ArgumentParser(
            f"python -m laketier_verification.faults {name}",
            description=module.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(parser)
        raise typer.Exit(module.main(parser.parse_args(context.args)))


for _name in ("races", "readers", "foreign", "union", "service"):
    _pass_on(_name)

if __name__ == "__main__":
    app()
