"""Lake tables as logs: what each commit appended, on every format, and rounds from one format into another."""

from __future__ import annotations

import itertools
import pickle
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import feather_lake.plugin
import pyarrow as pa
import pytest

from followed import FOLLOWED, NAME, Followed, ids_in
from laketier.config import LakeConfig
from laketier.kit.failpoints import observed
from laketier.registry import open_log_source
from laketier.rounds import LogRound, LogRoundResult, LogRoundSettings, LogTask, OnExpired
from laketier.rounds.keyed import KeyedLog
from laketier.rounds.log_engine import LocalEngine
from laketier.service.schedule import is_retryable
from laketier.spi import (
    ConfigError,
    Feature,
    FeatureNotSupported,
    IncompatibleData,
    LogOffsets,
    LogRange,
    OffsetsExpired,
    PartitionField,
    RowsChanged,
    ScanRequest,
    SchemaChanged,
    StorageError,
    TableDescriptor,
    TableNotFound,
    TablePath,
    unsupported,
)
from laketier.tiering import RoundOutcome, failpoints
from laketier.union_read.planning import plan_union, union_batches
from laketier_verification.lakes import SCHEMA, append, ids, lake_at, read_all, rows_of

FORMATS = ["delta", "iceberg", "lance", "localfile"]
TARGETS = {"localfile": "lance", "delta": "localfile", "iceberg": "delta", "lance": "iceberg"}
"""Each format is read once, and written once."""


others_write = pytest.mark.parametrize("followed", ["delta", "iceberg", "lance"], indirect=True)
"""Local files are never compacted, have no deletes, and keep everything."""


@pytest.fixture(params=FORMATS)
def followed(request: pytest.FixtureRequest, tmp_path: Path) -> Followed:
    return FOLLOWED[request.param](tmp_path / "from").create()


@dataclass
class Tiered:
    followed: Followed
    config: LakeConfig
    engine: LocalEngine

    def round(self, settings: LogRoundSettings | None = None, **options: Any) -> LogRoundResult:
        made = LogRound(self.followed.log(**options), self.config, settings or LogRoundSettings())
        return made.finish(self.engine.run(made.plan()))

    @property
    def ids(self) -> list[int]:
        return ids(lake_at(Path(self.config.warehouse), self.config.format, str(self.config.table)))

    def union(self, **request: Any) -> list[int]:
        _, batches = union_batches(self.config, self.followed.log(), ScanRequest(**request))
        return sorted(i for batch in batches for i in batch["id"].to_pylist())


@pytest.fixture
def tiered(followed: Followed, tmp_path: Path, engine: LocalEngine) -> Tiered:
    lake = lake_at(tmp_path / "to", TARGETS[followed.format], "db.t", lake__pipeline="tests.src.s")
    return Tiered(followed, lake.config, engine)


# -- what a range holds ----------------------------------------------------------------------------------------------


def test_each_version_gives_what_its_commit_appended(followed: Followed) -> None:
    marks = [followed.latest]
    for number in range(3):
        (followed.append if number % 2 else followed.foreign_append)(number * 10, number * 10 + 1)
        marks.append(followed.latest)
    log = followed.log()
    for first, last in itertools.combinations_with_replacement(range(4), 2):
        expected = [number * 10 + i for number in range(first, last) for i in (0, 1)]
        assert ids_in(log, marks[first], marks[last]) == expected
    assert ids_in(log, 0, marks[-1]) == [0, 1, 10, 11, 20, 21]
    followed.append(30)
    assert ids_in(log, marks[1], marks[3]) == [10, 11, 20, 21], "the same again"
    assert ids_in(log, 0, marks[2]) == [0, 1, 10, 11], "of the snapshot at its end"


@others_write
def test_compaction_appends_nothing(followed: Followed) -> None:
    start = followed.latest
    followed.foreign_append(1, 2)
    followed.append(3)
    middle = followed.latest
    followed.compact()
    after = followed.latest
    assert after > middle
    followed.foreign_append(4)
    assert followed.ids(middle, after) == []
    assert followed.ids(start, followed.latest) == [1, 2, 3, 4]
    assert followed.ids(after, followed.latest) == [4]


