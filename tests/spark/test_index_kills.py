"""Spark's driver and its executors are killed while they build an index: the old index answers, or the new one."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import lance
import psutil
import pyarrow as pa
import pytest

from laketier.kit import failpoints
from laketier.maintenance.index_builds import build_here, build_index
from laketier.maintenance.index_tasks import PART_BEGUN, PART_DONE
from laketier.maintenance.orphans import collect_orphans
from laketier.registry import Lake, configure, open_lake
from laketier.spi import IndexInfo, IndexKind, IndexMode, IndexSpec

ROWS, FRAGMENTS, TASKS = 20_000, 8, 4
WORDS = ("lake", "river", "mountain", "snow", "stone", "forest", "wind")

DRIVER = """
import sys
import laketier.spark
from pyspark.sql import SparkSession

master, builds = sys.argv[1], int(sys.argv[2])
options = dict(each.split("=", 1) for each in sys.argv[3:])
builder = SparkSession.builder.master(master).config("spark.ui.enabled", False).config("spark.driver.host", "127.0.0.1")
spark = builder.config("spark.deploy.maxExecutorRetries", -1).getOrCreate()
spark.range(4).repartition(2).mapInPandas(lambda batches: batches, "id long").count()
for number in range(builds):
    print("begun", number, flush=True)
    sys.stdin.readline()
    settings = {"with_position": number % 2 == 0, "stem": False}
    try:
        laketier.spark.create_index(spark, options, "doc", "inverted", mode="replace", options=settings, tasks=4)
        print("built", number, flush=True)
    except Exception as error:
        print("failed", number, type(error).__name__, str(error)[:200].replace(chr(10), " "), flush=True)
"""


def _options(warehouse: Path) -> dict[str, str]:
    return {"lake.format": "lance", "lake.warehouse": str(warehouse), "lake.table": "db.t"}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    texts = [f"{WORDS[each % 7]} {WORDS[each % 5]} number {each}" for each in range(ROWS)]
    uri = tmp_path / "lake" / "db" / "t.lance"
    lance.write_dataset(pa.table({"id": range(ROWS), "doc": texts}), uri, max_rows_per_file=ROWS // FRAGMENTS)
    opened = open_lake(configure(_options(tmp_path / "lake")))
    _build(opened)
    return opened


def _build(lake: Lake) -> IndexInfo:
    """One without Spark, of the settings that no build on Spark has."""
    spec = IndexSpec("doc_idx", "doc", IndexKind.INVERTED, {"with_position": False, "stem": True})
    indexer = lake.indexer(lake.load_table())
    return build_index(indexer, spec, IndexMode.REPLACE, max_parts=2, build=build_here)


def _whole(lake: Lake) -> tuple[str, ...]:
    """The segments of the index, once it was seen to be whole and to answer as a look at each row does."""
    (info,) = lake.indexer(lake.load_table()).indexes()
    assert (info.rows_indexed, info.rows_not_indexed, info.damage) == (ROWS, 0, None)
    searcher = lake.searcher(lake.load_table())
    for word in ("mountain", "snow", "17", "19999"):
        found = searcher.search(word, k=10_000, columns=["id", "doc"])
        texts = lance.dataset(lake.load_table().location).to_table(["id", "doc"]).to_pylist()
        assert set(found.rows["id"].to_pylist()) == {row["id"] for row in texts if word in row["doc"].split()}
        assert found.explain.rows_flat == 0
    return info.segments


def _driver(lake: Lake, master: str, builds: int, point: str = "") -> subprocess.Popen[str]:
    assert lake.config.warehouse is not None
    options = [f"{key}={value}" for key, value in _options(Path(lake.config.warehouse)).items()]
    return subprocess.Popen(
        [sys.executable, "-c", DRIVER, master, str(builds), *options],
        env={**os.environ, failpoints.VARIABLE: point, "PYSPARK_PYTHON": sys.executable},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


def _read(driver: subprocess.Popen[str], word: str) -> str:
    assert driver.stdout is not None
    line = driver.stdout.readline()
    while line and not line.startswith(word):
        line = driver.stdout.readline()
    return line


def _go_on(driver: subprocess.Popen[str]) -> None:
    assert driver.stdin is not None
    driver.stdin.write("\n")
    driver.stdin.flush()


def _end(driver: subprocess.Popen[str]) -> None:
    """With its JVM and its workers, which are of its group."""
    os.killpg(driver.pid, signal.SIGKILL)
    driver.communicate()


def _is_left_clean(lake: Lake) -> None:
    """What is not of the index is collected, and nothing that is; the next build goes well."""
    segments = _whole(lake)
    table = lake.load_table()
    collect_orphans(lake.storage, table, grace=timedelta(0))
    assert _whole(lake) == segments
    assert len(_build(lake).segments) == 2
    lance.dataset(table.location).cleanup_old_versions(older_than=timedelta(0))
    collect_orphans(lake.storage, lake.load_table(), grace=timedelta(0))
    files = [path for path in Path(table.location, "_indices").rglob("*") if path.is_file()]
    assert {path.parent.name for path in files} == set(_whole(lake))


POINTS = (
    f"{PART_BEGUN}=kill",
    f"{PART_DONE}=kill",
    f"{PART_DONE}=kill@2",
    "index.before_commit=kill",
    "index.between_commit_and_fsync=kill",
)


@pytest.mark.deep
@pytest.mark.parametrize("point", POINTS)
def test_a_driver_or_a_worker_that_is_killed_at_a_step(lake: Lake, point: str) -> None:
    before = _whole(lake)
    driver = _driver(lake, "local[2]", 1, point)
    _read(driver, "begun")
    _go_on(driver)
    said = _read(driver, "")
    _end(driver)
    after = _whole(lake)
    assert said.startswith("built") <= (after != before)
    assert (after != before) == ("between" in point or said.startswith("built"))
    _is_left_clean(lake)


@pytest.mark.deep
def test_a_driver_that_is_killed_at_any_moment(lake: Lake) -> None:
    chance = random.Random(1)
    for _ in range(6):
        driver = _driver(lake, "local[2]", 1)
        _read(driver, "begun")
        alarm = threading.Timer(chance.uniform(0.05, 2.0), os.killpg, (driver.pid, signal.SIGKILL))
        alarm.start()
        _go_on(driver)
        driver.wait()
        alarm.join()
        driver.communicate()
        _whole(lake)
    _is_left_clean(lake)


@pytest.mark.deep
def test_executors_that_are_killed_at_any_moment(lake: Lake) -> None:
    """Spark starts others. A build that lost one too many fails, and changes nothing."""
    chance, kills = random.Random(2), 12
    killed: list[object] = []
    driver = _driver(lake, "local-cluster[2,1,1024]", kills)
    try:
        for _ in range(kills):
            _read(driver, "begun")
            before = _whole(lake)

            def kill() -> None:
                found = [each for each in psutil.Process(driver.pid).children(recursive=True) if _is_executor(each)]
                if found:
                    chance.choice(found).send_signal(signal.SIGKILL)
                    killed.append(found)

            alarm = threading.Timer(chance.uniform(0.0, 1.5), kill)
            alarm.start()
            _go_on(driver)
            said = _read(driver, "")
            alarm.join()
            assert said.startswith("built") == (_whole(lake) != before), said
    finally:
        _end(driver)
    assert len(killed) > kills // 2, "most builds lost an executor"
    _is_left_clean(lake)


def _is_executor(process: psutil.Process) -> bool:
    with suppress(psutil.Error):  # it ended, or is a zombie
        return "CoarseGrainedExecutorBackend" in " ".join(process.cmdline())
    return False
