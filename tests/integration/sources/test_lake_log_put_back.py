"""A source table that was put back from a backup and has grown again gives its numbers to other commits."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from deltalake import DeltaTable

from followed import FOLLOWED, Followed
from laketier.config import LakeConfig
from laketier.connectors.lake.log import LakeLog
from laketier.rounds import LogRound, LogRoundResult, LogRoundSettings
from laketier.rounds.keyed import KeyedLog
from laketier.rounds.log_engine import LocalEngine
from laketier.spi import (
    LogOffsets,
    LogRange,
    OffsetsRewritten,
    RowsChanged,
    SourceRange,
    TableChanged,
)
from laketier.tiering import pipelines
from laketier.union_read.planning import union_batches
from laketier_iceberg.catalog import load
from laketier_verification.lakes import ids, lake_at

TARGETS = {"localfile": "lance", "delta": "localfile", "iceberg": "delta", "lance": "iceberg"}
PIPELINE = "tests.src.s"


@dataclass
class Copied:
    source: Followed
    config: LakeConfig
    engine: LocalEngine
    skip: bool = False

    def round(self, settings: LogRoundSettings | None = None) -> LogRoundResult:
        made = LogRound(self.source.log(skip_changes=self.skip), self.config, settings or LogRoundSettings())
        return made.finish(self.engine.run(made.plan()))

    @property
    def ids(self) -> list[int]:
        return ids(lake_at(Path(self.config.warehouse), self.config.format, "db.t"))

    @property
    def union(self) -> list[int]:
        _, batches = union_batches(self.config, self.source.log())
        return sorted(i for batch in batches for i in batch["id"].to_pylist())

    @property
    def read(self) -> SourceRange:
        watermark = pipelines.show(
            lake_at(Path(self.config.warehouse), self.config.format, "db.t").current_state(), PIPELINE
        )
        assert watermark is not None
        assert watermark.token.source is not None
        return watermark.token.source

    def back_up(self) -> Callable[[], None]:
        """Returns what puts the source back."""
        kept = self.source.warehouse.with_name("kept")
        shutil.copytree(self.source.warehouse, kept)

        def put_back() -> None:
            shutil.rmtree(self.source.warehouse)
            shutil.copytree(kept, self.source.warehouse)

        return put_back


@pytest.fixture(params=sorted(TARGETS))
def copied(request: pytest.FixtureRequest, tmp_path: Path, engine: LocalEngine) -> Copied:
    source = FOLLOWED[request.param](tmp_path / "from").create()
    lake = lake_at(tmp_path / "to", TARGETS[source.format], "db.t", lake__pipeline=PIPELINE)
    source.append(1)
    found = Copied(source, lake.config, engine)
    found.round()
    return found


def test_a_copy_that_read_further_stops(copied: Copied) -> None:
    put_back = copied.back_up()
    copied.source.append(2)
    copied.round()
    read, end = copied.read, copied.source.latest
    put_back()
    with pytest.raises(TableChanged, match="the table has read up to"):
        copied.round()
    copied.source.foreign_append(12)
    copied.source.append(13)
    assert copied.source.latest > end
    with pytest.raises(OffsetsRewritten, match=r"has other records before .* than those that were read") as refused:
        copied.round()
    assert "put back from a backup" in str(refused.value)
    assert "a new target" in str(refused.value)
    with pytest.raises(OffsetsRewritten, match="has other records before"):
        _ = copied.union
    copied.skip = True
    with pytest.raises(OffsetsRewritten, match="has other records before"):
        copied.round()
    assert copied.ids == [1, 2]
    assert copied.read == read


def test_a_copy_that_read_no_further_goes_on(copied: Copied) -> None:
    read = copied.read
    put_back = copied.back_up()
    copied.source.append(2)
    put_back()
    copied.source.foreign_append(12)
    assert copied.union == [1, 12]
    copied.round()
    assert copied.ids == [1, 12]
    assert copied.read.stamp not in (None, read.stamp)


@pytest.mark.parametrize("copied", ["localfile"], indirect=True)
def test_a_position_from_before_there_were_stamps_gains_one(copied: Copied, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as older:
        older.setattr(LakeLog, "stamp", lambda _self, _position: None)
        copied.source.append(2)
        copied.round()
        assert copied.read.stamp is None
    copied.source.append(3)
    assert copied.union == [1, 2, 3]
    copied.round()
    assert copied.ids == [1, 2, 3]
    assert copied.read.stamp is not None


@pytest.mark.parametrize("copied", ["localfile"], indirect=True)
def test_a_source_that_is_put_back_while_a_round_is_planned(copied: Copied, monkeypatch: pytest.MonkeyPatch) -> None:
    """The round may have rows of either history. The next one stops."""
    put_back = copied.back_up()
    copied.source.append(2)
    plan = LakeLog.plan

    def late(self: LakeLog, wanted: LogRange) -> object:
        put_back()
        copied.source.append(12)
        return plan(self, wanted)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(LakeLog, "plan", late)
        copied.round()
    copied.source.append(13)
    with pytest.raises(OffsetsRewritten, match="has other records before"):
        copied.round()


def test_a_position_whose_version_expired_goes_on(copied: Copied) -> None:
    """Nothing tells any more what was there, and nothing that was not read is lost."""
    if not copied.source.expires:
        pytest.skip("local files have no other program that expires them")
    copied.source.append(2)
    copied.round()
    read = copied.read
    copied.source.compact()
    copied.round()
    copied.source.expire()
    assert copied.source.log().stamp(LogOffsets.from_text(read.end)) is None
    copied.round()
    copied.source.append(3)
    copied.round()
    assert copied.ids == [1, 2, 3]


def test_a_stamp_is_the_same_after_others_worked_on_the_table(copied: Copied) -> None:
    copied.source.append(2)
    log, end = copied.source.log(), LogOffsets({"table": copied.source.latest})
    stamp = log.stamp(end)
    assert stamp is not None
    copied.source.foreign_append(3)
    if copied.source.expires:
        copied.source.compact()
    assert copied.source.log().stamp(end) == log.stamp(end) == stamp
    assert log.stamp(LogOffsets({"table": copied.source.latest})) != stamp
    assert log.stamp(LogOffsets({"table": copied.source.latest + 1})) is None
    assert log.stamp(LogOffsets({"table": 0})) is None
    assert log.stamp(LogOffsets()) is None


def test_an_iceberg_table_that_was_rolled_back_is_told_as_such(tmp_path: Path, engine: LocalEngine) -> None:
    """A rollback is a commit, which skip-changes may pass over: it is no older copy."""
    source = FOLLOWED["iceberg"](tmp_path / "from").create()
    lake = lake_at(tmp_path / "to", "lance", "db.t", lake__pipeline=PIPELINE)
    source.append(1)
    copied = Copied(source, lake.config, engine)
    copied.round()
    source.append(2)
    copied.round()
    settings = lake_at(tmp_path / "from", "iceberg", "db.s").source(source.lake.load_table()).settings  # type: ignore[attr-defined]
    table = load(settings, source.lake.config.table)
    gone = table.current_snapshot()
    assert gone is not None
    assert gone.parent_snapshot_id is not None
    table.manage_snapshots().rollback_to_snapshot(gone.parent_snapshot_id).commit()
    source.foreign_append(3)
    with pytest.raises(RowsChanged, match="rolled back"):
        copied.round()
    copied.skip = True
    copied.round()
    assert copied.ids == [1, 2, 3]


def test_a_keyed_copy_of_a_change_feed_stops_too(tmp_path: Path, engine: LocalEngine) -> None:
    source = FOLLOWED["delta"](tmp_path / "from").create()
    DeltaTable(source.location).alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    lake = lake_at(tmp_path / "to", "lance", "db.t", lake__pipeline=PIPELINE)
    copied = Copied(source, lake.config, engine)

    def copy() -> None:
        log = KeyedLog.of(source.log(changes="feed"), ("id",), None)
        made = LogRound(log, lake.config, LogRoundSettings())
        made.finish(engine.run(made.plan()))

    source.append(1)
    copy()
    put_back = copied.back_up()
    source.append(2)
    copy()
    put_back()
    for number in (12, 13):
        source.append(number)
    with pytest.raises(OffsetsRewritten, match="has other records before"):
        copy()
    assert copied.ids == [1, 2]