@others_write
def test_rows_that_were_deleted_stop_the_log_or_are_passed_over(followed: Followed) -> None:
    start = followed.latest
    followed.foreign_append(1, 2, 3)
    before = followed.latest
    followed.delete(2)
    after = followed.latest
    followed.foreign_append(4)
    with pytest.raises(RowsChanged, match=f"version {before} .* deleted, updated or replaced") as refused:
        followed.ids(start, followed.latest)
    assert not is_retryable(refused.value)
    assert "read.skip-changes" in str(refused.value)
    assert followed.ids(start, followed.latest, skip_changes=True) == [1, 2, 3, 4]
    assert followed.ids(after, followed.latest) == [4]
    assert followed.ids(0, followed.latest) == [1, 3, 4], "a snapshot has what is left"


def test_rows_that_were_replaced_stop_the_log_or_are_passed_over(
    followed: Followed, caplog: pytest.LogCaptureFixture
) -> None:
    followed.append(1)
    start = followed.latest
    followed.append(2)
    followed.replace(3)
    followed.append(4)
    with pytest.raises(RowsChanged):
        followed.ids(start, followed.latest)
    assert followed.ids(start, followed.latest, skip_changes=True) == [2, 4]
    assert "is skipped" in caplog.text
    assert followed.ids(0, followed.latest) == [3, 4]


@others_write
def test_what_has_expired_is_refused_and_the_snapshot_is_not(followed: Followed) -> None:
    start = followed.latest
    for number in range(3):
        followed.append(number)
    followed.expire()
    bounds = followed.log().bounds()["table"]
    assert start < bounds.earliest <= bounds.latest
    assert bounds.initial == 0
    with pytest.raises(OffsetsExpired):
        followed.ids(start, bounds.latest)
    assert followed.ids(0, bounds.latest) == [0, 1, 2]
    followed.foreign_append(9)
    assert followed.ids(bounds.latest, followed.latest) == [9]


def test_a_log_travels_with_its_splits(followed: Followed) -> None:
    followed.append(1, 2)
    log = followed.log()
    wanted = LogRange(LogOffsets({"table": 0}), LogOffsets({"table": followed.latest}))
    there, splits = pickle.loads(pickle.dumps((log, log.plan(wanted))))  # noqa: S301 - as Spark does
    (batch,) = [batch for split in splits for batch in there.read(split, columns=["name"])]
    assert batch.to_pydict() == {"name": ["n1", "n2"]}
    assert sum(batch.num_rows for split in splits for batch in there.read(split, columns=[])) == 2


# -- rounds ----------------------------------------------------------------------------------------------------------


def test_rounds_from_one_format_into_another(tiered: Tiered) -> None:
    source = tiered.followed
    source.append(1, 2)
    source.foreign_append(3)
    first = tiered.round()
    assert (first.outcome, first.rows, first.epoch) == (RoundOutcome.PUBLISHED, 3, 0)
    assert tiered.round().outcome is None
    source.foreign_append(4)
    source.append(5, 6)
    assert tiered.union() == [1, 2, 3, 4, 5, 6]
    assert tiered.round().rows == 3
    assert tiered.ids == [1, 2, 3, 4, 5, 6]


def test_a_table_with_a_past_begins_with_its_snapshot(tiered: Tiered) -> None:
    """However it came to be: replaced rows, expired commits. And in one piece, whatever the limit."""
    source = tiered.followed
    source.append(1, 2)
    source.replace(3, 4)
    source.append(5)
    if source.expires:
        source.expire()
    assert tiered.union() == [3, 4, 5]
    assert tiered.round(LogRoundSettings(most=1)).left == 0
    assert tiered.ids == [3, 4, 5]
    source.append(6)
    source.append(7)
    assert [tiered.round(LogRoundSettings(most=1)).left > 0 for _ in range(2)] == [True, False]
    assert tiered.ids == [3, 4, 5, 6, 7]


@others_write
def test_commits_that_expired_before_they_were_read(tiered: Tiered) -> None:
    source = tiered.followed
    source.append(1)
    tiered.round()
    source.append(2)
    source.append(3)
    source.expire()
    source.append(4)
    with pytest.raises(OffsetsExpired, match="of bucket 'table' expired"):
        tiered.round()
    with pytest.raises(OffsetsExpired):
        tiered.union()
    tiered.round(LogRoundSettings(on_expired=OnExpired.SKIP))
    assert {1, 4} <= set(tiered.ids) <= {1, 3, 4}


