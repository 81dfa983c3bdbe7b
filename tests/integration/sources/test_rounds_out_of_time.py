"""Rounds that are out of time publish what they read in one piece, and the next ones read the rest, on every format."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from laketier.config import LakeConfig
from laketier.dead_letters.table import dead_letter_table
from laketier.kit.failpoints import observed
from laketier.registry import open_lake, open_log_source
from laketier.rounds import LogRound, LogRoundResult, LogRoundSettings, LogTask, OnBadRecordPolicy
from laketier.rounds.log_engine import LocalEngine
from laketier.service import failpoints
from laketier.spi import ScanRequest, Stale
from laketier.tables.scan import scan
from laketier_verification.lines import CutLog, LinesTable

ALWAYS = LogRoundSettings(on_bad_record=OnBadRecordPolicy.DEAD_LETTER, within=3600.0)


@dataclass
class Tiered:
    source: LinesTable
    config: LakeConfig
    engine: LocalEngine

    def planned(self) -> tuple[LogRound, list[LogTask]]:
        source = open_log_source("lines", {"path": str(self.source.root)}, name="lines", origin="the test")
        made = LogRound(CutLog(source.open(self.source.name)), self.config, ALWAYS)
        return made, list(made.plan())

    def run(self, tasks: list[LogTask], in_time: set[int]) -> list[Any]:
        """These by their index, and those that must be run, though time was up from the beginning."""
        late = [task if task.index in in_time or task.within is None else replace(task, not_after=0) for task in tasks]
        return list(self.engine.run(late))

    def round(self, *in_time: int) -> LogRoundResult:
        made, tasks = self.planned()
        return made.finish(self.run(tasks, set(in_time)))

    def rows(self, dead: bool = False) -> list[dict[str, Any]]:
        config = replace(self.config, table=dead_letter_table(self.config.table)) if dead else self.config
        lake = open_lake(config)
        _, batches = scan(lake.source(lake.load_table()), ScanRequest())
        return [row for batch in batches for row in batch.to_pylist()]

    def ids(self) -> list[int]:
        return sorted(row["id"] for row in self.rows())

    def dead(self) -> dict[bytes, int]:
        return Counter(row["value"] for row in self.rows(dead=True))


@pytest.fixture
def tiered(tmp_path: Path, lake_config: LakeConfig, engine: LocalEngine) -> Tiered:
    tiered = Tiered(LinesTable(tmp_path / "logs", "t").create(buckets=2), lake_config, engine)
    tiered.source.append(0, 1, 2, 3, 4, 5, 6)
    tiered.source.append(10, 11, 12, bucket=1)
    return tiered


def test_what_is_out_of_time_is_read_by_the_next_round(tiered: Tiered) -> None:
    first = tiered.round(2)  # offsets 4 and 5 of the first bucket: 2 and 3 are missing before them
    assert (dict(first.end), first.left, first.rows) == ({"0": 2, "1": 2}, 6, 4)
    assert tiered.ids() == [0, 1, 10, 11]
    second = tiered.round(1)
    assert (dict(second.end), second.left) == ({"0": 6, "1": 3}, 1)
    assert tiered.ids() == [0, 1, 2, 3, 4, 5, 10, 11, 12]
    last = tiered.round()
    assert (dict(last.end), last.left, last.epoch) == ({"0": 7, "1": 3}, 0, 2)
    assert tiered.ids() == [0, 1, 2, 3, 4, 5, 6, 10, 11, 12]
    assert tiered.round().outcome is None


def test_a_task_that_did_not_answer_was_not_read(tiered: Tiered) -> None:
    made, tasks = tiered.planned()
    answers = tiered.run(tasks, {0, 1, 2, 3, 4, 5})
    result = made.finish([answer for answer in answers if answer.index != 1])
    assert (dict(result.end), result.rows) == ({"0": 2, "1": 3}, 5)


def test_what_is_left_out_leaves_no_files(tiered: Tiered) -> None:
    folder = Path(tiered.config.warehouse)
    made, tasks = tiered.planned()
    before = {path for path in folder.rglob("*") if path.is_file()}
    answers = tiered.run(tasks, {2})
    staged = {path for path in folder.rglob("*") if path.is_file()} - before
    names = {path.name.removesuffix(".inprogress") for path in staged}
    made.finish(answers)
    kept = {path.name.removesuffix(".inprogress") for path in folder.rglob("*") if path.is_file()}
    assert len(names - kept) == 1, f"of {names} the one that is left out is gone"


def test_dead_letters_end_where_the_round_does(tiered: Tiered) -> None:
    """Also when the round dies between the two commits, and the next one gets another way."""
    tiered.source.append_raw("poison 7", "poison 8", "poison 9")  # offsets 7 to 9: in the tasks 3 (6, 7) and 4 (8, 9)
    made, tasks = tiered.planned()
    answers = tiered.run(tasks, {1, 2, 3})

    def crash(point: str) -> None:
        if point == failpoints.DEAD_LETTERS:
            raise KeyboardInterrupt

    with observed(crash), pytest.raises(KeyboardInterrupt):
        made.finish(answers)
    assert tiered.dead() == {b"poison 7": 1}
    assert tiered.ids() == []
    assert dict(tiered.round(1).end) == {"0": 4, "1": 2}, "less than the dead letters know"
    assert tiered.dead() == {b"poison 7": 1}
    tiered.round(4)
    tiered.round(1, 2, 3)
    assert tiered.dead() == {b"poison 7": 1, b"poison 8": 1, b"poison 9": 1}
    assert tiered.ids() == [0, 1, 2, 3, 4, 5, 6, 10, 11, 12]


def test_two_drivers_that_got_differently_far(tiered: Tiered) -> None:
    one, tasks = tiered.planned()
    other, others = tiered.planned()
    assert one.finish(tiered.run(tasks, {1})).rows == 6
    with pytest.raises(Stale, match="another driver published"):
        other.finish(tiered.run(others, {1, 2}))
    tiered.round(1, 2, 3, 4, 5)
    assert tiered.ids() == [0, 1, 2, 3, 4, 5, 6, 10, 11, 12]
