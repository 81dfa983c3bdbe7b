"""How often a steady round loads its table: once when it begins, and once more right before it publishes."""

from __future__ import annotations

import gc
import itertools
import pickle
import sys
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from keyed_lines import KeyedLines
from laketier.cli.app import main
from laketier.config import LakeConfig
from laketier.registry import open_lake
from laketier.rounds import LogRound, LogRoundSettings, OnBadRecordPolicy
from laketier.rounds.log_engine import LocalEngine
from laketier.rounds.log_task import run_log_task
from laketier.spark.batch_writer import LakeBatchWriter
from laketier.spi import Feature, ScanRequest, TableLog, support_of
from laketier.tables import open_source
from laketier.union_read.planning import plan_union
from laketier_verification.lakes import append, lake_at, rows_of
from laketier_verification.lines import LinesTable
from table_loads import Loads, counted_loads

COLUMNS = {"id": "int64", "name": "string", "op": "string"}
DEAD = LogRoundSettings(on_bad_record=OnBadRecordPolicy.DEAD_LETTER)


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch, lake_config: LakeConfig) -> Loads:
    return counted_loads(monkeypatch, lake_config.format)


@pytest.fixture
def lines(tmp_path: Path, lake_config: LakeConfig, engine: LocalEngine) -> KeyedLines:
    return KeyedLines(LinesTable(tmp_path / "logs", "t").create(COLUMNS, buckets=2), lake_config, engine)


def from_log(lines: KeyedLines, log: TableLog, settings: LogRoundSettings, loads: Loads) -> None:
    """A round whose tasks travel to executors."""
    made = LogRound(log, lines.config, settings)
    tasks = pickle.loads(pickle.dumps(list(made.plan())))  # noqa: S301 - our own bytes
    with loads.at("executors"):
        answers = [run_log_task(task) for task in tasks]
    assert made.finish(answers).rows


def steady(loads: Loads, one: Callable[[], None]) -> tuple[int, int, int]:
    """Loads on the driver and on executors, and committers made, by the third of three rounds."""
    for _ in range(3):
        loads.reset()
        one()
    return loads.figures


def said(config: LakeConfig, what: str, found: tuple[int, int, int]) -> tuple[int, int, int]:
    print(f"{config.format} {what}: {found[0]} loads on the driver, {found[1]} on executors, {found[2]} committers")
    return found


def test_an_append(lines: KeyedLines, loads: Loads) -> None:
    def one() -> None:
        lines.append(("+I", len(lines.expected), "n"))
        from_log(lines, lines.opened().log, LogRoundSettings(), loads)

    assert said(lines.config, "append", steady(loads, one)) == (2, 0, 1)


def test_a_round_without_news(lines: KeyedLines, loads: Loads) -> None:
    """Most rounds of a service with many tables."""
    lines.append(("+I", 1, "n"))
    from_log(lines, lines.opened().log, LogRoundSettings(), loads)

    def one() -> None:
        assert list(LogRound(lines.opened().log, lines.config, LogRoundSettings()).plan()) == []

    assert said(lines.config, "nothing new", steady(loads, one)) == (0, 0, 0)
    assert loads.checks == 1


def test_without_the_cache_a_round_without_news_loads_its_table(lines: KeyedLines, loads: Loads) -> None:
    lines.config = replace(lines.config, metadata_cache=False)
    lines.append(("+I", 1, "n"))
    from_log(lines, lines.opened().log, LogRoundSettings(), loads)

    def one() -> None:
        assert list(LogRound(lines.opened().log, lines.config, LogRoundSettings()).plan()) == []

    assert said(lines.config, "nothing new, without the cache", steady(loads, one)) == (1, 0, 0)
    assert loads.checks == 0


def test_a_read(lake_config: LakeConfig, loads: Loads) -> None:
    """The plan looks for itself, so that it has the newest snapshot."""
    append(lake_at(Path(lake_config.warehouse), lake_config.format), rows_of(1), epoch=0)

    def one() -> None:
        assert len(open_source(lake_config).plan(ScanRequest()).splits) == 1

    assert said(lake_config, "read", steady(loads, one)) == (1, 0, 0)
    assert loads.checks == 1


def test_an_append_with_dead_letters(lines: KeyedLines, loads: Loads) -> None:
    """Of each of the two tables as often."""

    def one() -> None:
        lines.append(("+I", len(lines.expected), "n"))
        lines.source.append_raw("poison")
        from_log(lines, lines.opened().log, DEAD, loads)

    assert said(lines.config, "append and dead letters", steady(loads, one)) == (4, 0, 2)


def test_an_upsert(lines: KeyedLines, loads: Loads) -> None:
    def one() -> None:
        lines.append(("+U", 1, "n"))
        from_log(lines, lines.opened(), LogRoundSettings(), loads)

    # Lance reads rows through a dataset: a task opens the version that a split names for its keys, and for its rows.
    executors = 2 if lines.config.format == "lance" else 0
    assert said(lines.config, "upsert", steady(loads, one)) == (2, executors, 1)


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_batch_of_spark(lake_config: LakeConfig, loads: Loads, overwrite: bool) -> None:
    """Planned in one process, staged in others, and committed in another one."""
    schema = StructType([StructField("id", LongType()), StructField("name", StringType())])

    epochs = itertools.count()

    def one() -> None:
        made = LakeBatchWriter(replace(lake_config, epoch=next(epochs)), schema, overwrite=overwrite)
        travelled = pickle.loads(pickle.dumps(made))  # noqa: S301 - our own bytes
        with loads.at("executors"):
            message = travelled.write(iter([pa.record_batch({"id": [1], "name": ["n"]})]))
        travelled.commit([message])

    assert said(lake_config, "overwrite" if overwrite else "batch", steady(loads, one)) == (2, 0, 1)


@pytest.mark.each_format  # each factory leaves it out itself
def test_a_factory_and_a_source_keep_no_handle(lake_config: LakeConfig) -> None:
    """They outlive it: a committer must not find it, and what a library holds for a table is not small."""
    append(lake_at(Path(lake_config.warehouse), lake_config.format), rows_of(1), epoch=0)
    lake = open_lake(lake_config)
    table = lake.load_table()
    handle = weakref.ref(table.handle)
    kept = lake.tiering_factory(table), lake.source(table)
    assert handle() is not None
    del table
    gc.collect()
    assert handle() is None
    assert len(kept) == 2


def test_a_union_read_makes_no_committer(lines: KeyedLines, loads: Loads) -> None:
    lines.append(("+I", 1, "n"))
    from_log(lines, lines.opened().log, LogRoundSettings(), loads)
    lines.append(("+I", 2, "n"))
    loads.reset()
    planned = plan_union(lines.config, lines.opened().log)
    assert len(planned.splits) == 2
    # One look, and one by the plan of the snapshot that it saw.
    assert said(lines.config, "union read", loads.figures) == (2, 0, 0)


def test_status_makes_no_committer(lake_config: LakeConfig, loads: Loads, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = lake_at(Path(lake_config.warehouse), lake_config.format)
    append(lake, rows_of(1), epoch=0)
    loads.reset()
    monkeypatch.setattr(
        sys, "argv", ["laketier", "status", "db.t", "-f", lake_config.format, "-w", lake_config.warehouse]
    )
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    indexed = support_of(lake.plugin.features, Feature.INDEXING).full  # its indexes are looked at, too
    assert said(lake_config, "status", loads.figures) == (1 + indexed, 0, 0)
