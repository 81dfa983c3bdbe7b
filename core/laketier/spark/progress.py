"""The progress of a stream: one `EpochProgress` per committed epoch, for a terminal, a log, or your own code."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console
from rich.live import Live
from rich.table import Table

from laketier.spark.failures import await_termination
from laketier.spark.report import EpochProgress, size_text

_POLL_SECONDS = 0.2


@dataclass
class Totals:
    """The sum over epochs."""

    epochs: int = 0
    rows: int = 0
    files: int = 0
    bytes: int = 0
    started: float = field(default_factory=time.monotonic)

    def add(self, epoch: EpochProgress) -> None:
        """Count an epoch."""
        self.epochs += 1
        self.rows += epoch.rows
        self.files += epoch.files
        self.bytes += epoch.bytes

    @property
    def seconds(self) -> float:
        """Since the start."""
        return max(time.monotonic() - self.started, 1e-9)

    def __str__(self) -> str:
        return (
            f"{self.epochs} epochs ({self.epochs / self.seconds:.2f}/s), {self.rows:,} rows "
            f"({self.rows / self.seconds:,.0f}/s), {self.files} files, {size_text(self.bytes)}"
        )


class EpochReports:
    """The file in which a stream's commits leave their figures. Give ``path`` to `laketier.spark.stream`. A context
    manager: it removes the file."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="laketier-")
        self.path = Path(self._folder.name) / "epochs.jsonl"
        self.path.touch()
        self._read = 0
        self._last = time.time()

    def __enter__(self) -> EpochReports:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._folder.cleanup()

    def new(self) -> Iterator[EpochProgress]:
        """The epochs committed since the last call."""
        with self.path.open("rb") as file:
            file.seek(self._read)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self._read += len(line)
                figures = json.loads(line)
                at = figures.pop("at")
                yield EpochProgress(**figures, seconds=at - self._last)
                self._last = at


def follow(
    query: StreamingQuery, reports: EpochReports, on_epoch: Callable[[EpochProgress], None] | None = None
) -> Totals:
    """Wait for a query to end, calling ``on_epoch`` for each epoch meanwhile. Driver.

    When the query failed, raises the `LaketierError` that ended it where there is one, otherwise Spark's exception.
    """
    totals = Totals()

    def report() -> None:
        for epoch in reports.new():
            totals.add(epoch)
            if on_epoch is not None:
                on_epoch(epoch)

    try:
        while not await_termination(query, _POLL_SECONDS):
            report()
    finally:
        report()
    return totals


@contextmanager
def on_console(console: Console | None = None) -> Iterator[Callable[[EpochProgress], None]]:
    """An ``on_epoch`` that shows a live table on a terminal and prints one plain line per epoch elsewhere."""
    console = console or Console(stderr=True)
    totals = Totals()
    if not console.is_terminal:

        def show_line(epoch: EpochProgress) -> None:
            console.print(str(epoch), markup=False, highlight=False, soft_wrap=True)

        yield show_line
        return
    with Live(console=console, refresh_per_second=5) as live:

        def show_table(epoch: EpochProgress) -> None:
            totals.add(epoch)
            live.update(_table(epoch, totals))

        yield show_table


def _table(epoch: EpochProgress, totals: Totals) -> Table:
    table = Table(title=f"{epoch.table} · {epoch.pipeline}", title_justify="left")
    for name in ("", "epochs", "rows", "files", "size", "rows/s", "epochs/s"):
        table.add_column(name, justify="right")
    pace = max(epoch.seconds, 1e-9)
    table.add_row(
        "last", f"#{epoch.epoch}", f"{epoch.rows:,}", str(epoch.files), size_text(epoch.bytes),
        f"{epoch.rows / pace:,.0f}", f"{1 / pace:.2f}",
    )  # fmt: skip
    table.add_row(
        "all", str(totals.epochs), f"{totals.rows:,}", str(totals.files), size_text(totals.bytes),
        f"{totals.rows / totals.seconds:,.0f}", f"{totals.epochs / totals.seconds:.2f}",
    )  # fmt: skip
    return table
