"""What is said of a state database that is away."""

from __future__ import annotations

import logging

import pytest

from laketier.service.outage import Outage
from laketier.service.state import StateError


def test_an_outage_is_said_at_once_then_once_a_minute_and_when_it_is_over(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    caplog.set_level(logging.INFO)
    outage = Outage(logging.getLogger("x"), "no table is taken", lambda: now)
    outage.back()
    for second in range(100):
        now = second
        outage.away(StateError("it is full"))
    outage.away(StateError("it is another one"))
    outage.back()
    outage.back()
    outage.away(StateError("it is full"))
    assert caplog.messages == [
        "no table is taken: it is full",
        "no table is taken (for 60 s): it is full",
        "no table is taken (for 99 s): it is another one",
        "the state database answers again, after 99 s",
        "no table is taken: it is full",
    ]
