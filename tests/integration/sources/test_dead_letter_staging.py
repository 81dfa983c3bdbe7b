"""Dead letters of a task: any number of them, in little memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from laketier.config import LakeConfig
from laketier.dead_letters import staging
from laketier.dead_letters.ahead import dead_letters_ahead
from laketier.dead_letters.records import scan_dead_letters
from laketier.registry import configure
from laketier.rounds import LogRound, LogRoundSettings, OnBadRecordPolicy
from laketier.rounds.log_engine import LocalEngine
from laketier.spi import (
    BadRecord,
    BucketBounds,
    LogRange,
    LogSplit,
    LogTable,
    OnBadRecord,
    StorageError,
    TableLog,
    fail_on_bad_record,
)

DEAD = LogRoundSettings(on_bad_record=OnBadRecordPolicy.DEAD_LETTER)
SCHEMA = pa.schema([("a", pa.int64())])


@dataclass(frozen=True)
class BadLog(TableLog):
    """``count`` records of ``size`` bytes, none of which is a row, and then one that is."""

    count: int
    size: int
    then: Callable[[], None] = lambda: None
    first: int = 0

    @property
    def table(self) -> LogTable:
        return LogTable("t", "id", SCHEMA)

    def bounds(self) -> Mapping[str, BucketBounds]:
        return {"0": BucketBounds(0, self.first + self.count + 1, None)}

    def plan(self, wanted: LogRange) -> Sequence[LogSplit]:
        return [LogSplit(bucket="0", start=self.first, end=self.first + self.count + 1)]

    def read(
        self, split: LogSplit, *, columns: Sequence[str] | None = None, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        for at in range(self.count):
            on_bad_record(
                BadRecord(bucket="0", offset=self.first + at, error=f"{at} is none", value=b"%d" % at * self.size)
            )
        self.then()
        yield pa.record_batch({"a": [1]}, schema=SCHEMA)


@pytest.fixture
def config(tmp_path: Path) -> LakeConfig:
    values: dict[str, Any] = {"format": "localfile", "warehouse": str(tmp_path / "lake"), "table": "db.t"}
    return configure({"lake": {**values, "pipeline": "p"}}, environment={})


def tier(config: LakeConfig, log: TableLog) -> int:
    made = LogRound(log, config, DEAD)
    engine = LocalEngine(1)
    try:
        return made.finish(engine.run(list(made.plan()))).bad
    finally:
        engine.close()


def test_what_is_held_does_not_grow_with_their_number(config: LakeConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "MAX_BUFFERED_BYTES", 2_000_000)
    tracemalloc.start()
    try:
        assert tier(config, BadLog(count=250, size=100_000)) == 250  # 64 MB
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 40_000_000
    dead_letters = list(scan_dead_letters(config) or ())
    assert sorted(dead_letter.record.offset for dead_letter in dead_letters) == list(range(250))
    assert {
        dead_letter.record.value == b"%d" % dead_letter.record.offset * 100_000 for dead_letter in dead_letters
    } == {True}


def test_a_task_that_fails_leaves_no_dead_letters(config: LakeConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "MAX_BUFFERED_BYTES", 10_000)

    def files() -> dict[Path, int]:
        folder = Path(config.warehouse, "db", "t__dead_letters")
        return {path: path.stat().st_size for path in folder.rglob("*") if path.is_file()}

    def fails() -> None:
        raise StorageError("the log went away")

    assert tier(config, BadLog(count=0, size=0)) == 0
    before = files()
    with pytest.raises(StorageError, match="the log went away"):
        tier(config, BadLog(count=100, size=1_000, then=fails, first=1))
    assert files() == before
    assert list(scan_dead_letters(config) or ()) == []
    assert tier(config, BadLog(count=100, size=1_000, first=1)) == 100
    assert len(list(scan_dead_letters(config) or ())) == 100


def test_only_files_with_dead_letters_ahead_are_read(config: LakeConfig) -> None:
    """A round after one that was killed looks for them, in a table that may have those of years."""
    assert tier(config, BadLog(count=100, size=10)) == 100
    (old,) = Path(config.warehouse, "db", "t__dead_letters").rglob("*.parquet")
    assert tier(config, BadLog(count=100, size=10, first=101)) == 100
    old.write_bytes(b"")
    ahead = dead_letters_ahead(config, {"0": 111}, {"0": 191})
    assert sorted(each.record.offset for each in ahead) == list(range(111, 191))