def test_a_killed_round_is_read_again_and_nothing_is_there_twice(tiered: Tiered) -> None:
    source = tiered.followed
    source.append(1)
    tiered.round()
    source.foreign_append(2)
    for point in (failpoints.PUBLISH_BEFORE, failpoints.PUBLISH_AFTER):

        def crash(passed: str, at: str = point) -> None:
            if passed == at:
                raise KeyboardInterrupt

        with observed(crash), pytest.raises(KeyboardInterrupt):
            tiered.round()
        assert tiered.union() == [1, 2]
    assert tiered.round().outcome is None, "it had landed"
    source.append(3)
    tiered.round()
    assert tiered.ids == [1, 2, 3]


def _planned(tiered: Tiered, begun: bool) -> tuple[LogRound, Sequence[LogTask]]:
    """A round of a table that was followed before, or was not ``begun``, and its tasks."""
    source = tiered.followed
    source.append(1)
    if begun:
        tiered.round()
    source.append(2)
    made = LogRound(source.log(), tiered.config)
    return made, made.plan()


@others_write
@pytest.mark.parametrize("begun", [False, True])
def test_files_that_go_between_plan_and_read(tiered: Tiered, begun: bool) -> None:
    """The first round takes a newer snapshot the next time; a later one has lost rows."""
    source = tiered.followed
    made, tasks = _planned(tiered, begun)
    _take_files_away(source)
    source.append(3)
    says = "appended can't be read any more" if begun else "the snapshot at version .* can't be read any more"
    with pytest.raises(OffsetsExpired, match=says) as gone:
        made.finish(tiered.engine.run(tasks))
    assert is_retryable(gone.value) is not begun
    if begun:
        assert tiered.ids == [1]


@others_write
@pytest.mark.parametrize("begun", [False, True])
def test_a_table_that_is_away_while_it_is_read_is_tried_again(tiered: Tiered, begun: bool) -> None:
    """As behind a mount that was lost: nothing says that its rows are gone."""
    source = tiered.followed
    made, tasks = _planned(tiered, begun)
    away = source.warehouse.rename(source.warehouse.with_name("away"))
    with pytest.raises(StorageError, match="the source's table can't be read") as told:
        made.finish(tiered.engine.run(tasks))
    assert is_retryable(told.value)
    away.rename(source.warehouse)
    tiered.round()
    assert tiered.ids == [1, 2]


@others_write
@pytest.mark.parametrize("begun", [False, True])
def test_a_table_whose_data_alone_is_away_is_tried_again(tiered: Tiered, begun: bool) -> None:
    """Its metadata is elsewhere, as with Iceberg's `write.data.path`. An expiry leaves the newest snapshot."""
    source = tiered.followed
    made, tasks = _planned(tiered, begun)
    away = {path: path.rename(path.with_name(f"{path.name}.away")) for path in _data_of(source)}
    with pytest.raises(StorageError, match=r"the source's table can't be read.* deleted for good") as told:
        made.finish(tiered.engine.run(tasks))
    assert is_retryable(told.value)
    for path, moved in away.items():
        moved.rename(path)
    tiered.round()
    assert tiered.ids == [1, 2]


@pytest.mark.parametrize("followed", ["iceberg", "localfile"], indirect=True)
def test_files_that_go_by_their_age_are_no_storage_that_is_away(tiered: Tiered) -> None:
    """As by a rule of a bucket. A plan has the oldest files first, or last."""
    source = tiered.followed
    source.append(0)
    tiered.round()
    for number in range(1, 18):
        source.append(number)
    made = LogRound(source.log(), tiered.config)
    tasks = made.plan()
    _take_files_away(source)
    source.append(18)
    with pytest.raises(OffsetsExpired, match="appended can't be read any more"):
        made.finish(tiered.engine.run(tasks))


@others_write
def test_a_union_whose_snapshot_goes_says_to_read_again(tiered: Tiered) -> None:
    source = tiered.followed
    source.append(1)
    planned = plan_union(tiered.config, source.log())
    _take_files_away(source)
    source.append(2)
    with pytest.raises(OffsetsExpired, match="Read again") as gone:
        [rows for split in planned.splits for rows in planned.read(split)]
    assert gone.value.again


