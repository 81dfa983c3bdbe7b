"""Rounds that read a log, on every format: what the lake holds is what the log held, once."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyarrow.dataset import dataset

from laketier.config import LakeConfig
from laketier.dead_letters.table import dead_letter_table
from laketier.kit.failpoints import observed
from laketier.maintenance.orphans import collect_orphans
from laketier.registry import open_lake, open_log_source
from laketier.rounds import LogAnswer, LogRound, LogRoundResult, LogRoundSettings, OnBadRecordPolicy, OnExpired
from laketier.rounds.log_engine import LocalEngine
from laketier.service import failpoints
from laketier.service.schedule import is_retryable
from laketier.spi import (
    Collected,
    Fenced,
    IncompatibleData,
    OffsetsExpired,
    ScanRequest,
    Stale,
    TableChanged,
    TableLog,
    TokenMismatch,
)
from laketier.spi.clocks import shifted
from laketier.tables.scan import scan
from laketier.tiering import RoundOutcome, pipelines
from laketier_verification.lines import LinesTable

DEAD = LogRoundSettings(on_bad_record=OnBadRecordPolicy.DEAD_LETTER)


@dataclass
class Tiered:
    """A log of JSON lines and the lake table that it goes to."""

    source: LinesTable
    config: LakeConfig
    engine: LocalEngine

    def opened(self) -> TableLog:
        source = open_log_source("lines", {"path": str(self.source.root)}, name="lines", origin="the test")
        return source.open(self.source.name)

    def planned(self, settings: LogRoundSettings | None = None, **driver: Any) -> tuple[LogRound, list[Any]]:
        made = LogRound(self.opened(), self.config, settings or LogRoundSettings(), **driver)
        return made, list(made.plan())

    def round(self, settings: LogRoundSettings | None = None) -> LogRoundResult:
        made, tasks = self.planned(settings)
        return made.finish(self.engine.run(tasks))

    def rows(self, dead: bool = False) -> list[dict[str, Any]]:
        config = replace(self.config, table=dead_letter_table(self.config.table)) if dead else self.config
        lake = open_lake(config)
        _, batches = scan(lake.source(lake.load_table()), ScanRequest())
        return [row for batch in batches for row in batch.to_pylist()]

    def ids(self) -> list[int]:
        return sorted(row["id"] for row in self.rows())

    @property
    def files(self) -> set[str]:
        return {str(path) for path in Path(self.config.warehouse).rglob("*") if path.is_file()}


@pytest.fixture
def tiered(tmp_path: Path, lake_config: LakeConfig, engine: LocalEngine) -> Tiered:
    return Tiered(LinesTable(tmp_path / "logs", "t").create(buckets=2), lake_config, engine)


def test_rounds_follow_the_log(tiered: Tiered) -> None:
    tiered.source.append(1, 2, 3)
    tiered.source.append(10, 11, bucket=1)
    first = tiered.round()
    assert (first.outcome, first.rows, first.epoch, first.left) == (RoundOutcome.PUBLISHED, 5, 0, 0)
    assert tiered.round().outcome is None, "nothing new: nothing is committed"
    tiered.source.append(4)
    second = tiered.round()
    assert (second.rows, second.epoch) == (1, 1)
    assert tiered.ids() == [1, 2, 3, 4, 10, 11]


@pytest.mark.parametrize("lake_config", ["localfile"], indirect=True)
def test_a_round_without_rows_finishes_the_commit_of_a_process_that_died(tiered: Tiered) -> None:
    """Its rows are in the table, and plain readers of the folder find them by their final names alone."""
    folder = Path(tiered.config.warehouse) / "db" / "t"

    def ids() -> list[int]:
        return (
            sorted(dataset(folder, format="parquet").to_table()["id"].to_pylist())
            if any(folder.glob("*.parquet"))
            else []
        )

    def die(name: str) -> None:
        if name == "publish.after_manifest_before_renames":
            raise KeyboardInterrupt

    tiered.source.append(1, 2, 3)
    made, tasks = tiered.planned()
    with observed(die), pytest.raises(KeyboardInterrupt):
        made.finish(tiered.engine.run(tasks))
    assert ids() == []
    assert tiered.round().outcome is None, "nothing new: nothing is committed"
    assert ids() == [1, 2, 3]


def test_a_round_that_was_staged_and_never_committed_is_read_again(tiered: Tiered) -> None:
    tiered.source.append(1, 2)
    _, tasks = tiered.planned()
    assert all(answer.error is None for answer in tiered.engine.run(tasks))
    tiered.source.append(3)
    assert tiered.round().rows == 3
    assert tiered.ids() == [1, 2, 3]


def test_of_two_drivers_the_one_with_the_newer_lease_wins(tiered: Tiered) -> None:
    tiered.source.append(1, 2)
    zombie, tasks = tiered.planned(LogRoundSettings(fence=1))
    answers = tiered.engine.run(tasks)
    tiered.source.append(3)
    assert tiered.round(LogRoundSettings(fence=2)).rows == 3
    with pytest.raises(Fenced):
        zombie.finish(answers)
    assert tiered.ids() == [1, 2, 3]


def test_a_driver_that_was_overtaken_by_a_zombie_plans_again(tiered: Tiered) -> None:
    tiered.source.append(1, 2)
    zombie, old = tiered.planned(LogRoundSettings(fence=1))
    tiered.source.append(3)
    newer, tasks = tiered.planned(LogRoundSettings(fence=2))
    answers = tiered.engine.run(tasks)
    assert zombie.finish(tiered.engine.run(old)).rows == 2
    with pytest.raises(Stale, match="another driver published") as refused:
        newer.finish(answers)
    assert is_retryable(refused.value), "nobody needs to resume the table"
    assert tiered.round(LogRoundSettings(fence=2)).rows == 1
    assert tiered.ids() == [1, 2, 3]


@pytest.mark.parametrize("lake_config", ["localfile"], indirect=True)
def test_a_round_that_orphan_collection_overtook_is_run_again_by_itself(tiered: Tiered) -> None:
    tiered.source.append(1)
    tiered.round()
    tiered.source.append(2)
    with shifted(-60_000):  # a minute before the collection
        late, tasks = tiered.planned()
        before = tiered.files
        answers = list(tiered.engine.run(tasks))
    for staged in tiered.files - before:
        os.utime(staged, (1, 1))  # a clock of files may stand still for milliseconds
    lake = open_lake(tiered.config)
    collect_orphans(lake.storage, lake.load_table(), grace=timedelta(0))
    with pytest.raises(Collected) as refused:
        late.finish(answers)
    assert is_retryable(refused.value), "nobody needs to resume the table"
    assert tiered.round().rows == 1
    assert tiered.ids() == [1, 2]


def test_dead_letters_of_a_zombie_make_the_next_round_plan_again(tiered: Tiered) -> None:
    tiered.source.append_raw("poison", '{"id": 1}')
    zombie, old = tiered.planned(replace(DEAD, fence=1))
    tiered.source.append_raw("more poison", '{"id": 2}')
    newer, tasks = tiered.planned(replace(DEAD, fence=2))
    answers = list(tiered.engine.run(tasks))
    _publish_dead_letters_only(zombie, tiered.engine.run(old))
    before = tiered.files
    with pytest.raises(Stale, match="another driver published"):
        newer.finish(answers)
    assert len(tiered.files) < len(before), "what was staged for the target is deleted too"
    tiered.round(replace(DEAD, fence=2))
    assert tiered.ids() == [1, 2]
    assert sorted(row["value"] for row in tiered.rows(dead=True)) == [b"more poison", b"poison"]


def test_a_fence_that_the_dead_letters_know_counts_too(tiered: Tiered) -> None:
    tiered.source.append_raw("poison", '{"id": 1}')
    made, tasks = tiered.planned(replace(DEAD, fence=9))
    _publish_dead_letters_only(made, tiered.engine.run(tasks))
    asked: list[int] = []

    def raise_fence(lake: int) -> int:
        asked.append(lake)
        return lake + 1

    made, tasks = tiered.planned(replace(DEAD, fence=1), raise_fence=raise_fence)
    assert made.finish(tiered.engine.run(tasks)).rows == 1
    assert asked == [9]
    lake = open_lake(tiered.config)
    watermark = pipelines.show(lake.current_state(), "tests.lines.t")
    assert watermark is not None
    assert watermark.token.fence == 10
    tiered.source.append(2)
    with pytest.raises(Fenced):
        tiered.planned(replace(DEAD, fence=9))


def test_a_source_that_is_made_anew_while_it_is_read_leaves_nothing(tiered: Tiered) -> None:
    tiered.source.append(1)
    tiered.round()
    before = tiered.files
    tiered.source.append(2)
    made, tasks = tiered.planned(look_again=lambda: tiered.opened().table)
    answers = list(tiered.engine.run(tasks))
    tiered.source.create(buckets=2).append(7, 8)
    with pytest.raises(TableChanged, match="while it was read"):
        made.finish(answers)
    assert tiered.ids() == [1]
    assert tiered.files == before


def test_expired_offsets_stop_the_table_or_leave_a_record(tiered: Tiered) -> None:
    tiered.source.append(1, 2)
    tiered.round()
    tiered.source.append(3, 4, 5)
    tiered.source.expire(below=4)
    with pytest.raises(OffsetsExpired, match="offsets 2 to 3 of bucket '0'"):
        tiered.round()
    tiered.round(LogRoundSettings(on_expired=OnExpired.SKIP))
    assert tiered.ids() == [1, 2, 5]
    lake = open_lake(tiered.config)
    watermark = pipelines.show(lake.current_state(), "tests.lines.t")
    assert watermark is not None
    assert watermark.token.content == 'skipped:{"0":[2,4]}'


def test_a_source_that_was_made_anew_is_told_apart(tiered: Tiered) -> None:
    tiered.source.append(1)
    tiered.round()
    tiered.source.create(buckets=2).append(7, 8)
    with pytest.raises(TableChanged, match="recreated") as refused:
        tiered.round()
    assert tiered.ids() == [1]
    assert "`laketier pipeline forget -p tests.lines.t`" in str(refused.value)
    lake = open_lake(tiered.config)
    pipelines.forget(lake.tiering_factory(lake.load_table()), "tests.lines.t")
    tiered.round()
    assert tiered.ids() == [1, 7, 8], "who says so has the rows of both"


def test_a_pipeline_that_got_another_name_does_not_read_all_again(tiered: Tiered) -> None:
    """Whoever gives a service or a source another name in the file gives its pipelines others."""
    tiered.source.append(1, 2)
    tiered.round()
    renamed = replace(tiered, config=replace(tiered.config, pipeline="other.name"))
    with pytest.raises(TokenMismatch, match=r"already, by the pipeline 'tests\.lines\.t'") as refused:
        renamed.round()
    assert "pipeline forget -p tests.lines.t" in str(refused.value)
    assert tiered.ids() == [1, 2]
    tiered.source.append(3)
    tiered.round()
    lake = open_lake(tiered.config)
    pipelines.forget(lake.tiering_factory(lake.load_table()), "tests.lines.t")
    renamed.round()
    assert tiered.ids() == [1, 1, 2, 2, 3, 3], "who says so reads it again"
    renamed.round()


def test_another_log_goes_into_the_same_table(tiered: Tiered) -> None:
    tiered.source.append(1)
    tiered.round()
    other = LinesTable(tiered.source.root, "u").create()
    other.append(2)
    replace(tiered, source=other, config=replace(tiered.config, pipeline="u")).round()
    assert tiered.ids() == [1, 2]


def test_a_new_column_of_the_source_comes_into_the_lake(tiered: Tiered) -> None:
    tiered.source.append(1)
    tiered.round()
    tiered.source.describe(columns={"id": "int64", "text": "string", "more": "double"})
    tiered.source.append_raw('{"id": 2, "text": "b", "more": 0.5}')
    tiered.round()
    assert sorted((row["id"], row["more"]) for row in tiered.rows()) == [(1, None), (2, 0.5)]


def test_a_bad_record_fails_the_round_and_leaves_nothing(tiered: Tiered) -> None:
    tiered.source.append(1)
    tiered.round()
    before = tiered.files
    tiered.source.append(2)
    tiered.source.append_raw("poison", bucket=1)
    with pytest.raises(IncompatibleData, match="offset 0 of bucket '1' can't be read"):
        tiered.round()
    assert tiered.ids() == [1]
    assert tiered.files == before


def test_dead_letters_go_beside_the_table_once(tiered: Tiered) -> None:
    tiered.source.append(1)
    tiered.source.append_raw("poison", '{"id": "x"}')
    made, tasks = tiered.planned(DEAD)
    _publish_dead_letters_only(made, tiered.engine.run(tasks))
    tiered.source.append(2)
    tiered.source.append_raw("more poison")
    assert tiered.round(DEAD).bad == 3
    assert tiered.ids() == [1, 2]
    dead = Counter((row["bucket"], row["offset"], row["value"]) for row in tiered.rows(dead=True))
    assert dead == {("0", 1, b"poison"): 1, ("0", 2, b'{"id": "x"}'): 1, ("0", 4, b"more poison"): 1}
    assert {row["source_table"] for row in tiered.rows(dead=True)} == {"t"}


def test_bad_records_of_a_source_that_was_made_anew_are_not_taken_for_known(tiered: Tiered) -> None:
    """The lake table was dropped for it, and the table beside it was forgotten. Offsets below those that it knows are
    other records now, and were left out of both tables."""
    tiered.source.append_raw("poison", "more poison")
    tiered.round(DEAD)
    tiered.source.create(buckets=2).append_raw("other poison")
    catalog = open_lake(tiered.config).storage.catalog()
    catalog.drop_table(tiered.config.table)
    with pytest.raises(TableChanged, match="the dead letters are of another table of the source") as told:
        tiered.round(DEAD)
    beside = dead_letter_table(tiered.config.table)
    assert str(beside) in str(told.value)
    catalog.drop_table(beside)
    assert tiered.round(DEAD).bad == 1
    assert [row["value"] for row in tiered.rows(dead=True)] == [b"other poison"]


def _publish_dead_letters_only(made: LogRound, answers: Iterable[LogAnswer]) -> None:
    """The crash window: dead letters are published, the target is not."""

    def crash(point: str) -> None:
        if point == failpoints.DEAD_LETTERS:
            raise KeyboardInterrupt

    with observed(crash), pytest.raises(KeyboardInterrupt):
        made.finish(answers)


def test_dropped_records_are_counted(tiered: Tiered) -> None:
    tiered.source.append(1)
    tiered.source.append_raw("poison")
    assert tiered.round(LogRoundSettings(on_bad_record=OnBadRecordPolicy.DROP)).bad == 1
    assert tiered.ids() == [1]


def test_limited_rounds_get_there(tiered: Tiered) -> None:
    tiered.source.append(*range(25))
    settings = LogRoundSettings(most=10)
    results = [tiered.round(settings) for _ in range(3)]
    assert [result.left for result in results] == [15, 5, 0]
    assert tiered.ids() == list(range(25))
