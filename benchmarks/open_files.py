"""Small epochs into files that stay open, and into files that are folded, beside each other: the bare protocol."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import lakes
from benchmarks.dataset import SCHEMA, batch
from benchmarks.measure import Sample, median
from benchmarks.report import Section
from laketier.registry import configure, open_lake
from laketier.spi import ScanRequest
from laketier.tiering.epochs import EpochWriter
from laketier_localfile.layout import IN_PROGRESS, MANIFESTS, SUPERSEDED
from laketier_localfile.table import LocalFileTable

ROWS = 1_000
FORMATS = ("json", "csv", "arrow")
WAYS = {
    "open": {"lake.localfile.open-files": "true"},
    "folded": {},
}


def run(epochs: int, work: Path, say: Callable[[str], None]) -> Section:
    """``epochs`` epochs into a table for each way, the ways in turn at each epoch."""
    section = Section(f"Open files: {epochs:,} epochs of {ROWS:,} rows into localfile, one writer in one process")
    with TemporaryDirectory(dir=work) as folder:
        tables = [_Table(Path(folder) / f"{each}-{way}", each, way) for each in FORMATS for way in WAYS]
        for epoch in range(epochs):
            if epoch % 100 == 0:
                say(f"epoch {epoch} of {epochs}, {len(tables)} tables")
            rows = batch(epoch * ROWS, ROWS)
            for table in tables:
                table.epoch(epoch, rows)
        section.rows += [table.figures(epochs) for table in tables]
    section.notes += [
        "Epoch: one EpochWriter.write, from rows in memory to the durable commit. Files: what plain readers find in",
        "the end. Written: bytes of data files, of those of the live files. Scan: all rows, by laketier's own reader,",
        "the median of 3, before open files are finished.",
    ]
    return section


@dataclass
class _Table:
    home: Path
    file_format: str
    way: str
    samples: list[Sample] = field(default_factory=list)
    written: int = 0

    def __post_init__(self) -> None:
        keys = {"lake.pipeline": "bench", "lake.localfile.file-format": self.file_format, **WAYS[self.way]}
        self._config = configure({**lakes.options("localfile", self.home), **keys})
        self._writer = EpochWriter(self._config, SCHEMA)

    def epoch(self, epoch: int, rows: Any) -> None:
        started = Sample(time.perf_counter(), time.process_time())
        self._writer.write(epoch, [rows])
        self.samples.append(Sample(time.perf_counter() - started.wall, time.process_time() - started.cpu))
        self._count()

    def _count(self) -> None:
        head, _ = LocalFileTable(self._location).manifests().head()
        self.written += sum(entry.arrived_bytes for entry in head.added)

    @property
    def _location(self) -> Path:
        return Path(open_lake(self._config).load_table().location)

    def figures(self, epochs: int) -> dict[str, Any]:
        scan = self._scanned(epochs)
        before = self._head()
        self._writer.close()
        if self._head() != before:
            self._count()
        files = [
            path
            for path in self._location.rglob(f"*.{self.file_format}")
            if not {IN_PROGRESS, SUPERSEDED, MANIFESTS} & set(path.parts)
        ]
        size = sum(path.stat().st_size for path in files)
        manifests = sum(path.stat().st_size for path in (self._location / MANIFESTS).rglob("*.json"))
        middle = median(self.samples[1:])
        return {
            "case": f"{self.file_format}, {self.way}",
            "files": len(files),
            "MB": round(size / 1e6, 1),
            "written": round(self.written / size, 2),
            "epochs s": round(sum(sample.wall for sample in self.samples), 1),
            "cpu s": round(sum(sample.cpu for sample in self.samples), 1),
            "median epoch ms": round(middle.wall * 1000, 1),
            "slowest ms": round(max(sample.wall for sample in self.samples[1:]) * 1000),
            "scan ms": round(scan * 1000),
            "manifests MB": round(manifests / 1e6, 2),
        }

    def _head(self) -> int:
        return LocalFileTable(self._location).manifests().head()[0].number

    def _scanned(self, epochs: int) -> float:
        taken = []
        for _ in range(3):
            started = time.perf_counter()
            lake = open_lake(self._config)
            source = lake.source(lake.load_table())
            plan = source.plan(ScanRequest())
            rows = sum(found.num_rows for split in plan.splits for found in source.read(split, plan.schema))
            taken.append(time.perf_counter() - started)
            if rows != epochs * ROWS:
                raise AssertionError(f"{self.file_format}, {self.way}: {rows} rows instead of {epochs * ROWS}")
        return sorted(taken)[1]
