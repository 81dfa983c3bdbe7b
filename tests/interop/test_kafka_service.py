"""A service over topics of a real Kafka that is killed in mid-round: a slice of
``python -m laketier_verification.faults service``."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from laketier_verification.faults.service import play
from laketier_verification.faults.service_scenarios import SCENARIOS

pytestmark = pytest.mark.skipif("KAFKA_LIBS" not in os.environ, reason="KAFKA_LIBS names no folder with Kafka's jars")


@pytest.mark.parametrize("format", ["delta", "localfile"])
def test_a_broker_that_is_killed_in_mid_round_costs_no_rows(format: str, tmp_path: Path) -> None:
    [scenario] = [scenario for scenario in SCENARIOS if scenario.broker]
    verdict = play(scenario, format, tmp_path)
    assert verdict.clean, verdict
    assert verdict.rows > 0
