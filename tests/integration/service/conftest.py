"""One PostgreSQL server for all that need one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from laketier_verification.postgresql import PostgreSQL, running_postgresql


@pytest.fixture(scope="session")
def server() -> Iterator[PostgreSQL]:
    with running_postgresql() as running:
        yield running