def test_a_union_gives_no_rows_of_a_table_that_was_made_again_since_its_plan(tiered: Tiered) -> None:
    """Its versions and its fragments have the same numbers. On Spark nobody looks at the source again."""
    source = tiered.followed
    source.append(1)
    planned = plan_union(tiered.config, source.log())
    source.lake.storage.catalog().drop_table(TablePath.parse(NAME))
    source.create().append(11)
    with pytest.raises(OffsetsExpired, match="Read again"):
        [rows for split in planned.splits for rows in planned.read(split)]


@others_write
@pytest.mark.parametrize("begun", [False, True])
def test_files_that_no_round_can_pass_over_are_not_told_to_be_passed_over(tiered: Tiered, begun: bool) -> None:
    """Their versions are there, so each round would plan them again, whatever it may skip."""
    source = tiered.followed
    source.append(1)
    if begun:
        tiered.round()
    source.append(2)
    made = LogRound(source.log(), tiered.config, LogRoundSettings(on_expired=OnExpired.SKIP))
    tasks = made.plan()
    _take_files_away(source)
    source.append(3)
    with pytest.raises(OffsetsExpired) as gone:
        made.finish(tiered.engine.run(tasks))
    assert "skips them" not in str(gone.value)


@others_write
def test_versions_that_expire_between_a_look_and_a_plan_are_passed_over_where_that_is_allowed(tiered: Tiered) -> None:
    source = tiered.followed
    source.append(1)
    tiered.round()
    for number in (2, 3, 4):
        source.append(number)
    log = source.log()
    bounds = log.bounds()
    source.expire()
    made = LogRound(log, tiered.config, LogRoundSettings(on_expired=OnExpired.SKIP))
    made.finish(tiered.engine.run(made.plan(bounds)))
    assert set(tiered.ids) - {4} == {1}, "the newest commit may be there still"
    source.append(5)
    tiered.round()
    assert set(tiered.ids) - {4} == {1, 5}


def _take_files_away(source: Followed) -> None:
    for path in _data_of(source):
        path.unlink()


def _data_of(source: Followed) -> list[Path]:
    found = [path for path in Path(source.location).rglob("*") if path.suffix in (".parquet", ".lance")]
    data = [path for path in found if path.is_file() and "_delta_log" not in path.parts]
    assert data
    return data


def test_a_column_that_the_source_gets_comes_into_the_lake(tiered: Tiered) -> None:
    source = tiered.followed
    source.append(1)
    tiered.round()
    old = source.log()
    more = pa.record_batch({"id": [2], "name": ["n2"], "more": [0.5]})
    append(lake_at(source.warehouse, source.format, NAME, mergeSchema="true"), more)
    with pytest.raises(SchemaChanged, match=r"columns \['more'\] of the source's table changed") as refused:
        LogRound(old, tiered.config).plan()
    assert is_retryable(refused.value), "the service opens the log again"
    tiered.round()
    _, batches = union_batches(tiered.config, source.log(), ScanRequest())
    assert sorted((row["id"], row["more"] or 0) for batch in batches for row in batch.to_pylist()) == [(1, 0), (2, 0.5)]


@pytest.mark.parametrize("format", ["delta", "localfile"])
def test_of_two_rows_of_a_key_the_one_that_was_appended_last_stays(
    tmp_path: Path, engine: LocalEngine, format: str
) -> None:
    """delta-rs lists the newest files first, so the first round used to keep the oldest rows."""
    lake = lake_at(tmp_path / "from", format)
    target = lake_at(tmp_path / "to", "localfile", "db.t", lake__pipeline="tests.src.keyed").config

    def appended(name: str) -> None:
        append(lake, pa.RecordBatch.from_pydict({"id": [1], "name": [name]}, schema=SCHEMA))

    def tiered() -> list[str]:
        options = {"lake.format": format, "lake.warehouse": str(tmp_path / "from")}
        log = open_log_source("lake", options, name="src", origin="the test").open("db.t", {})
        made = LogRound(KeyedLog.of(log, ("id",), None), target, LogRoundSettings())
        made.finish(engine.run(made.plan()))
        names: list[str] = read_all(lake_at(tmp_path / "to", "localfile", "db.t"))["name"].to_pylist()
        return names

    appended("first")
    assert tiered() == ["first"]
    for name in ("second", "third"):
        appended(name)
    assert tiered() == ["third"]
    shutil.rmtree(tmp_path / "to")
    with pytest.raises(IncompatibleData, match=r"two rows of a snapshot have the same primary key, \{'id': 1\}"):
        tiered()


