"""What the tests of the suite are given."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from laketier.registry import installed_formats
from laketier_conformance.forks import Forks
from laketier_source_conformance.children import Processes, warmed
from laketier_source_conformance.harness import SourceHarness, harness_of
from laketier_source_conformance.system import System, Table, blamed


@pytest.fixture(scope="session")
def kind(pytestconfig: pytest.Config) -> str:
    """The source under test, as ``type`` in a service file."""
    return str(pytestconfig.getoption("log_source"))


@pytest.fixture(scope="session")
def harness_type(pytestconfig: pytest.Config, kind: str) -> type[SourceHarness]:
    """The author's harness."""
    return harness_of(kind, pytestconfig.getoption("log_harness"))


@pytest.fixture
def system(kind: str, harness_type: type[SourceHarness], tmp_path: Path) -> Iterator[System]:
    """A system of its own for each test."""
    folder = tmp_path / "system"
    folder.mkdir()
    with blamed("__init__"):
        harness = harness_type(folder)
    made = System(kind, harness)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def table(system: System) -> Table:
    """An empty table."""
    return system.table()


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks | None]:
    """What forks other processes, once for a run."""
    made = warmed()
    yield made
    if made is not None:
        made.stop()


@pytest.fixture
def processes(tmp_path: Path, forks: Forks | None) -> Iterator[Processes]:
    """Other processes, which read splits and run rounds."""
    made = Processes(tmp_path / "tasks", forks)
    yield made
    made.stop()


@pytest.fixture(scope="session")
def lake_format(pytestconfig: pytest.Config) -> str | None:
    """The format into whose table rounds bring the rows. None where none is installed."""
    return pytestconfig.getoption("log_lake") or min((each.name for each in installed_formats()), default=None)


@pytest.fixture
def draw(pytestconfig: pytest.Config, request: pytest.FixtureRequest) -> random.Random:
    """Draws the same in each run of a test, unless another seed is given."""
    return random.Random(f"{request.node.name} {pytestconfig.getoption('log_seed')}")
