"""The same rounds on real Spark, in each lane."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from laketier.kit.failpoints import VARIABLE
from laketier.spi import ConfigError, Feature
from laketier_conformance.expect import expect, refused
from laketier_conformance.lake import Lake, ids_of
from laketier_conformance.spark_lanes import DATAFRAME, SPLIT, TABLE, land, options, run_round, start_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

lanes = pytest.mark.parametrize(
    "lane", [pytest.param(lane, marks=pytest.mark.lane(lane)) for lane in (DATAFRAME, SPLIT)]
)
Round = Callable[..., None]


@pytest.fixture(scope="session")
def session() -> Iterator[SparkSession]:
    """One Spark for the run. Without it these tests are skipped, and the verdict is partial."""
    try:
        started = start_session()
    except ConfigError as error:
        pytest.skip(str(error))
    yield started
    started.stop()


@pytest.fixture
def epoch(session: SparkSession, lake: Lake, tmp_path: Path) -> Round:
    """Run an epoch in a lane: two files of ids, or those given. The same epoch reads the same files again."""

    def run(lane: str, number: int, *parts: list[int], mode: str = "append") -> None:
        folder = tmp_path / f"epoch-{number}"
        if not folder.exists():
            land(folder, parts or (ids_of(number, 0), ids_of(number, 1)))
        run_round(session, lane, lake, number, folder, mode)

    return run


def _of(*epochs: int) -> list[int]:
    return sorted(i for number in epochs for split in (0, 1) for i in ids_of(number, split))


@lanes
def test_epochs_and_their_replay(lake: Lake, epoch: Round, session: SparkSession, lane: str) -> None:
    epoch(lane, 0)
    epoch(lane, 1)
    epoch(lane, 1)
    table = lake.table(TABLE)
    expect(table.ids, _of(0, 1), "rows after an epoch was run twice on Spark")
    mark = table.watermark()
    assert mark is not None, "a pipeline has a watermark after its epochs on Spark"
    expect(
        (mark.token.epoch, mark.rows), (1, 10), "epoch and rows of the watermark after an epoch was run twice on Spark"
    )
    read = session.read.format("laketier").options(**_reading(lake)).load()
    expect(sorted(row.id for row in read.collect()), _of(0, 1), "rows that Spark reads")


@lanes
def test_an_epoch_that_skips_is_refused(lake: Lake, epoch: Round, lane: str) -> None:
    epoch(lane, 0)
    with refused(Exception, "an epoch that skips one is run on Spark", match="does not follow"):
        epoch(lane, 2)
    expect(lake.table(TABLE).ids, _of(0), "rows after an epoch was refused on Spark")


@lanes
def test_an_empty_epoch(lake: Lake, epoch: Round, lane: str) -> None:
    epoch(lane, 0)
    epoch(lane, 1, [])
    epoch(lane, 2)
    expect(lake.table(TABLE).ids, _of(0, 2), "rows of epochs around an empty one on Spark")


@pytest.mark.needs(Feature.OVERWRITE)
@lanes
def test_an_overwrite(lake: Lake, epoch: Round, lane: str) -> None:
    epoch(lane, 0)
    lake.table(TABLE).append(0, ids_of(5), pipeline="other")
    epoch(lane, 1, mode="overwrite")
    epoch(lane, 1, mode="overwrite")
    expect(lake.table(TABLE).ids, _of(1), "rows after an overwrite was run twice on Spark")
    assert lake.table(TABLE).watermark("other") is not None, (
        "the other pipeline has its watermark after an overwrite on Spark"
    )


@lanes
def test_a_killed_driver_and_its_replay(lake: Lake, epoch: Round, tmp_path: Path, lane: str) -> None:
    """SIGKILL after the effect, before the answer: the epoch is there, and its replay does not double it."""
    epoch(lane, 0)
    land(tmp_path / "epoch-1", (ids_of(1, 0), ids_of(1, 1)))
    request = {
        "lane": lane,
        "format": lake.format,
        "warehouse": lake.location,
        "options": dict(lake.options),
        "epoch": 1,
        "folder": str(tmp_path / "epoch-1"),
    }
    command = [sys.executable, "-m", "laketier_conformance.spark_lanes", json.dumps(request)]
    environment = {**os.environ, VARIABLE: "publish.after=kill"}
    died = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    expect(
        died.returncode,
        -signal.SIGKILL,
        f"the exit code of a driver that is to be killed after it published: {died.stderr[-500:]}",
    )
    expect(lake.table(TABLE).ids, _of(0, 1), "rows of an epoch whose driver was killed after it published")
    epoch(lane, 1)
    epoch(lane, 2)
    expect(lake.table(TABLE).ids, _of(0, 1, 2), "rows after the epoch was run again, and the next one")


@pytest.mark.lane(DATAFRAME)
def test_a_stream_and_the_replay_of_an_epoch(lake: Lake, session: SparkSession, tmp_path: Path) -> None:
    """One file an epoch. Then Spark loses its note of the last commit, and runs that epoch again."""
    landing, checkpoint = tmp_path / "landing", tmp_path / "checkpoint"

    def stream() -> None:
        files = session.readStream.schema("id long, name string, value double").option("maxFilesPerTrigger", 1)
        keys = options(lake, None) | {"checkpointLocation": str(checkpoint)}
        writer = files.parquet(str(landing)).writeStream.format("laketier").options(**keys)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()

    land(landing, [ids_of(0), ids_of(1)], "a")
    stream()
    expect(lake.table(TABLE).ids, ids_of(0) + ids_of(1), "rows of a stream of two files")
    commits = sorted((checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    expect(
        [path.name for path in commits], ["0", "1"], "the epochs that Spark noted in its checkpoint, as this test needs"
    )
    commits[-1].unlink()
    (checkpoint / "commits" / ".1.crc").unlink(missing_ok=True)
    land(landing, [ids_of(2)], "b")
    stream()
    expect(
        lake.table(TABLE).ids, ids_of(0) + ids_of(1) + ids_of(2), "rows after Spark ran an epoch of the stream again"
    )
    mark = lake.table(TABLE).watermark()
    assert mark is not None, "a stream has a watermark"
    expect(mark.token.epoch, 2, "the epoch of the stream's watermark")


@pytest.mark.lane(DATAFRAME)
def test_a_stream_from_another_checkpoint_is_refused(lake: Lake, session: SparkSession, tmp_path: Path) -> None:
    landing = tmp_path / "landing"
    land(landing, [ids_of(0)])

    def stream(checkpoint: Path) -> None:
        files = session.readStream.schema("id long, name string, value double")
        keys = options(lake, None) | {"checkpointLocation": str(checkpoint)}
        query = files.parquet(str(landing)).writeStream.format("laketier").options(**keys).trigger(availableNow=True)
        query.start().awaitTermination()

    stream(tmp_path / "first")
    with refused(Exception, "a stream is run from another checkpoint", match="belongs to run"):
        stream(tmp_path / "second")
    shutil.rmtree(tmp_path / "second")
    expect(lake.table(TABLE).ids, ids_of(0), "rows after a stream from another checkpoint was refused")


def _reading(lake: Lake) -> dict[str, str]:
    return {key: value for key, value in options(lake, None).items() if key != "lake.pipeline"}