def test_a_union_read_pushes_columns_and_limits(tiered: Tiered) -> None:
    source = tiered.followed
    source.append(1, 2)
    tiered.round()
    source.append(3)
    assert tiered.union(columns=("id",)) == [1, 2, 3]
    assert len(tiered.union(limit=2)) == 2


# -- sources ---------------------------------------------------------------------------------------------------------


def test_all_tables_of_all_databases_are_listed(followed: Followed) -> None:
    append(lake_at(followed.warehouse, followed.format, "other.x"), rows_of(1))
    opened = followed.open()
    assert opened.source.list_tables() == ["db.s", "other.x"]
    with pytest.raises(TableNotFound):
        opened.open("db.missing")
    with pytest.raises(ConfigError):
        opened.open("nodatabase")


def test_a_warehouse_that_is_not_there_has_not_dropped_its_tables(followed: Followed) -> None:
    """As of a folder that is not mounted. One that is there may have none."""
    opened = followed.open()
    away = followed.warehouse.with_name("away")
    followed.warehouse.rename(away)
    with pytest.raises(StorageError, match="the warehouse of the lake is not there"):
        opened.list_tables()
    followed.warehouse.mkdir()
    assert opened.list_tables() == []
    followed.warehouse.rmdir()
    away.rename(followed.warehouse)
    assert opened.list_tables() == [NAME]


def test_a_table_that_was_made_anew_is_another(followed: Followed) -> None:
    before = followed.log().table.table_id
    assert followed.log().table.table_id == before
    followed.lake.storage.catalog().drop_table(TablePath.parse(NAME))
    followed.create()
    assert followed.log().table.table_id != before


def test_a_table_is_not_tiered_into_itself(followed: Followed) -> None:
    config = lake_at(followed.warehouse, followed.format, NAME, lake__pipeline="tests.src.s").config
    followed.append(1)
    with pytest.raises(ConfigError, match="into itself"):
        LogRound(followed.log(), config).plan()


def test_the_layout_is_the_sources_unless_it_is_not_wanted(tmp_path: Path) -> None:
    source = FOLLOWED["localfile"](tmp_path / "from")
    descriptor = TableDescriptor(SCHEMA, (PartitionField("name"),))
    source.lake.storage.catalog().create_table(TablePath.parse(NAME), descriptor)
    assert source.log().table.partition_by == (PartitionField("name"),)
    assert source.log(keep_layout="false").table.partition_by == ()
    assert source.log().table.schema.equals(SCHEMA)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "lake.format"),
        ({"lake.format": "localfile"}, "lake.warehouse"),
        ({"lake.format": "localfile", "lake.warehouse": "w", "lake.table": "db.t"}, "lake.table is not for a lake"),
        ({"lake.format": "localfile", "lake.warehouse": "w", "lake.localfile.x": "1"}, "lake.localfile.x"),
        ({"lake.format": "localfile", "lake.warehouse": "w", "path": "w"}, "options.path"),
    ],
)
def test_options_that_do_not_fit(options: dict[str, str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        open_log_source("lake", options, name="src", origin="the test")


def test_a_format_without_incremental_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(feather_lake.plugin.FEATURES, Feature.INCREMENTAL_READ, unsupported("it is kept small"))
    options = {"lake.format": "feather", "lake.warehouse": str(tmp_path)}
    with pytest.raises(FeatureNotSupported, match="incremental-read"):
        open_log_source("lake", options, name="src", origin="the test")


def test_values_of_options_are_not_shown() -> None:
    with pytest.raises(ConfigError) as refused:
        open_log_source(
            "lake",
            {"lake.format": "delta", "lake.warehouse": "w", "lake.delta.secret-key": "hunter2"},
            name="src",
            origin="the test",
        )
    assert "hunter2" not in str(refused.value)
