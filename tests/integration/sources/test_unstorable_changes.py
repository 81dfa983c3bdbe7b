"""Changes whose row a keyed table can't store: taken aside as unreadable ones are. The key keeps what it had before."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from laketier.config import LakeConfig
from laketier.dead_letters import failpoints
from laketier.dead_letters.records import scan_dead_letters
from laketier.kit.failpoints import observed
from laketier.registry import configure, open_lake, open_log_source
from laketier.rounds import LogRound, LogRoundResult, LogRoundSettings, OnBadRecordPolicy, splits, upsert
from laketier.rounds.keyed import KeyedLog
from laketier.rounds.log_engine import LocalEngine
from laketier.spi import ScanRequest, TableLog, UnstorableRows
from laketier.tables import TableLayout, prepare_table
from laketier.tables.scan import scan
from laketier_verification.lines import CutLog, LinesTable

DEAD, FAIL = (LogRoundSettings(on_bad_record=OnBadRecordPolicy(name)) for name in ("dead-letter", "fail"))
FORMATS = ("delta", "iceberg", "lance", "localfile")


class Unrecorded(CutLog):
    """As of a source that can't tell which record a row came from."""

    read_storable = TableLog.read_storable


@dataclass
class Changes:
    """A log of changes, and the lake table that follows it, whose column ``v`` takes no null."""

    source: LinesTable
    config: LakeConfig
    engine: LocalEngine

    def append(self, *changes: tuple[str, int, Any], bucket: int = 0) -> None:
        lines = [json.dumps({"id": key, "v": value, "op": op}) for op, key, value in changes]
        self.source.append_raw(*lines, bucket=bucket)

    def log(self) -> TableLog:
        source = open_log_source("lines", {"path": str(self.source.root)}, name="lines", origin="the test")
        return source.open(self.source.name)

    def planned(self, settings: LogRoundSettings = DEAD, log: TableLog | None = None) -> LogRound:
        return LogRound(KeyedLog.of(log or self.log(), ("id",), "op"), self.config, settings)

    def round(self, settings: LogRoundSettings = DEAD, log: TableLog | None = None) -> LogRoundResult:
        made = self.planned(settings, log)
        return made.finish(self.engine.run(list(made.plan())))

    @property
    def rows(self) -> dict[Any, Any]:
        lake = open_lake(self.config)
        _, batches = scan(lake.source(lake.load_table()), ScanRequest())
        rows = [row for batch in batches for row in batch.to_pylist()]
        assert len(rows) == len({row["id"] for row in rows})
        return {row["id"]: row["v"] for row in rows}

    def letters(self) -> list[dict[str, Any]]:
        found = sorted((each.record for each in scan_dead_letters(self.config) or ()), key=lambda each: each.offset)
        assert all("can't be stored" in each.error for each in found)
        return [json.loads(each.value or b"") for each in found]


_ROWS = pa.schema([pa.field("id", pa.int64(), False), pa.field("v", pa.string(), False)])
_COLUMNS = {"id": "int64", "v": "string", "op": "string"}


def _changes(
    tmp_path: Path,
    engine: LocalEngine,
    format: str,
    schema: pa.Schema = _ROWS,
    columns: Mapping[str, str] = _COLUMNS,
    **options: str,
) -> Changes:
    values = {"lake.format": format, "lake.warehouse": str(tmp_path / "lake"), "lake.table": "db.t"}
    config = configure({**values, "lake.pipeline": "tests.lines.t", **options}, environment={})
    prepare_table(open_lake(config), schema, TableLayout(primary_key=("id",)))
    return Changes(LinesTable(tmp_path / "logs", "t").create(columns, buckets=2), config, engine)


@pytest.fixture(params=FORMATS)
def changes(request: pytest.FixtureRequest, tmp_path: Path, engine: LocalEngine) -> Changes:
    return _changes(tmp_path, engine, request.param)


@pytest.fixture
def local(tmp_path: Path, engine: LocalEngine) -> Changes:
    return _changes(tmp_path, engine, "localfile")


def test_a_key_keeps_what_it_had_until_its_next_good_change(changes: Changes) -> None:
    changes.append(("+I", 1, "a"), ("+I", 2, "a"), ("+I", 3, "a"))
    changes.round()
    changes.append(("+U", 1, None), ("+U", 2, "b"), ("+U", 2, None), ("-D", 3, None), ("+I", 3, None), ("+I", 4, None))
    changes.append(("+I", 5, "a"), ("-U", 5, None), ("+U", 5, "b"))
    done = changes.round()
    assert done.bad == 4
    assert changes.rows == {1: "a", 2: "b", 5: "b"}, "what was deleted is gone, though its key's next row is none"
    assert [letter["id"] for letter in changes.letters()] == [1, 2, 3, 4]
    changes.append(("+U", 1, "c"), ("-D", 2, None), ("+I", 3, "c"), ("+I", 4, "c"))
    assert changes.round().bad == 0
    assert changes.rows == {1: "c", 3: "c", 4: "c", 5: "b"}
    assert len(changes.letters()) == 4


