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

import pyarrow as pa
import pytest

from laketier.kit.failpoints import VARIABLE
from laketier.spi import ConfigError, Feature
from laketier_conformance.expect import expect, refused
from laketier_conformance.lake import Lake, ids_of
from laketier_conformance.odd_rows import KEY, by_id, odd_rows
from laketier_conformance.oracle import rows_for
from laketier_conformance.spark_lanes import (
    DATAFRAME,
    SPLIT,
    TABLE,
    land,
    land_batches,
    options,
    run_round,
    start_session,
)

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
def test_epochs_and_their_replay(lake: Lake, session: SparkSession, tmp_path: Path, lane: str) -> None:
    """Of rows that are hard to carry: what a task was sent is enough for them. Two tasks, in each of them each
    partition value twice and more."""
    from laketier.spark import read as laketier_read

    odd = odd_rows(lake)
    tasks = [[odd.batch(range(20)), odd.batch(range(20, 40))], [odd.batch(range(40, 45)), odd.batch(range(45, 50))]]
    more = {"pipeline": "Orders.v-1_X"} | ({"partition_by": odd.names[KEY]} if odd.partitioned else {})
    for number, batches in enumerate(tasks):
        land_batches(tmp_path / str(number), batches)
    for number in (0, 1, 1):
        run_round(session, lane, lake, number, tmp_path / str(number), **more)
    table, rows = lake.table(TABLE), pa.Table.from_batches([*tasks[0], *tasks[1]])
    expect(table.info.schema.names, rows.column_names, "the columns of a table that Spark made, in their own names")
    found = [field.column for field in table.info.descriptor.partition_by]
    expect(found, [odd.names[KEY]] if odd.partitioned else [], "the columns that Spark partitioned a table by")
    expect(table.ids, list(range(50)), "rows after an epoch was run twice on Spark")
    expect(by_id(table.read()), by_id(rows), "odd values that Spark wrote, as a reader without Spark has them")
    marks = {name: table.watermark(name) for name in ("Orders.v-1_X", "orders.v-1_x", "Orders", "p")}
    expect([name for name in marks if marks[name]], ["Orders.v-1_X"], "the pipelines that published on Spark")
    mark = marks["Orders.v-1_X"]
    assert mark is not None, "a pipeline has a watermark after its epochs on Spark"
    expect(
        (mark.token.epoch, mark.rows), (1, 10), "epoch and rows of the watermark after an epoch was run twice on Spark"
    )
    keys = _reading(lake)
    if lane == DATAFRAME:
        read = session.read.format("laketier").options(**keys).load().toArrow()
        expect(by_id(read), by_id(rows), "odd values, as a reader on Spark has them")
        return
    expect(by_id(laketier_read(session, keys).toArrow()), by_id(rows), "odd values, as Spark's own reader has them")
    for predicate in odd.predicates():
        expected = sorted(rows_for(predicate, rows)["id"].to_pylist())
        bare = sorted(table.read(filters=(predicate,))["id"].to_pylist())
        expect(bare, expected, f"ids that a reader without Spark has by the filter {predicate}, of rows from Spark")
    filtered = laketier_read(session, keys, columns=("id",), filters=(odd.any_of(),)).toArrow()
    expected = sorted(rows_for(odd.any_of(), rows)["id"].to_pylist())
    expect(sorted(filtered["id"].to_pylist()), expected, f"ids that Spark reads by the filter {odd.any_of()}")


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
    """One file an epoch. Then Spark loses its note of the last commit, and runs that epoch again. The epochs and tasks
    of another query have the same numbers."""
    landing, checkpoint = tmp_path / "landing", tmp_path / "checkpoint"

    def stream(landing: Path = landing, checkpoint: Path = checkpoint, pipeline: str = "p") -> None:
        files = session.readStream.schema("id long, name string, value double").option("maxFilesPerTrigger", 1)
        keys = options(lake, None, pipeline) | {"checkpointLocation": str(checkpoint)}
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
    land(tmp_path / "others", [ids_of(3)])
    stream(tmp_path / "others", tmp_path / "other checkpoint", "q")
    expect(
        lake.table(TABLE).ids,
        [i for number in range(4) for i in ids_of(number)],
        "rows of two streams into one table, each of which has an epoch 0",
    )


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
