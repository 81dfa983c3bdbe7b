"""A cache of metadata that is wrong on purpose, under append rounds from a log and under Spark's stream writer: it may
cost an attempt, and never a row.

Upserts, batches, overwrites and readers are in `test_metadata_cache`. The stream's writer is driven by hand, as Spark
does it: one that is pickled for the tasks, and another one that commits.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from laketier.config import LakeConfig
from laketier.registry import open_lake, open_log_source
from laketier.rounds import LogRound, LogRoundSettings
from laketier.rounds.log_engine import LocalEngine
from laketier.spark import epochs
from laketier.spark.stream_writer import LakeStreamWriter
from laketier.spi import AddColumn, LaketierError, TableInfo
from laketier.tables import described, metadata_cache, opened
from laketier.tables.metadata import forget_process_cache
from laketier_verification.lakes import append, ids, rows_of
from laketier_verification.lines import LinesTable
from poisoned import poisoned

EXTRA = pa.field("extra", pa.string())
POISONS = ["a column", "made anew", "an older snapshot", "another table's", "damaged"]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("LAKETIER_CACHE_DIR", str(tmp_path / "cache"))
    forget_process_cache()
    epochs._prepared.clear()
    metadata_cache()
    yield
    metadata_cache().flush()
    forget_process_cache()


def tried(attempt: object, *, times: int = 3) -> int:
    """How many attempts failed before one did not."""
    for failed in range(times):
        try:
            attempt()  # type: ignore[operator]
        except LaketierError:
            continue
        return failed
    raise AssertionError(f"it failed {times} times")


def poison(config: LakeConfig, how: str, stack: ExitStack, older: TableInfo) -> None:
    """Make what is kept of the table wrong. ``older``: as it was some commits ago."""
    beside = open_lake(replace(config, metadata_cache=False))
    catalog, old = beside.storage.catalog(), beside.load_table()
    match how:
        case "a column":
            catalog.alter_table(config.table, [AddColumn(EXTRA)])
        case "made anew":
            catalog.drop_table(config.table)
            catalog.create_table(config.table, old.descriptor)
        case "an older snapshot":
            old = older
        case "another table's":
            other = replace(config, table=replace(config.table, table="other"), pipeline=None, metadata_cache=False)
            append(open_lake(other), rows_of(77))
            old = open_lake(other).load_table()
        case _:
            assert metadata_cache().flush()
            forget_process_cache()
            for path in Path(metadata_cache().disk.root or "").rglob("*"):
                if path.is_file():
                    path.write_bytes(path.read_bytes()[:-20] + b"\xff" * 30)
            return
    stack.enter_context(poisoned(config, old, believed=how != "another table's"))


def rows_beside(config: LakeConfig) -> list[int]:
    return ids(open_lake(replace(config, metadata_cache=False)))


# -- rounds that append what a log holds -------------------------------------------------------------------------------


@dataclass
class AppendedLines:
    """A log of rows without a key, and the lake table that takes them."""

    source: LinesTable
    config: LakeConfig
    engine: LocalEngine
    expected: list[int] = field(default_factory=list)

    def append(self, *values: int) -> None:
        self.source.append(*values)
        self.expected += values

    def round(self) -> None:
        log = open_log_source("lines", {"path": str(self.source.root)}, name="lines", origin="the test")
        made = LogRound(log.open(self.source.name), self.config, LogRoundSettings())
        tasks = pickle.loads(pickle.dumps(list(made.plan())))  # noqa: S301 - as they travel to executors
        made.finish(self.engine.run(tasks))

    def begin_anew(self) -> None:
        """Whoever drops the table begins the log anew, too."""
        self.expected = []
        self.source.describe(id="another")
        (self.source.folder / "0.jsonl").write_bytes(b"")


@pytest.mark.parametrize("how", POISONS)
def test_an_append_round_by_a_wrong_description_ends_right(
    tmp_path: Path, lake_config: LakeConfig, engine: LocalEngine, how: str
) -> None:
    source = LinesTable(tmp_path / "logs", "t").create({"id": "int64", "name": "string"})
    lines = AppendedLines(source, lake_config, engine)
    lines.append(1, 2)
    lines.round()
    older = open_lake(lake_config).load_table()
    lines.append(3)
    lines.round()
    with ExitStack() as stack:
        poison(lake_config, how, stack, older)
        if how == "made anew":
            lines.begin_anew()
        lines.append(4, 5)
        failed = tried(lines.round)
    lines.append(6)
    lines.round()
    assert failed <= 1
    assert rows_beside(lake_config) == sorted(lines.expected)


@pytest.mark.parametrize("tier", ["memory", "disk"])
def test_the_description_of_another_table_is_never_served(lake_config: LakeConfig, tier: str) -> None:
    """A round by it would be right, in the wrong table."""
    append(open_lake(replace(lake_config, pipeline=None)), rows_of(1))
    with ExitStack() as stack:
        poison(lake_config, "another table's", stack, open_lake(lake_config).load_table())
        if tier == "disk":
            forget_process_cache()
        for look in (opened, described):
            found = look(open_lake(lake_config))
            assert found is None or found.path == lake_config.table


# -- the stream's writer -----------------------------------------------------------------------------------------------

SCHEMA = StructType([StructField("id", LongType()), StructField("name", StringType())])


@dataclass
class Stream:
    """A checkpoint, and epochs as Spark runs them."""

    config: LakeConfig
    checkpoint: Path
    expected: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        (self.checkpoint / "offsets").mkdir(parents=True)
        (self.checkpoint / "metadata").write_text('{"id":"run-1"}')

    def epoch(self, number: int, *values: int, attempts: int = 1) -> int:
        """Run it until it is committed. Returns how many attempts failed."""
        (self.checkpoint / f"offsets/{number}").write_text(f'v1\n{{}}\n{{"position":{number}}}')

        def attempt() -> None:
            planned: LakeStreamWriter = pickle.loads(pickle.dumps(self._writer()))  # noqa: S301 - as Spark does
            answer = planned.write(iter([rows_of(*values)]))
            self._writer().commit([answer], number)

        failed = tried(attempt, times=attempts)
        self.expected += values
        return failed

    def _writer(self) -> LakeStreamWriter:
        return LakeStreamWriter(self.config, SCHEMA, overwrite=False, checkpoint=str(self.checkpoint))


@pytest.mark.parametrize("restarted", [pytest.param(False, marks=pytest.mark.deep), True])
@pytest.mark.parametrize("how", POISONS)
def test_an_epoch_of_a_stream_by_a_wrong_description_ends_right(
    tmp_path: Path, lake_config: LakeConfig, how: str, restarted: bool
) -> None:
    """Also in a process that planned the epoch before, and keeps the table of it for a while."""
    stream = Stream(lake_config, tmp_path / "checkpoint")
    stream.epoch(0, 1, 2)
    older = open_lake(lake_config).load_table()
    stream.epoch(1, 3)
    number = 2
    with ExitStack() as stack:
        poison(lake_config, how, stack, older)
        if restarted:
            epochs._prepared.clear()
        if how == "made anew":  # with a checkpoint of its own
            stream, number = Stream(lake_config, tmp_path / "another"), 0
        failed = stream.epoch(number, 4, 5, attempts=3)
    stream.epoch(number + 1, 6)
    assert failed <= 1
    assert rows_beside(lake_config) == sorted(stream.expected)


def test_an_epoch_is_planned_with_nothing_that_was_kept_of_its_first_attempt(
    tmp_path: Path, lake_config: LakeConfig
) -> None:
    """Spark plans in one process and commits in another, so what failed there is not thrown away here."""
    stream = Stream(lake_config, tmp_path / "checkpoint")
    stream.epoch(0, 1)
    old = open_lake(lake_config).load_table()
    beside = open_lake(replace(lake_config, metadata_cache=False))
    beside.storage.catalog().alter_table(lake_config.table, [AddColumn(EXTRA)])
    epochs._prepared.clear()
    (stream.checkpoint / "offsets/1").write_text('v1\n{}\n{"position":1}')
    with poisoned(lake_config, old):
        pickle.dumps(stream._writer())  # and its commit fails, elsewhere
        again: LakeStreamWriter = pickle.loads(pickle.dumps(stream._writer()))  # noqa: S301 - as Spark does
        stream._writer().commit([again.write(iter([rows_of(9)]))], 1)
    assert rows_beside(lake_config) == [1, 9]


def test_a_table_is_loaded_anew_for_each_tenth_epoch_that_follows(tmp_path: Path, lake_config: LakeConfig) -> None:
    """A committer looks through all commits since then, so these are few however fast epochs come."""
    stream = Stream(lake_config, tmp_path / "checkpoint")
    loaded = []
    for number in range(12):
        stream.epoch(number, number)
        (kept,) = epochs._prepared.values()
        loaded.append(kept.loaded_for)
    assert loaded == [0] * 10 + [10] * 2
    assert rows_beside(lake_config) == stream.expected
