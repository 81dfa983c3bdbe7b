"""A pipeline that goes on under another name, on every format: each row once, whoever is stopped wherever."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from lake_rows import ids_of, letter_states
from laketier.config import LakeConfig
from laketier.dead_letters import failpoints
from laketier.dead_letters.records import DeadLetterState
from laketier.dead_letters.renaming import rename_pipeline
from laketier.dead_letters.replay import replay
from laketier.kit.failpoints import VARIABLE, observed
from laketier.registry import open_lake, open_log_source
from laketier.rounds import LogRound, LogRoundSettings, OnBadRecordPolicy
from laketier.rounds.log_engine import LocalEngine
from laketier.spi import Stale, TableLog, TokenMismatch, WatermarkLost
from laketier.tiering import pipelines
from laketier.tiering.renaming import Renaming
from laketier_verification.lines import LinesTable

OLD, NEW = "tests.lines.t", "other.lines.t"
DEAD = LogRoundSettings(on_bad_record=OnBadRecordPolicy.DEAD_LETTER)
OPEN, REPLAYING, REPLAYED = DeadLetterState
ONE = pytest.mark.parametrize("lake_config", ["localfile"], indirect=True)


@dataclass
class Flow:
    """A log of JSON lines, and the lake table that it goes to by a pipeline."""

    source: LinesTable
    config: LakeConfig
    engine: LocalEngine

    def named(self, pipeline: str) -> Flow:
        return replace(self, config=replace(self.config, pipeline=pipeline))

    def opened(self) -> TableLog:
        source = open_log_source("lines", {"path": str(self.source.root)}, name="lines", origin="the test")
        return source.open(self.source.name)

    def planned(self) -> LogRound:
        return LogRound(self.opened(), self.config, DEAD)

    def round(self) -> None:
        made = self.planned()
        made.finish(self.engine.run(list(made.plan())))

    def ids(self) -> list[int]:
        return ids_of(self.config)

    def states(self) -> dict[int, DeadLetterState]:
        return letter_states(self.config)

    def forget(self) -> None:
        lake = open_lake(self.config)
        assert self.config.pipeline is not None
        pipelines.forget(lake.tiering_factory(lake.load_table()), self.config.pipeline)


@pytest.fixture
def never_replayed(tmp_path: Path, lake_config: LakeConfig, engine: LocalEngine) -> Flow:
    flow = Flow(LinesTable(tmp_path / "logs", "t").create(), lake_config, engine)
    flow.source.append(1)
    flow.source.append_raw('{"id": "2"}', "poison")
    flow.round()
    return flow


@pytest.fixture
def old(never_replayed: Flow) -> Flow:
    flow = never_replayed
    flow.source.describe(ids_as_text=True)
    assert replay(flow.config, flow.opened()).replayed == 1
    flow.source.describe(ids_as_text=False)
    return flow


def _refused(flow: Flow, says: str) -> None:
    before = flow.ids()
    with pytest.raises(TokenMismatch, match=says):
        flow.round()
    assert flow.ids() == before


def test_a_renamed_pipeline_goes_on_exactly_where_it_ended(old: Flow) -> None:
    """Its dead letters follow: under the new name alone, those that were replayed were new, and their rows doubled."""
    new = old.named(NEW)
    old.source.append(3)
    _refused(new, rf"`laketier pipeline rename -p {OLD} --to {NEW}`")
    looked = rename_pipeline(old.config, OLD, NEW, dry_run=True)
    assert {each.found for each in looked} == {Renaming.TO_CLOSE}
    assert [(each.table, each.new) for each in looked] == [
        ("db.t", NEW), ("db.t__dead_letters", f"{NEW}.dead-letters"), ("db.t__replayed", f"{NEW}.replay"),
        ("db.t", f"{NEW}.replay"),
    ]  # fmt: skip
    old.round()
    assert rename_pipeline(old.config, OLD, NEW) == looked
    old.source.append(4)
    _refused(old, f"'{OLD}' goes on as '{NEW}' in this table")
    with pytest.raises(TokenMismatch, match="goes on as"):
        replay(old.config, old.opened())
    new.round()
    assert (new.ids(), new.states()) == ([1, 2, 3, 4], {1: REPLAYED, 2: OPEN})
    new.source.append_raw('{"id": "5"}')
    new.round()
    new.source.describe(ids_as_text=True)
    assert replay(new.config, new.opened()).replayed == 1
    assert (new.ids(), new.states()) == ([1, 2, 3, 4, 5], {1: REPLAYED, 2: OPEN, 5: REPLAYED})
    assert {each.found for each in rename_pipeline(old.config, OLD, NEW)} == {Renaming.DONE}
    assert new.ids() == [1, 2, 3, 4, 5]


class _Killed(BaseException):
    """The process is gone: nothing may run after it but what a kill leaves too."""


@pytest.mark.parametrize("point", [failpoints.RENAME_CLOSED, failpoints.RENAME_BESIDE])
def test_a_renaming_that_ends_half_way_lets_nobody_write_until_it_is_ended(old: Flow, point: str) -> None:
    new = old.named(NEW)
    old.source.append(3)

    def kill(passed: str) -> None:
        if passed == point:
            raise _Killed

    with observed(kill), pytest.raises(_Killed):
        rename_pipeline(old.config, OLD, NEW)
    _refused(old, f"'{OLD}' goes on as '{NEW}'")
    _refused(new, f"half-way, run `laketier pipeline rename -p {OLD} --to {NEW}`")
    with pytest.raises(TokenMismatch, match=f"'{OLD}' was not renamed to '{NEW}' to its end"):
        new.forget()
    with pytest.raises(TokenMismatch, match="was renamed to"):
        rename_pipeline(old.config, OLD, "third")
    rename_pipeline(old.config, OLD, NEW)
    new.round()
    assert (new.ids(), new.states()) == ([1, 2, 3], {1: REPLAYED, 2: OPEN})


@ONE
@pytest.mark.parametrize("point", [failpoints.RENAME_CLOSED, failpoints.RENAME_BESIDE])
def test_a_renaming_that_ends_half_way_can_be_taken_back(old: Flow, point: str) -> None:
    """The refusal of the old name tells so. It was called done, and nobody could write."""

    def kill(passed: str) -> None:
        if passed == point:
            raise _Killed

    with observed(kill), pytest.raises(_Killed):
        rename_pipeline(old.config, OLD, NEW)
    _refused(old, f"half-way, run `laketier pipeline rename -p {NEW} --to {OLD}`")
    rename_pipeline(old.config, NEW, OLD)
    old.source.append_raw('{"id": "4"}')
    old.round()
    old.source.describe(ids_as_text=True)
    assert replay(old.config, old.opened()).replayed == 1
    assert (old.ids(), old.states()) == ([1, 2, 4], {1: REPLAYED, 2: OPEN, 3: REPLAYED})
    _refused(old.named(NEW), "goes on as")


@ONE
def test_a_renaming_that_ends_before_the_old_name_is_closed_lets_that_one_go_on(old: Flow) -> None:
    new = old.named(NEW)

    def kill(passed: str) -> None:
        if passed == failpoints.RENAME_KEPT:
            raise _Killed

    with observed(kill), pytest.raises(_Killed):
        rename_pipeline(old.config, OLD, NEW)
    old.source.append(3)
    old.round()
    _refused(new, "goes on as")
    rename_pipeline(old.config, OLD, NEW)
    new.source.append(4)
    new.round()
    assert new.ids() == [1, 2, 3, 4]


@ONE
@pytest.mark.parametrize("point", [failpoints.RENAME_CLOSED])
def test_a_command_that_is_killed_half_way_is_ended_by_running_it_again(old: Flow, point: str) -> None:
    table = ("db.t", "-f", old.config.format, "-w", old.config.warehouse)
    main = [sys.executable, "-c", "from laketier.cli.app import main; main()"]
    command = [*main, "pipeline", "rename", *table, "-p", OLD, "--to", NEW, "--yes"]
    killed = subprocess.run(command, env=os.environ | {VARIABLE: f"{point}=kill"}, capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed
    _refused(old.named(NEW), "half-way")
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"db.t: {OLD} goes on as {NEW}" in again.stdout
    old.source.append(3)
    old.named(NEW).round()
    assert old.ids() == [1, 2, 3]


def test_a_round_under_way_by_the_old_name_publishes_nothing_after_it(old: Flow) -> None:
    old.source.append(3)
    made = old.planned()
    answers = list(old.engine.run(list(made.plan())))
    rename_pipeline(old.config, OLD, NEW)
    with pytest.raises(Stale, match="another driver published"):
        made.finish(answers)
    assert old.ids() == [1, 2]
    old.named(NEW).round()
    assert old.ids() == [1, 2, 3]


@pytest.mark.parametrize("point", failpoints.REPLAY)
def test_the_first_replay_by_the_old_name_publishes_nothing_after_it(never_replayed: Flow, point: str) -> None:
    """Its name has no watermark yet in the lake table, and maybe none beside it, where it would be closed."""
    flow, new = never_replayed, never_replayed.named(NEW)
    flow.source.describe(ids_as_text=True)

    def rename(passed: str) -> None:
        if passed == point:
            rename_pipeline(flow.config, OLD, NEW)

    with observed(rename), pytest.raises((TokenMismatch, Stale), match="goes on as"):
        replay(flow.config, flow.opened())
    assert flow.ids() == [1]
    rename_pipeline(flow.config, OLD, NEW)
    replay(new.config, new.opened())
    assert (new.ids(), new.states()) == ([1, 2], {1: REPLAYED, 2: OPEN})
    new.source.append_raw('{"id": 5}')
    new.source.describe(ids_as_text=False)
    new.source.append_raw('{"id": "6"}')
    new.round()
    new.source.describe(ids_as_text=True)
    replay(new.config, new.opened())
    assert new.ids() == [1, 2, 5, 6]


@ONE
def test_a_name_can_be_taken_back(old: Flow) -> None:
    new = old.named(NEW)
    rename_pipeline(old.config, OLD, NEW)
    new.source.append(3)
    new.round()

    def kill(passed: str) -> None:
        if passed == failpoints.RENAME_CLOSED:
            raise _Killed

    with observed(kill), pytest.raises(_Killed):
        rename_pipeline(old.config, NEW, OLD)
    with pytest.raises(TokenMismatch, match="which has another history by now, as one that goes on as"):
        rename_pipeline(old.config, OLD, NEW)
    rename_pipeline(old.config, NEW, OLD)
    new.source.append(4)
    _refused(new, "goes on as")
    old.round()
    assert old.ids() == [1, 2, 3, 4]


@ONE
def test_a_name_whose_letters_were_never_replayed_can_be_taken_back(never_replayed: Flow) -> None:
    """The replays of both names are closed in turn, and those of the last one begin."""
    old, new = never_replayed, never_replayed.named(NEW)
    for before, after in ((OLD, NEW), (NEW, OLD), (OLD, NEW), (NEW, OLD)):
        told = rename_pipeline(old.config, before, after)
        assert [each.new for each in told] == [after, f"{after}.dead-letters"]
    _refused(new, "goes on as")
    old.source.describe(ids_as_text=True)
    assert replay(old.config, old.opened()).replayed == 1
    assert old.ids() == [1, 2]
    rename_pipeline(old.config, OLD, NEW)
    assert new.states() == {1: REPLAYED, 2: OPEN}


@ONE
def test_names_with_a_history_of_their_own_are_not_given(old: Flow) -> None:
    """Whoever takes one for new, or an end of before for the last, reads rows a second time."""
    rename_pipeline(old.config, OLD, NEW)
    new, third = old.named(NEW), old.named("third")
    new.source.append(3)
    new.round()
    rename_pipeline(old.config, NEW, "third")
    with pytest.raises(TokenMismatch, match="has another history by now, as one that goes on as 'third'"):
        rename_pipeline(old.config, OLD, NEW)
    with pytest.raises(TokenMismatch, match=f"knows the pipeline '{OLD}' already, as one that goes on"):
        rename_pipeline(old.config, "third", OLD)
    with pytest.raises(WatermarkLost, match="does not know pipeline 'nobody'"):
        rename_pipeline(old.config, "nobody", "fourth")
    third.source.append(4)
    third.round()
    assert third.ids() == [1, 2, 3, 4]


@ONE
def test_a_forgotten_pipeline_does_not_read_what_another_has_read(old: Flow) -> None:
    """So `forget` is the way to begin anew, and takes nothing twice by itself."""
    rename_pipeline(old.config, OLD, NEW)
    old.forget()
    old.source.append(3)
    _refused(old, f"already, by the pipeline '{NEW}'")
    old.named(NEW).round()
    assert old.ids() == [1, 2, 3]
