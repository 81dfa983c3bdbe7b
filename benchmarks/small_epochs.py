"""What small epochs leave behind, with small files written as one and without: the bare protocol, without Spark."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb

from benchmarks import lakes
from benchmarks.dataset import SCHEMA, batch
from benchmarks.measure import Sample, median
from benchmarks.report import Section
from laketier.registry import configure, open_lake
from laketier.spi import Decision, TableDescriptor, Token
from laketier.tiering import TieringRound, write_task
from laketier_localfile.layout import IN_PROGRESS, SUPERSEDED
from laketier_localfile.table import LocalFileTable

ROWS = 1_000
FOLDS = (0, 10, 50, 200)


def run(epochs: int, work: Path, say: Callable[[str], None]) -> Section:
    """``epochs`` rounds of one small file each into a table for each setting, the settings in turn at each epoch."""
    section = Section(f"Small files: {epochs:,} epochs of {ROWS:,} rows into localfile, bare protocol")
    with TemporaryDirectory(dir=work) as folder:
        tables = {fold: _Table(Path(folder) / str(fold), fold) for fold in FOLDS}
        for epoch in range(epochs):
            if epoch % 100 == 0:
                say(f"epoch {epoch} of {epochs}, {len(tables)} tables")
            for table in tables.values():
                table.round(epoch)
        for fold, table in tables.items():
            section.rows.append({"fold-files": fold or "0 (never)", **table.figures(epochs)})
    section.notes += [
        "Written: rows in data files, of the rows that came. Commit: open, decide, publish, and what is folded in it.",
        "Scan: DuckDB sums a column of the plain files, the median of 5.",
    ]
    return section


class _Table:
    def __init__(self, home: Path, fold: int) -> None:
        options = {**lakes.options("localfile", home), "lake.localfile.fold-files": str(fold)}
        self._lake = open_lake(configure(options))
        info = self._lake.storage.catalog().create_table(self._lake.config.table, TableDescriptor(SCHEMA))
        self._location = Path(info.location)
        self._commits: list[Sample] = []
        self._written = 0

    def round(self, epoch: int) -> None:
        """One epoch."""
        factory = self._lake.tiering_factory(self._lake.load_table())
        tiering = TieringRound(factory, token=Token(pipeline="bench", run="bench", epoch=epoch))
        message = write_task(factory, [batch(epoch * ROWS, ROWS)])
        started = Sample(time.perf_counter(), time.process_time())
        if tiering.begin() is not Decision.PROCEED:
            raise AssertionError(f"epoch {epoch} is in the table already")
        tiering.commit_messages([message])
        self._commits.append(Sample(time.perf_counter() - started.wall, time.process_time() - started.cpu))
        head, _ = LocalFileTable(self._location).manifests().head()
        self._written += sum(entry.rows for entry in head.added)

    def figures(self, epochs: int) -> dict[str, Any]:
        """What is left after all epochs."""
        files = [file for file in self._location.rglob("*.parquet") if not {IN_PROGRESS, SUPERSEDED} & set(file.parts)]
        pattern = f"{self._location}/*.parquet"
        scans = []
        for _ in range(5):
            started = time.perf_counter()
            rows = duckdb.sql(f"SELECT count(*), count(DISTINCT id), sum(amount) FROM '{pattern}'").fetchall()[0]
            scans.append(time.perf_counter() - started)
            if rows[:2] != (epochs * ROWS, epochs * ROWS):
                raise AssertionError(f"DuckDB finds {rows} instead of {epochs * ROWS} rows")
        return {
            "files": len(files),
            "written_of_rows": round(self._written / (epochs * ROWS), 2),
            "MB live": round(sum(file.stat().st_size for file in files) / 1e6, 1),
            "median commit ms": round(median(self._commits[1:]).wall * 1000, 1),
            "slowest commit ms": round(max(sample.wall for sample in self._commits[1:]) * 1000, 1),
            "cpu of all commits s": round(sum(sample.cpu for sample in self._commits), 2),
            "scan ms": round(sorted(scans)[2] * 1000, 1),
        }
