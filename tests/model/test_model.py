"""The exactly-once protocol, in all its interleavings within small bounds; and what each of its rules is needed for."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from depth import deep_where
from laketier_verification.model import others
from laketier_verification.model.explore import explore
from laketier_verification.model.guards import REDUNDANT, Guard, Invariant
from laketier_verification.model.worlds import SINGLE, WORLDS, World, world_without

VIOLATED = {
    Guard.COMPARE_AND_SET: Invariant.ONCE,
    Guard.EMPTY_COMPARE_AND_SET: Invariant.ONCE,
    Guard.ATOMIC_WATERMARK: Invariant.ONCE,
    Guard.NAMES_STAY_TAKEN: Invariant.ACKNOWLEDGED,
    Guard.STAGED_IS_INVISIBLE: Invariant.ONCE,
    Guard.UNIQUE_NAMES: Invariant.WHOLE,
    Guard.WATERMARK_SURVIVES: Invariant.ONCE,
    Guard.DECIDE_AGAIN: Invariant.ONCE,
    Guard.SCHEMA_CHECK: Invariant.FITS,
    Guard.RUN_CHECK: Invariant.ACKNOWLEDGED,
    Guard.CONTENT_CHECK: Invariant.ACKNOWLEDGED,
    Guard.FENCE_CHECK: Invariant.FENCE,
    Guard.STALE_CHECK: Invariant.ACKNOWLEDGED,
    Guard.GAP_CHECK: Invariant.ORDER,
    Guard.LOST_CHECK: Invariant.ORDER,
    Guard.UNKNOWN_IS_NO_FAILURE: Invariant.WHOLE,
    Guard.DISCARD_IF_CERTAIN: Invariant.WHOLE,
    Guard.LANDED: Invariant.ONCE,
    Guard.ABORT_IS_A_HINT: Invariant.WHOLE,
    Guard.CONFIRM_DONE: Invariant.ACKNOWLEDGED,
    Guard.HORIZON_CHECK: Invariant.WHOLE,
    Guard.HORIZON_FIRST: Invariant.WHOLE,
    Guard.HORIZON_IS_A_COMMIT: Invariant.WHOLE,
    Guard.LIST_AGAIN: Invariant.WHOLE,
    Guard.RESTORE_NOTICED: Invariant.WHOLE,
    Guard.ROLLBACK_KEEPS_HORIZON: Invariant.WHOLE,
    Guard.ROLLBACK_RAISES_HORIZON: Invariant.WHOLE,
}

SLOWEST = "replays"
"""With one epoch it is explored each time, with two it is deep."""


def test_each_guard_is_looked_at() -> None:
    assert VIOLATED.keys() | REDUNDANT == set(Guard)
    assert not VIOLATED.keys() & REDUNDANT


@pytest.mark.parametrize(
    "world",
    deep_where([(world,) for world in (SINGLE, *WORLDS)], lambda world: world.name == SLOWEST),
    ids=lambda world: world.name,
)
def test_no_interleaving_breaks_the_protocol(world: World) -> None:
    result = explore(world, progress=world.progresses)
    assert result.found is None, result.found
    assert result.states > 100, "so few states show nothing"


@pytest.mark.parametrize("guard", VIOLATED, ids=lambda guard: guard.name)
def test_a_guard_is_missed(guard: Guard) -> None:
    result = explore(world_without(guard))
    assert result.found is not None, "the model is too small, or the guard is not needed"
    assert result.found.invariant is VIOLATED[guard], result.found


@pytest.mark.parametrize("guard", sorted(REDUNDANT, key=lambda guard: guard.name), ids=lambda guard: guard.name)
def test_a_guard_that_another_covers(guard: Guard) -> None:
    """Whoever makes one of these needed changes what the page on the model says."""
    assert explore(world_without(guard)).found is None


def test_a_driver_that_can_not_go_on_is_found() -> None:
    """After a restore that was noticed it takes people: the question for progress must say so."""
    (world,) = (world for world in WORLDS if world.name == "restore")
    result = explore(replace(world, maintained=False), progress=True)
    assert result.found is not None
    assert result.found.invariant is Invariant.PROGRESS
    assert "somebody restores that snapshot" in result.found.trace


def test_a_file_that_stays_for_ever_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A collector whose second list were always empty would delete nothing."""
    monkeypatch.setattr(others, "_listed_again", lambda world: lambda files: files & ~others.LISTED)
    found = explore(SINGLE).found
    assert found is not None
    assert found.invariant is Invariant.LEAK


def test_a_trace_names_its_drivers_throughout() -> None:
    found = explore(world_without(Guard.DISCARD_IF_CERTAIN)).found
    assert found is not None
    text = "\n".join(found.trace)
    assert "driver A starts, and stages epoch 0" in text
    assert found.trace[-1] == "driver A deletes its files, and raises"


def test_the_command_prints_and_writes(tmp_path: Path) -> None:
    figures = tmp_path / "model.json"
    command = [sys.executable, "-m", "laketier_verification.model", "--world=checkpoint", "--json", str(figures)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "checkpoint" in done.stdout
    (world,) = json.loads(figures.read_text())["worlds"]
    assert (world["world"], world["violated"]) == ("checkpoint", None)
    command = [sys.executable, "-m", "laketier_verification.model", "--without=horizon-check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "VIOLATED WHOLE" in done.stdout
