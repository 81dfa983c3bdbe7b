"""The crash windows of the tiering service: a slice of ``python -m laketier_verification.faults service``."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from depth import deep_where
from laketier.service import failpoints
from laketier.tiering.failpoints import PUBLISH_AFTER
from laketier_verification.faults.service_lab import Lab
from laketier_verification.faults.service_scenarios import last_commits_lost, server_restarted
from laketier_verification.postgresql import running_postgresql

POINTS = {
    "delta": failpoints.COMMITTED,
    "iceberg": failpoints.STAGED,
    "lance": failpoints.PLANNED,
    "localfile": failpoints.COMMITTED,
}
MakeLab = Callable[..., Lab]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[MakeLab]:
    labs: list[Lab] = []

    def make(format: str, **settings: Any) -> Lab:
        labs.append(Lab(format, tmp_path, tables=2, **settings))
        return labs[-1]

    yield make
    for lab in labs:
        lab.close()


@pytest.mark.slow
@pytest.mark.parametrize(("format", "point"), deep_where(list(POINTS.items()), lambda name, _: name == "localfile"))
def test_a_worker_that_is_killed_loses_and_doubles_nothing(make: MakeLab, format: str, point: str) -> None:
    lab = make(format)
    lab.feed()
    armed = lab.start(f"{point}=kill")
    assert armed.process.wait(120) == -signal.SIGKILL, armed.text
    lab.feed()
    lab.start()
    lab.drain()
    verdict = lab.judge()
    assert verdict.clean, verdict
    assert verdict.rows == 40


@pytest.mark.slow
@pytest.mark.parametrize("point", [failpoints.STAGED, pytest.param(PUBLISH_AFTER, marks=pytest.mark.deep)])
def test_a_zombie_whose_lease_was_taken_over_is_refused(make: MakeLab, point: str) -> None:
    lab = make("delta")
    lab.feed()
    zombie, flag = lab.pausing(point)
    lab.until(flag.exists, f"the worker did not get to {point}")
    with lab.stopped(zombie):
        lab.start()
        lab.feed()
        lab.until_tiered()
        lab.free(flag)
    lab.until(lambda: "Fenced" in zombie.text or "the lease was lost" in zombie.text, "nobody told the zombie")
    lab.drain()
    verdict = lab.judge()
    assert verdict.clean, verdict
    assert verdict.rows == 40


@pytest.mark.slow
def test_sigterm_ends_the_rounds_under_way_and_gives_the_rest_back(make: MakeLab) -> None:
    lab = make("localfile")
    lab.feed()
    worker, flag = lab.pausing(failpoints.STAGED)
    lab.until(flag.exists, "the worker staged nothing")
    worker.send(signal.SIGTERM)
    lab.free(flag)
    assert worker.end() == 0, worker.text
    assert {(status.table.state, status.table.rounds_total) for status in lab.tables()} == {("SCHEDULED", 1)}
    assert lab.judge().clean


@pytest.mark.slow
def test_a_state_server_that_restarts_in_mid_round_costs_no_rows(make: MakeLab) -> None:
    with running_postgresql() as server:
        lab = make("delta", server=server)
        verdict = server_restarted(lab)
        lab.close()
    assert verdict.clean, verdict
    assert verdict.rows > 0


@pytest.mark.slow
@pytest.mark.deep
def test_a_state_server_that_forgets_its_last_commits_costs_no_rows(make: MakeLab) -> None:
    """A failover to a replica that was behind."""
    with running_postgresql() as server:
        lab = make("localfile", server=server)
        verdict = last_commits_lost(lab)
        lab.close()
    assert verdict.clean, verdict
    assert verdict.rows > 0
