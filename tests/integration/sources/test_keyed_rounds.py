"""Rounds with a primary key, on every format: per key the newest change is there, once, and what was deleted is not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import keyed_lines
from depth import deep_where
from keyed_lines import COLUMNS, KeyedLines, config_of
from laketier.config import LakeConfig
from laketier.dead_letters.failpoints import DEAD_LETTERS as DEAD_LETTERS_PUBLISHED
from laketier.dead_letters.records import replayed_table, scan_dead_letters
from laketier.dead_letters.renaming import rename_pipeline
from laketier.kit.failpoints import VARIABLE, observed
from laketier.registry import configure, open_lake
from laketier.rounds import OnBadRecordPolicy, splits, upsert
from laketier.rounds.log_engine import LocalEngine
from laketier.service.schedule import is_retryable
from laketier.spi import ConfigError, IncompatibleData, IncompatibleTable, Overtaken, TableNotFound, UnsupportedType
from laketier.tables import prepare_table
from laketier.tiering import RoundOutcome, failpoints
from laketier_verification.lines import LinesTable

KILLED = ("round.opened", "publish.before", "publish.between_record_and_commit", "publish.after", "ack.before")
FARTHEST = (KILLED[0], KILLED[-1])
"""From the commit: deep, as the next ones come to the same."""
LANDED = ("publish.after", "ack.before")


class Killed(BaseException):
    """The driver is gone."""


@pytest.fixture
def keyed(tmp_path: Path, lake_config: LakeConfig, engine: LocalEngine) -> KeyedLines:
    return KeyedLines(LinesTable(tmp_path / "logs", "t").create(COLUMNS, buckets=2), lake_config, engine)


def bucketed(keyed: KeyedLines) -> KeyedLines:
    config = keyed.config
    values = {"lake.format": config.format, "lake.warehouse": config.warehouse, "lake.table": "db.b"}
    buckets = "iceberg:bucket(3, id)" if config.format == "iceberg" else "bucket(3, id)"
    return replace(keyed, config=configure(values | {"lake.pipeline": "b", "lake.bucket-by": buckets}))


def test_the_newest_change_of_a_key_is_there(keyed: KeyedLines) -> None:
    keyed.append(*(("+I", key, "a") for key in range(10)))
    first = keyed.round()
    assert (first.outcome, first.rows) == (RoundOutcome.PUBLISHED, 10)
    keyed.append(("-U", 1, "a"), ("+U", 1, "b"), ("-D", 2, ""), ("+I", 10, "c"), ("+U", 3, "b"), ("-D", 3, ""))
    keyed.append(("-D", 4, ""), ("+I", 4, "again"), ("-D", 77, ""))
    assert keyed.round().outcome is RoundOutcome.PUBLISHED
    assert keyed.is_exact
    assert keyed.round().outcome is None, "nothing new: nothing is committed"
    keyed.append(*(("-D", key, "") for key in range(20)))
    assert keyed.round().rows == 0
    assert keyed.rows == []
    lake = open_lake(keyed.config)
    table = lake.load_table().descriptor
    assert table.primary_key == ("id",)
    assert table.schema.names == ["id", "name"], "what a row went through is no column of it"
    assert not table.schema.field("id").nullable


def test_tasks_share_the_buckets_of_a_table(keyed: KeyedLines, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (splits, upsert):
        monkeypatch.setattr(module, "WEIGHT_OF_A_TASK", 2)
    if keyed.config.format == "lance":
        pytest.skip("Lance tables have no buckets")
    keyed = bucketed(keyed)
    for value in "abc":
        keyed.append(*(("+U", key, value) for key in range(12)), ("-D", ord(value) % 12, ""))
        _, tasks = keyed.planned()
        assert len(tasks) == 3
        keyed.round()
        assert keyed.is_exact


@pytest.mark.parametrize("point", failpoints.PROTOCOL[:4])
def test_a_round_that_dies_is_read_again(keyed: KeyedLines, point: str) -> None:
    keyed.append(*(("+I", key, "a") for key in range(6)))
    keyed.round()
    keyed.append(("+U", 1, "b"), ("-D", 2, ""))

    def crash(name: str) -> None:
        if name == point:
            raise Killed

    with observed(crash), pytest.raises(Killed):
        keyed.round()
    keyed.append(("+U", 2, "back"), ("-D", 1, ""))
    assert keyed.round().outcome is RoundOutcome.PUBLISHED
    assert keyed.is_exact


def test_another_writer_between_makes_the_round_merge_anew(keyed: KeyedLines) -> None:
    """Here another pipeline: its keys are its own, and its files may be those that this round replaces."""
    keyed.append(*(("+I", key, "a") for key in range(4)))
    keyed.round()
    other = replace(keyed, config=replace(keyed.config, pipeline="q"), expected={})
    keyed.append(("+U", 1, "b"))
    made, tasks = keyed.planned()
    answers = list(keyed.engine.run(tasks))
    before = files_of(keyed)
    other.round()
    with pytest.raises(Overtaken, match="the table changed while rows were merged") as refused:
        made.finish(answers)
    assert is_retryable(refused.value)
    assert files_of(keyed) - before, "the other's files are there"
    assert keyed.round().outcome is RoundOutcome.PUBLISHED
    assert keyed.is_exact


def files_of(keyed: KeyedLines) -> set[Path]:
    return {path for path in Path(keyed.config.warehouse).rglob("*") if path.is_file()}


@pytest.mark.parametrize("lake_config", ["localfile"], indirect=True)
def test_a_renamed_pipeline_with_letters_gets_no_table_of_replays(keyed: KeyedLines) -> None:
    """Letters of a table with a primary key are never replayed."""
    keyed.append(("+I", 1, "a"))
    keyed.source.append_raw("no change at all", bucket=0)
    keyed.round(on_bad_record=OnBadRecordPolicy.DEAD_LETTER)
    assert keyed.config.pipeline is not None
    rename_pipeline(keyed.config, keyed.config.pipeline, "q")
    with pytest.raises(TableNotFound):
        open_lake(replace(keyed.config, table=replayed_table(keyed.config.table))).load_table()
    renamed = replace(keyed, config=replace(keyed.config, pipeline="q"))
    keyed.append(("+U", 1, "b"))
    renamed.round(on_bad_record=OnBadRecordPolicy.DEAD_LETTER)
    assert renamed.rows == [(1, "b")]


def test_appending_to_a_table_with_a_primary_key_is_refused(keyed: KeyedLines) -> None:
    keyed.append(("+I", 1, "a"))
    keyed.round()
    rows = pa.schema([("id", pa.int64()), ("name", pa.string())])
    with pytest.raises(ConfigError, match="the table has the primary key id, and these rows would be appended"):
        prepare_table(open_lake(keyed.config), rows)


def test_a_table_that_was_appended_to_gets_no_primary_key(keyed: KeyedLines) -> None:
    rows = pa.schema([("id", pa.int64()), ("name", pa.string())])
    prepare_table(open_lake(keyed.config), rows)
    keyed.append(("+I", 1, "a"))
    with pytest.raises(IncompatibleTable, match="the primary key is id, and the table's is not set"):
        keyed.round()


def test_what_can_not_be_merged_is_told(keyed: KeyedLines) -> None:
    keyed.append(("+I", 1, "a"), ("?", 2, "b"))
    with pytest.raises(IncompatibleData, match=r"column 'op' has '\?', which is no change type"):
        keyed.round()
    keyed.source.describe(columns={"id": "double", "name": "string", "op": "string"})
    with pytest.raises(UnsupportedType, match="'id' is double, which can't be part of a primary key"):
        keyed.round()


def test_a_change_that_is_none_is_a_bad_record_and_stops_nothing(keyed: KeyedLines) -> None:
    keyed.append(("+I", 1, "a"), ("+I", 2, "b"))
    for line in ('{"id": 3, "name": "c", "op": "r"}', '{"name": "d", "op": "+I"}'):
        keyed.source.append_raw(line, bucket=1)
    keyed.append(("+U", 2, "c"))
    with pytest.raises(IncompatibleData, match="set on-bad-record to dead-letter or drop"):
        keyed.round()
    settings = {"on_bad_record": OnBadRecordPolicy.DEAD_LETTER}

    def crash(name: str) -> None:
        if name == DEAD_LETTERS_PUBLISHED:
            raise Killed

    with observed(crash), pytest.raises(Killed):
        keyed.round(**settings)
    assert keyed.round(**settings).bad == 2
    assert keyed.is_exact
    letters = [each.record for each in scan_dead_letters(keyed.config) or ()]
    assert all("offsets 0 to 2" in letter.error and (letter.bucket, letter.offset) == ("1", 2) for letter in letters)
    assert sorted("no change type; it is {'id': 3" in letter.error for letter in letters) == [False, True]
    keyed.source.append_raw('{"op": null}', bucket=0)
    keyed.append(("-D", 1, ""))
    assert keyed.round(on_bad_record=OnBadRecordPolicy.DROP).bad == 1
    assert keyed.is_exact


@pytest.mark.parametrize("key", ["partition-by", "bucket-by"])
def test_a_key_must_stay_where_it_is(keyed: KeyedLines, key: str) -> None:
    config = keyed.config
    values = {"lake.format": config.format, "lake.warehouse": config.warehouse, "lake.table": "db.p"}
    layout = {"partition-by": "name", "bucket-by": "bucket(2, name)"}[key]
    keyed = replace(keyed, config=configure(values | {"lake.pipeline": "p", f"lake.{key}": layout}))
    keyed.append(("+I", 1, "a"))
    with pytest.raises(ConfigError, match="by 'name', which is not part of its primary key"):
        keyed.round()


@pytest.mark.parametrize("point", deep_where([(point,) for point in KILLED], lambda point: point in FARTHEST))
def test_a_driver_that_is_killed_leaves_a_table_that_goes_on_exactly(
    tmp_path: Path, engine: LocalEngine, point: str
) -> None:
    """SIGKILL in another process, then the same round again in a new one: on Delta, whose commit has most parts."""
    logs = LinesTable(tmp_path / "logs", "t").create(COLUMNS, buckets=2)
    keyed = KeyedLines(logs, config_of(tmp_path / "lake", "delta"), engine)
    keyed.append(*(("+I", key, "a") for key in range(6)))
    keyed.round()
    before = keyed.rows
    keyed.append(("+U", 1, "b"), ("-D", 2, ""), ("+I", 9, "c"))
    command = [sys.executable, keyed_lines.__file__, str(logs.root), keyed.config.warehouse, "delta"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    killed = subprocess.run(command, env={**environment, VARIABLE: f"{point}=kill"}, capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert keyed.rows == (sorted(keyed.expected.items()) if point in LANDED else before), "all of it, or nothing"
    again = subprocess.run(command, env=environment, capture_output=True, check=True, text=True)
    assert again.stdout.strip() == ("None" if point in LANDED else "published")
    assert keyed.is_exact
