"""A driver on Spark that dies with batches of every format in mid-publish. Streams: see test_stream_faults.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from laketier_verification.faults.matrix import FORMATS
from laketier_verification.faults.spark_lane import SparkPipeline, SparkProcesses

pytestmark = [pytest.mark.deep, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture
def processes() -> Iterator[SparkProcesses]:
    started = SparkProcesses()
    yield started
    started.close()


def test_batches_survive_a_kill_of_the_driver(tmp_path: Path, processes: SparkProcesses) -> None:
    """Eight pipelines in one driver: each format by `write` and by `tier`. All stand behind the commit of epoch 1, and
    nobody was told of it, when the driver is killed with its JVM and workers."""
    pipelines = [
        SparkPipeline(name, tmp_path / f"{lane}-{name}", processes, lane=lane, epochs=2)
        for name in FORMATS
        for lane in ("batch", "split")
    ]
    requests = [pipeline.request(tasks=1) for pipeline in pipelines]
    assert processes.together(requests, at="publish.after") == {"outcome": "killed"}
    for pipeline in pipelines:
        assert pipeline.progress.acknowledged == [0]
        pipeline.look()
    assert processes.together(requests, at="")["results"] == [{"outcome": "finished"}] * len(pipelines)
    assert processes.starts == 2
    for pipeline in pipelines:
        verdict = pipeline.verdict()
        assert verdict.clean, (pipeline.lane, pipeline.format, verdict)
        assert len(pipeline.found()) == pipeline.epochs * pipeline.rows
