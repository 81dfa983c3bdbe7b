from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from kafka_broker import KafkaBroker

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
