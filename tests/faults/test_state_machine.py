"""Random histories of every installed format against a small model (`machine.model`).

``LAKETIER_MACHINE_EXAMPLES=300`` runs that many new histories per format, of ``LAKETIER_MACHINE_STEPS`` steps each,
instead of the few that are always the same. `pytest -rP` shows what happened in them.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis.stateful import run_state_machine_as_test

from laketier.plugins import format_names
from machine.history import BATCH, EPOCH, NEW_LEASE, machine_of

EXAMPLES = os.environ.get("LAKETIER_MACHINE_EXAMPLES")
STEPS = int(os.environ.get("LAKETIER_MACHINE_STEPS", "25" if EXAMPLES is None else "40"))
FEWER = {"delta": 20, "iceberg": 12}
"""Their commits and scans cost ten times as much as those of the others."""
ALWAYS = {f"{kind}: published" for kind in (EPOCH, NEW_LEASE, BATCH)} | {"published late", "recovered", "replayed"}
ALWAYS |= {"crash: there", "crash: not there", "failure: there", "failure: not there", "TokenMismatch"}


@pytest.mark.timeout(7200 if EXAMPLES else 900)  # a failure is made shorter first, which takes many runs
@pytest.mark.parametrize("format", format_names())
def test_any_history(format: str, tmp_path: Path) -> None:
    machine = machine_of(format, tmp_path)
    chosen = settings(
        max_examples=int(EXAMPLES or FEWER.get(format, 60)),
        stateful_step_count=STEPS,
        derandomize=EXAMPLES is None,
        database=None,
        deadline=None,
        print_blob=EXAMPLES is not None,
        verbosity=Verbosity.normal,
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(machine, settings=chosen)
    print(f"{format}: {machine.tally}; points: {', '.join(map(repr, machine.points))}")
    missing = ALWAYS - machine.tally.outcomes.keys()
    assert not missing, "the histories left something out, so it is not tested"
