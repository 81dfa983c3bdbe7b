"""One real Fluss, and one Spark with the connectors of others, for all tests that need them."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from fluss_feed import Feed
from fluss_server import FlussServer
from fluss_tables import source_at
from jvm_spark import JvmSpark
from laketier.registry import OpenSource


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


@pytest.fixture(scope="session")
def jvm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JvmSpark]:
    """Spark with the jars of SPARK_LIBS, on the pyspark of SPARK_PYTHON. A test begins with `JvmSpark.session`."""
    started = JvmSpark(os.environ["SPARK_LIBS"], os.environ["SPARK_PYTHON"], tmp_path_factory.mktemp("jvm"))
    yield started
    started.close()
