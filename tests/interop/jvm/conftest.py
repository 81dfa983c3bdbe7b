"""One Spark session with iceberg-spark and delta-spark in it. `make test-interop-jvm` says where the jars are."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from jvm_lake import JvmLake, jars_of, session

LINE = "4.1."
ZONE = "America/New_York"
"""The JVM's zone and the session's: neither UTC nor a whole year at one offset."""
FORMATS = ("delta", "iceberg")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "jvm_lake" in metafunc.fixturenames:
        metafunc.parametrize("format", FORMATS)


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("warehouse")


@pytest.fixture(scope="session")
def jvm(tmp_path_factory: pytest.TempPathFactory, warehouse: Path) -> Iterator[SparkSession]:
    jars = os.environ.get("SPARK_LIBS")
    if jars is None:
        pytest.skip("SPARK_LIBS names no folder with the jars of delta-spark and iceberg-spark: make test-interop-jvm")
    if not pyspark.__version__.startswith(LINE):
        pytest.skip(f"the connectors are built for Spark {LINE}x, this is {pyspark.__version__}: make test-interop-jvm")
    yield from session(jars_of(Path(jars)), ZONE, tmp_path_factory.mktemp("spark"), warehouse)


@pytest.fixture
def jvm_lake(jvm: SparkSession, warehouse: Path, format: str) -> JvmLake:
    """A table that is not there yet."""
    return JvmLake.of(format, jvm, warehouse)


@pytest.fixture
def each(jvm: SparkSession, warehouse: Path) -> Callable[[str], JvmLake]:
    return lambda name: JvmLake.of(name, jvm, warehouse)
