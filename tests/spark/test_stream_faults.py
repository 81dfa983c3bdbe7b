"""The driver killed, commits that fail after they landed, tasks that fail: still every row once, and nothing lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


@contextmanager
def driver(landing: Landing, target: Target, failpoints: str, **settings: Any) -> Iterator[subprocess.Popen[bytes]]:
    """The child, and at the end none of its processes."""
    document = {
        "columns": COLUMNS,
        "landing": str(landing.folder),
        "outcome": str(target.folder / "outcome"),
        "options": target.options(pipeline="events-v1") | {"checkpointLocation": str(target.checkpoint)},
        **settings,
    }
    process = subprocess.Popen(
        [sys.executable, str(CHILD), json.dumps(document)],
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


def outcome_of(process: subprocess.Popen[bytes], target: Target) -> str:
    process.wait(timeout=PATIENCE_SECONDS)
    return (target.folder / "outcome").read_text(encoding="utf-8")


def killed_at(point: str, landing: Landing, target: Target) -> None:
    flag = target.folder / "reached"
    with driver(landing, target, f"{point}=pause({flag})@2") as process:
        wait_for(flag, process)
        kill(process)
    flag.unlink()


@pytest.mark.quick_on("delta")
def test_killed_after_the_commit_landed(
    run_stream: Run, spark: SparkSession, landing: Landing, each_target: Target
) -> None:
    landing.land(3)
    killed_at("publish.after", landing, each_target)
    assert each_target.ids(spark) == landing.ids[:20], "epoch 1 landed, and Spark does not know it"
    assert not (each_target.checkpoint / "commits" / "1").exists()
    run_stream(landing, each_target)
    assert each_target.ids(spark) == landing.ids


def test_killed_before_the_commit(run_stream: Run, spark: SparkSession, landing: Landing, target: Target) -> None:
    landing.land(3)
    killed_at("publish.before", landing, target)
    assert target.ids(spark) == landing.ids[:10]
    run_stream(landing, target)
    assert target.ids(spark) == landing.ids


def test_abort_after_a_landed_commit_deletes_nothing(
    run_stream: Run, spark: SparkSession, landing: Landing, target: Target
) -> None:
    """Epoch 0 loses publish's answer and finds out by itself; epoch 1 fails after that, so Spark aborts it."""
    landing.land(3)
    with driver(landing, target, "publish.after=error@1;ack.before=error@2") as process:
        assert "failpoint ack.before" in outcome_of(process, target)
    assert target.ids(spark) == landing.ids[:20], "the epoch that Spark aborted is in the table"
    files = target.data_files()
    assert len(files) == 2
    run_stream(landing, target)
    assert target.ids(spark) == landing.ids
    assert set(files) < set(target.data_files())


def test_failed_attempt_leaves_nothing(spark: SparkSession, landing: Landing, target: Target) -> None:
    landing.land(2)
    with driver(landing, target, "", master="local[1,2]", fail_first_attempt=True) as process:
        assert outcome_of(process, target) == "ended"
    assert target.ids(spark) == landing.ids
    assert len(target.data_files()) == 2, "one file per epoch: the failed attempts' are gone"
