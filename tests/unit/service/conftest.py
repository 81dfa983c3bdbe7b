"""A state store on SQLite, with a clock that the test moves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from laketier.service.state import (
    StateStore,
)
from state_tables import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/state.db"


@pytest.fixture
def store(url: str, clock: Clock) -> Iterator[StateStore]:
    with StateStore.open(url, clock=clock, seed=1) as opened:
        yield opened
