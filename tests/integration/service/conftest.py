"""One PostgreSQL server for all that need one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from laketier_verification.postgresql import PostgreSQL, running_postgresql
from tiering_service import Service


@pytest.fixture(scope="session")
def server() -> Iterator[PostgreSQL]:
    with running_postgresql() as running:
        yield running


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Service]]:
    made: list[Service] = []

    def make(*names: str, **sink: str) -> Service:
        made.append(Service(tmp_path, names, sink=sink))
        return made[-1]

    yield make
    for service in made:
        for store in service.opened:
            store.close()