def test_a_table_that_stops_names_the_change_and_both_ways_out(changes: Changes) -> None:
    changes.append(("+I", 1, "a"), ("+I", 2, None))
    with pytest.raises(UnstorableRows, match="the record at offset 1 of bucket '0' is a row that") as caught:
        changes.round(FAIL)
    assert "set on-bad-record to dead-letter or drop" in str(caught.value)
    assert changes.rows == {}
    changes.append(("+U", 2, "b"))
    assert (changes.round(FAIL).bad, changes.rows) == (0, {1: "a", 2: "b"}), "its newest change can be stored"


def test_a_column_that_the_source_has_no_more_is_no_hindrance(tmp_path: Path, engine: LocalEngine) -> None:
    wider = _ROWS.append(pa.field("former", pa.int64()))
    changes = _changes(tmp_path, engine, "localfile", wider)
    changes.append(("+I", 1, "a"), ("+I", 2, None))
    assert changes.round().bad == 1
    assert changes.rows == {1: "a"}


@pytest.mark.parametrize("format", FORMATS)
def test_what_the_table_would_round_is_taken_aside_and_what_a_delete_says_beside_its_key_is_not_looked_at(
    tmp_path: Path, engine: LocalEngine, format: str
) -> None:
    """Nanoseconds that are no whole microseconds."""
    rows = pa.schema([pa.field("id", pa.timestamp("us"), False), pa.field("v", pa.timestamp("us"))])
    columns = {"id": "timestamp[ns]", "v": "timestamp[ns]", "op": "string"}
    changes = _changes(tmp_path, engine, format, rows, columns)
    changes.append(("+I", 1000, 1000), ("+I", 2000, 1001), ("+I", 3001, 1000), ("+I", 4000, 1000))
    assert changes.round().bad == 2
    assert {row.microsecond: value.microsecond for row, value in changes.rows.items()} == {1: 1, 4: 1}
    changes.append(("-U", 1000, 1001), ("+U", 1000, 2000), ("-D", 2000, 1001), ("-D", 4000, 1001), ("-D", 3001, None))
    assert changes.round().bad == 1
    assert {row.microsecond: value.microsecond for row, value in changes.rows.items()} == {1: 2}
    assert [letter["id"] for letter in changes.letters()] == [2000, 3001, 3001]


def test_a_round_that_was_killed_after_its_letters_tells_them_once(local: Changes) -> None:
    local.append(("+I", 1, "a"), ("+U", 1, None), ("+I", 2, None))
    made = local.planned()
    answers = list(local.engine.run(list(made.plan())))

    class Killed(BaseException):
        """Nothing on the way catches it."""

    def kill(name: str) -> None:
        if name == failpoints.DEAD_LETTERS:
            raise Killed

    with observed(kill), pytest.raises(Killed):
        made.finish(answers)
    assert (local.rows, len(local.letters())) == ({}, 2)
    local.append(("+U", 2, "b"), ("+I", 3, None))
    assert local.round(log=CutLog(local.log())).bad == 3
    assert local.rows == {1: "a", 2: "b"}
    assert [letter["id"] for letter in local.letters()] == [1, 2, 3]


def test_changes_of_a_source_that_knows_no_records_are_told_by_their_values(local: Changes) -> None:
    local.append(("+I", 1, "a"), ("+U", 1, None), ("?", 9, "no change"), ("+I", 2, "b"))
    assert local.round(log=Unrecorded(local.log())).bad == 2
    assert local.rows == {1: "a", 2: "b"}
    errors = sorted(each.record.error for each in scan_dead_letters(local.config) or ())
    assert "no change type" in errors[1]
    assert "it is {'id': 1, 'v': None, 'op': '+U'}" in errors[0]


def test_tasks_that_share_records_take_none_aside_and_say_how_it_can_be_done(
    tmp_path: Path, engine: LocalEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One would leave out what another merges in part."""
    options: dict[str, Any] = {"lake.bucket-by": "bucket(3, id)"}
    shared = _changes(tmp_path, engine, "localfile", **options)
    shared.append(*(("+I", key, "a") for key in range(8)), ("+I", 8, None))
    with monkeypatch.context() as small:
        for module in (splits, upsert):
            small.setattr(module, "WEIGHT_OF_A_TASK", 2)
        with pytest.raises(UnstorableRows, match=r"set max-offsets-per-round so low.* 1 where it is a file"):
            shared.round()
    assert shared.rows == {}
    assert shared.round().bad == 1
    assert shared.rows == dict.fromkeys(range(8), "a")
