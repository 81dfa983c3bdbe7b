"""One real Fluss for all tests that need it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from fluss_feed import Feed
from fluss_server import FlussServer
from fluss_tables import source_at
from laketier.plugins import OpenSource


@pytest.fixture(scope="session")
def fluss(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlussServer]:
    started = FlussServer(os.environ["FLUSS_LIBS"], tmp_path_factory.mktemp("fluss"))
    yield started
    started.close()


@pytest.fixture(scope="session")
def feed(fluss: FlussServer) -> Iterator[Feed]:
    started = Feed(fluss.bootstrap)
    yield started
    started.close()


@pytest.fixture
def source(fluss: FlussServer) -> Iterator[OpenSource]:
    opened = source_at(fluss)
    yield opened
    opened.source.close()
