"""Files that are renamed, or moved away, while a table is read."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laketier.connectors.files.files import Files
from laketier.connectors.files.identity import known_otherwise, renamed
from laketier.spi import OffsetsExpired
from landing import all_of, ids, land, log_of


@pytest.fixture
def zone(tmp_path: Path) -> Path:
    (tmp_path / "t").mkdir()
    return tmp_path


def test_a_file_that_is_renamed_after_it_was_taken_is_read_under_its_new_name(zone: Path) -> None:
    path = land(zone, "1.json.inprogress", 1, at=1)
    land(zone, "2.json", 2, at=2)
    log = log_of(zone)
    assert log.bounds()["files"].latest == 2
    path.rename(zone / "t" / "1.json")
    bounds = log.bounds()["files"]
    assert (bounds.earliest, bounds.latest) == (0, 2)
    assert ids(log) == [1, 2]
    (zone / "t" / "1.json").unlink()
    with pytest.raises(OffsetsExpired) as told:
        log.plan(all_of(log, 0, 2))
    assert dict(told.value.gone or {}) == {"files": ((0, 1),)}


@pytest.mark.parametrize("times", [1, 2])
def test_a_file_that_is_renamed_after_the_round_was_planned_is_read(zone: Path, times: int) -> None:
    path = land(zone, "1.json", 1)
    log = log_of(zone)
    if times == 2:
        log.bounds()
        path = path.rename(zone / "t" / "2.json")
    [split] = log.plan(all_of(log))
    (zone / "t" / "sub").mkdir()
    path.rename(zone / "t" / "sub" / "3.json")
    assert [row for batch in log.read(split) for row in batch.to_pylist()] == [{"id": 1}]


def test_a_file_that_is_renamed_while_it_is_read_is_read(zone: Path) -> None:
    path = land(zone, "1.json", *range(100_000))
    log = log_of(zone)
    [split] = log.plan(all_of(log))
    batches = log.read(split)
    found = next(batches).num_rows
    path.rename(zone / "t" / "2.json")
    assert found + sum(batch.num_rows for batch in batches) == 100_000


def test_a_file_that_was_moved_out_of_the_table_is_gone(zone: Path) -> None:
    path = land(zone, "1.json", 1)
    log = log_of(zone)
    [split] = log.plan(all_of(log))
    (zone / "_done").mkdir()
    path.rename(zone / "_done" / "1.json")
    with pytest.raises(OffsetsExpired):
        list(log.read(split))
    assert log.bounds()["files"].earliest == 1


def test_another_file_of_the_same_size_and_time_is_not_taken_for_one_that_is_gone(zone: Path) -> None:
    path = land(zone, "1.json", 1, at=1)
    log = log_of(zone)
    log.bounds()
    land(zone, "2.json", 2, at=1)
    path.unlink()
    bounds = log.bounds()["files"]
    assert (bounds.earliest, bounds.latest) == (1, 2)
    assert ids(log, all_of(log, 1)) == [2]


def test_a_listing_that_has_a_renamed_file_under_both_names_takes_it_once() -> None:
    """As a folder is listed that changes meanwhile."""
    listed = Files.of(["a.inprogress", "a", "b"], [3, 3, 3], [7, 7, 7], [11, 11, 12])
    taken = Files.of([], [], [])
    both = known_otherwise(listed, np.zeros(3, bool), np.full(3, -1), taken)
    assert both == {0: ("a.inprogress", "a")}
    places = listed.places_in(listed.take([0]))
    assert known_otherwise(listed, np.zeros(3, bool), places, listed.take([0])) == {1: ("a", "a.inprogress")}
    assert [found.tolist() for found in renamed(listed, places, listed.take([0]))] == [[], []]


def test_many_names_of_one_file_are_it_once() -> None:
    listed = Files.of(["c", "b", "d"], [3, 3, 3], [7, 7, 7], [11, 11, 12])
    taken = Files.of(["x", "a"], [3, 3], [7, 7], [13, 11])
    places: Any = listed.places_in(taken)
    at, ordinals = renamed(listed, places, taken)
    assert (at.tolist(), ordinals.tolist()) == ([1], [1])
    places[at] = ordinals
    assert known_otherwise(listed, np.ones(3, bool), places, taken) == {0: ("c", "a")}


@pytest.mark.parametrize(("at", "level"), [(1_700_000_000.25, logging.INFO), (1_700_000_000, logging.WARNING)])
def test_a_renamed_file_that_may_be_another_one_is_warned_of(
    zone: Path, at: float, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    """ext4 gives the number of a deleted file to the next one that is made."""
    caplog.set_level(logging.INFO)
    path = land(zone, "a.json", 1, at=at)
    log = log_of(zone)
    log.bounds()
    path.rename(path.with_name("b.json"))
    log.bounds()
    [told] = [record for record in caplog.records if "were renamed" in record.message]
    assert told.levelno == level
    assert ("copy them to another name" in told.message) == (level == logging.WARNING)
