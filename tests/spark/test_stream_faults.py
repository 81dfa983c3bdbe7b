"""The driver killed, commits that fail after they landed, tasks that fail: still every row once, and nothing lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.sql import SparkSession

from spark_lake import COLUMNS, Landing, Target

Run = Callable[..., list[dict[str, Any]]]
pytestmark = pytest.mark.timeout(600)
CHILD = Path(__file__).with_name("stream_child.py")
PATIENCE_SECONDS = 240


@dataclass(frozen=True)
class Stream:
    """A landing zone and its target, and whether the first attempt of each task fails."""

    landing: Landing
    target: Target
    fail_first_attempt: bool = False

    @property
    def outcome(self) -> Path:
        return self.target.folder / "outcome"

    def request(self) -> dict[str, Any]:
        return {
            "columns": COLUMNS,
            "landing": str(self.landing.folder),
            "outcome": str(self.outcome),
            "options": self.target.options(pipeline="events-v1") | {"checkpointLocation": str(self.target.checkpoint)},
            "fail_first_attempt": self.fail_first_attempt,
        }


@contextmanager
def driver(failpoints: str, *streams: Stream) -> Iterator[subprocess.Popen[bytes]]:
    """The child, and at the end none of its processes."""
    process = subprocess.Popen(
        [sys.executable, str(CHILD), json.dumps([stream.request() for stream in streams])],
        env={**os.environ, "LAKETIER_FAILPOINTS": failpoints},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL to the driver, its JVM and its Python workers: the machine went away."""
    if process.poll() is None:
        root = psutil.Process(process.pid)
        family = [root, *root.children(recursive=True)]
        for member in family:
            try:
                member.kill()
            except psutil.NoSuchProcess:
                continue
        psutil.wait_procs(family[1:], timeout=30)
    process.wait(timeout=30)


def wait_for(flag: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not flag.exists():
        assert process.poll() is None, "the driver ended before it reached the failpoint"
        assert time.monotonic() < deadline, "the driver never reached the failpoint"
        time.sleep(0.05)


def killed_at(point: str, landing: Landing, target: Target) -> None:
    flag = target.folder / "reached"
    with driver(f"{point}=pause({flag})@2", Stream(landing, target)) as process:
        wait_for(flag, process)
        kill(process)
    flag.unlink()


@pytest.mark.deep
def test_killed_after_the_commit_landed(
    run_stream: Run, spark: SparkSession, landing: Landing, each_target: Target
) -> None:
    landing.land(3)
    killed_at("publish.after", landing, each_target)
    assert each_target.ids(spark) == landing.ids[:20], "epoch 1 landed, and Spark does not know it"
    assert not (each_target.checkpoint / "commits" / "1").exists()
    run_stream(landing, each_target)
    assert each_target.ids(spark) == landing.ids


@pytest.mark.deep
def test_killed_before_the_commit(run_stream: Run, spark: SparkSession, landing: Landing, target: Target) -> None:
    landing.land(3)
    killed_at("publish.before", landing, target)
    assert target.ids(spark) == landing.ids[:10]
    run_stream(landing, target)
    assert target.ids(spark) == landing.ids


@pytest.fixture(scope="module")
def aborted_and_retried(tmp_path_factory: pytest.TempPathFactory) -> tuple[Stream, Stream]:
    """Two streams of one driver. Epoch 0 of each loses publish's answer and finds out by itself; epoch 1 fails after
    that, so Spark aborts it, and the first stream. The second has no such epoch, and its tasks fail once each."""
    first, second = (
        Stream(Landing(f / "landing"), Target(f, "localfile"), again)
        for f, again in ((tmp_path_factory.mktemp("aborted"), False), (tmp_path_factory.mktemp("retried"), True))
    )
    first.landing.land(3)
    second.landing.land(1)
    with driver("publish.after=error@1;ack.before=error@2", first, second) as process:
        assert process.wait(timeout=PATIENCE_SECONDS) == 0
    return first, second


def test_abort_after_a_landed_commit_deletes_nothing(
    run_stream: Run, spark: SparkSession, aborted_and_retried: tuple[Stream, Stream]
) -> None:
    stream, _ = aborted_and_retried
    landing, target = stream.landing, stream.target
    assert "failpoint ack.before" in stream.outcome.read_text(encoding="utf-8")
    assert target.ids(spark) == landing.ids[:20], "the epoch that Spark aborted is in the table"
    files = target.data_files()
    assert len(files) == 2
    run_stream(landing, target)
    assert target.ids(spark) == landing.ids
    assert set(files) < set(target.data_files())


def test_failed_attempt_leaves_nothing(spark: SparkSession, aborted_and_retried: tuple[Stream, Stream]) -> None:
    _, stream = aborted_and_retried
    assert stream.outcome.read_text(encoding="utf-8") == "ended"
    assert stream.target.ids(spark) == stream.landing.ids
    assert len(stream.target.data_files()) == 1, "the failed attempt's is gone"
