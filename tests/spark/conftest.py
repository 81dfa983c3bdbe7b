"""Fixtures of the tests on Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from laketier.registry import format_names
from spark_lake import BUILT_IN, COLUMNS, Landing, Target


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "lake_format" in metafunc.fixturenames:
        chosen = metafunc.definition.get_closest_marker("quick_on")
        here = [name for name in BUILT_IN if name in format_names()]
        deep = [] if chosen is None else [name for name in here if name not in chosen.args]
        metafunc.parametrize(
            "lake_format", [pytest.param(name, marks=[pytest.mark.deep] if name in deep else []) for name in here]
        )


@pytest.fixture
def landing(tmp_path: Path) -> Landing:
    return Landing(tmp_path / "landing")


@pytest.fixture
def target(tmp_path: Path) -> Target:
    """Local files, for what does not depend on the format."""
    return Target(tmp_path, "localfile")


@pytest.fixture
def each_target(tmp_path: Path, lake_format: str) -> Target:
    """Every installed format of this repository."""
    return Target(tmp_path, lake_format)


@pytest.fixture
def run_stream(spark: SparkSession) -> Iterator[Callable[..., list[dict[str, Any]]]]:
    """Stream a landing zone into a target, one file per epoch, until all is taken. Returns Spark's progress."""

    def run(landing: Landing, target: Target, *, df: DataFrame | None = None, **options: Any) -> list[dict[str, Any]]:
        if df is None:
            reader = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1)
            df = reader.parquet(str(landing.folder))
        settings = target.options(pipeline="events-v1") | {
            "checkpointLocation": str(target.checkpoint),
            **{key: str(value) for key, value in options.items()},
        }
        settings = {key: value for key, value in settings.items() if value != "None"}
        query = df.writeStream.format("laketier").options(**settings).trigger(availableNow=True).start()
        try:
            query.awaitTermination()
        finally:
            query.stop()
        return list(query.recentProgress)

    yield run
    for query in spark.streams.active:
        query.stop()
