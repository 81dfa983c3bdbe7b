from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from laketier.config import LakeConfig
from laketier.registry import configure
from laketier.rounds.log_engine import LocalEngine
from laketier_kafka.mock_broker import KafkaBroker

_NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def broker() -> Iterator[KafkaBroker]:
    with KafkaBroker() as started:
        yield started


@pytest.fixture
def topic(broker: KafkaBroker) -> str:
    """A new one with two partitions."""
    name = f"topic-{next(_NUMBERS)}"
    broker.create_topic(name, 2)
    return name


@pytest.fixture(scope="session")
def engine() -> Iterator[LocalEngine]:
    engine = LocalEngine(2)
    yield engine
    engine.close()


@pytest.fixture(params=["delta", "iceberg", "lance", "localfile"])
def lake_config(request: pytest.FixtureRequest, tmp_path: Path) -> LakeConfig:
    """A table that is not there yet, in each format."""
    return configure(
        {
            "lake.format": request.param,
            "lake.warehouse": str(tmp_path / "lake"),
            "lake.table": "db.t",
            "lake.pipeline": "tests.lines.t",
        }
    )
