"""What one commit costs as a table grows old: the bare protocol, without Spark."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import lakes
from benchmarks.dataset import SCHEMA, batch
from benchmarks.measure import Sample, folder_bytes, median
from benchmarks.report import Section
from laketier.registry import Lake, configure, open_lake
from laketier.spi import Decision, TableDescriptor, Token
from laketier.tiering import TieringRound, write_task

ROWS = 100
WINDOW = 20
EARLY = 10


@dataclass(frozen=True)
class Variant:
    """A table to grow: a format with its own ``lake.<format>.*`` options and table properties."""

    name: str
    format: str
    options: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)


EXPIRING = Variant(
    "iceberg, expiring",
    "iceberg",
    {"lake.iceberg.expire-in-commit": "true"},
    {"history.expire.max-snapshot-age-ms": "1", "history.expire.min-snapshots-to-keep": "20"},
)
"""Iceberg keeps all snapshots in one file, so its commits stay flat only where they expire."""


@dataclass
class _Growing:
    lake: Lake
    commits: list[Sample] = field(default_factory=list)
    rounds: list[Sample] = field(default_factory=list)


def run(formats: list[str], epochs: int, work: Path, say: Callable[[str], None]) -> Section:
    """``epochs`` rounds of one small file each into one table per format, the formats in turn at each epoch."""
    variants = [Variant(name, name) for name in formats]
    variants += [EXPIRING] if "iceberg" in formats else []
    with TemporaryDirectory(dir=work) as folder:
        homes = {variant.name: Path(folder) / str(index) for index, variant in enumerate(variants)}
        tables = {variant.name: _Growing(_made(variant, homes[variant.name])) for variant in variants}
        for epoch in range(epochs):
            if epoch % 100 == 0:
                say(f"epoch {epoch} of {epochs}, {len(tables)} tables")
            for table in tables.values():
                _round(table, epoch)
        for variant in variants:
            lakes.expect_rows(variant.format, homes[variant.name], epochs * ROWS)
        return _section(tables, homes, epochs)


def _round(table: _Growing, epoch: int) -> None:
    started = _now()
    lake = table.lake
    # As each lane does: a commit looks through all that came since the table was loaded for its writers.
    factory = lake.storage.tiering_factory(lake.storage.catalog().load_table(lake.config.table))
    tiering = TieringRound(factory, token=Token(pipeline="bench", run="bench", epoch=epoch))
    if tiering.begin() is not Decision.PROCEED:
        raise AssertionError(f"epoch {epoch} is in the table already")
    message = write_task(factory, [batch(epoch * ROWS, ROWS)])
    staged = _now()
    tiering.commit_messages([message])
    ended = _now()
    table.commits.append(Sample(ended.wall - staged.wall, ended.cpu - staged.cpu))
    table.rounds.append(Sample(ended.wall - started.wall, ended.cpu - started.cpu))


def _section(tables: Mapping[str, _Growing], homes: Mapping[str, Path], epochs: int) -> Section:
    section = Section(f"Commit time by epoch: {epochs:,} epochs of {ROWS} rows, bare protocol (ms)")
    for name, table in tables.items():
        early, late = (_around(table.commits, epoch) for epoch in (EARLY, epochs))
        round_early, round_late = (_around(table.rounds, epoch) for epoch in (EARLY, epochs))
        section.rows.append(
            {
                "table": name,
                f"commit at {EARLY}": round(early.wall * 1000, 1),
                f"at {epochs:,}": round(late.wall * 1000, 1),
                "slope": round(late.wall / early.wall, 2),
                f"cpu at {EARLY}": round(early.cpu * 1000, 1),
                f"cpu at {epochs:,}": round(late.cpu * 1000, 1),
                "slowest": round(max(sample.wall for sample in table.commits[1:]) * 1000, 1),
                f"round at {EARLY}": round(round_early.wall * 1000, 1),
                f"round at {epochs:,}": round(round_late.wall * 1000, 1),
                "MB on disk": round(folder_bytes(homes[name]) / 1e6, 1),
            }
        )
    section.notes += [
        "A round: load the table, open and decide, stage one file, open, decide and publish. Commit: the last three.",
        f"Medians of {WINDOW} epochs around epoch {EARLY} and of the last {WINDOW}; cpu: this process, all threads.",
    ]
    return section


def _made(variant: Variant, folder: Path) -> Lake:
    lake = open_lake(configure({**lakes.options(variant.format, folder), **variant.options}))
    lake.storage.catalog().create_table(lake.config.table, TableDescriptor(SCHEMA, properties=variant.properties))
    return lake


def _now() -> Sample:
    return Sample(time.perf_counter(), time.process_time())


def _around(samples: list[Sample], epoch: int) -> Sample:
    """The median around ``epoch``. The first epoch of all imports and connects, so it is left out."""
    first = max(1, min(epoch - WINDOW // 2, len(samples) - WINDOW))
    return median(samples[first : first + WINDOW])
