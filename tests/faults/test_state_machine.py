"""Random histories of every installed format against a small model (`machine.model`).

`make test` runs a few that are always the same, the deep tests some dozens, and ``LAKETIER_MACHINE_EXAMPLES=300`` that
many new ones per format, of ``LAKETIER_MACHINE_STEPS`` steps each. `pytest -rP` shows what happened in them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from depth import deep_where, sizes
from laketier.registry import format_names
from laketier.spi import Decision, LaketierError, TableState, Token, Watermark, WriteResult, decide
from laketier_verification.machine.history import BATCH, EPOCH, machine_of

EXAMPLES = os.environ.get("LAKETIER_MACHINE_EXAMPLES")
STEPS = int(os.environ.get("LAKETIER_MACHINE_STEPS", "25" if EXAMPLES is None else "40"))
FEW = {"delta": 2, "iceberg": 2, "lance": 4, "localfile": 6}
MORE = {"delta": 12, "iceberg": 8}
"""Their commits and scans cost ten times as much as those of the others."""
ALWAYS = (
    {f"{EPOCH}: published"},
    {f"{BATCH}: published"},
    {"recovered", "failure: there"},
    {"crash: there", "crash of a batch: there"},
    {"crash: not there"},
    {"replayed", "crash in a replay", "late: already there"},
    {"published late", "overtook"},
    {"Gap", "Stale", "Fenced", "TokenMismatch"},
)
"""Of each of these at least one must have happened: in the few histories of all formats together, in more of each."""


def chosen(examples: int, *phases: Phase) -> settings:
    return settings(
        max_examples=examples,
        stateful_step_count=STEPS,
        derandomize=EXAMPLES is None,
        database=None,
        deadline=None,
        print_blob=EXAMPLES is not None,
        phases=[Phase.generate, *phases],
        suppress_health_check=list(HealthCheck),
    )


def few_of(format: str) -> int:
    return FEW.get(format, 8)


@pytest.fixture(scope="module")
def few() -> dict[str, set[str]]:
    """What happened in the few histories of each format."""
    return {}


@pytest.mark.timeout(7200 if EXAMPLES else 900)  # a failure is made shorter first, which takes many runs
@pytest.mark.each_format  # what the few histories of all of them leave out is told below
@pytest.mark.parametrize("format", format_names())
@sizes("histories", few_of, lambda name: MORE.get(name, 36))
def test_any_history(histories: Callable[[str], int], format: str, tmp_path: Path, few: dict[str, set[str]]) -> None:
    machine = machine_of(format, tmp_path)
    run_state_machine_as_test(machine, settings=chosen(int(EXAMPLES or histories(format)), Phase.shrink))
    print(f"{format}: {machine.tally}; points: {', '.join(map(repr, machine.points))}")
    if histories is few_of:
        few[format] = set(machine.tally.outcomes)
    else:
        assert _missing(set(machine.tally.outcomes)) == [], "the histories left something out, so it is not tested"


def test_the_few_histories_leave_nothing_out(few: dict[str, set[str]]) -> None:
    if few.keys() < set(format_names()):
        pytest.skip("the histories of some formats were not run, or failed")
    assert _missing(set().union(*few.values())) == [], "the histories left something out, so it is not tested"


def _missing(outcomes: set[str]) -> list[set[str]]:
    return [each for each in ALWAYS if not each & outcomes]


def never_done(watermark: Watermark | None, token: Token) -> Decision:
    """The rule without its DONE."""
    decide(watermark, token)
    return Decision.PROCEED


def unchecked(state: TableState, results: Sequence[WriteResult], *asked: object) -> None:
    """A check that lets everything pass."""


SLOW = {"files for another schema are refused", "collected files are refused"}
"""It takes many histories until one needs these guards. In `make test` the suite and test_foreign_work show them."""
GUARDS = {
    "a replay is done": {"publish.decide": never_done, "round.decide": never_done},
    "collected files are refused": {"publish.check_not_collected": unchecked},
    "files for another schema are refused": {"publish.check_results": unchecked},
}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("guard", deep_where([(guard,) for guard in GUARDS], SLOW.__contains__))
def test_a_guard_that_is_taken_away(guard: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So the histories would tell. With ``LAKETIER_MACHINE_SHRINK=1`` the shortest one is printed."""
    for name, put in GUARDS[guard].items():
        monkeypatch.setattr(f"laketier.tiering.{name}", put)
    shrink = [Phase.shrink] if os.environ.get("LAKETIER_MACHINE_SHRINK") else []
    with pytest.raises((AssertionError, LaketierError)) as failure:
        run_state_machine_as_test(machine_of("localfile", tmp_path), settings=chosen(300, *shrink))
    print(f"without {guard!r}: {failure.value}", *getattr(failure.value, "__notes__", ()), sep="\n")
