"""Tables of a real Apache Fluss, tiered into every format, where FLUSS_LIBS names a folder with its jars."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from fluss_feed import Feed
from fluss_server import FlussServer
from fluss_tables import LAYOUT, ORDERS, USERS, ids_in, lake_keys, orders, source_at, tier
from laketier.registry import OpenSource
from laketier.rounds.log_round import LogRound
from laketier.rounds.log_task import LogAnswer, run_log_task
from laketier.spi import (
    BucketSpec,
    StorageError,
)
from laketier.union_read.planning import union_batches
from laketier_verification.lakes import OURS, lake_at, read_all

pytestmark = pytest.mark.skipif("FLUSS_LIBS" not in os.environ, reason="FLUSS_LIBS names no folder with Fluss's jars")


@pytest.mark.parametrize("format", OURS)
def test_a_log_table_with_buckets(
    format: str, fluss: FlussServer, feed: Feed, source: OpenSource, tmp_path: Path
) -> None:
    name = feed.create(f"plain.{format}", ORDERS, bucket_count=3, bucket_keys=["id"])
    feed.append(name, orders(*range(1_000)))
    log = source.open(name, LAYOUT.get(format))
    assert set(log.bounds()) == {"0", "1", "2"}
    first = tier(log, tmp_path, format)
    assert first.rows == 1_000
    feed.append(name, orders(*range(1_000, 1_500)))
    # Lake and log as one, before the second round has tiered what is new.
    _, batches = union_batches(lake_keys(tmp_path, format), log)
    assert sorted(i for batch in batches for i in batch.column("id").to_pylist()) == list(range(1_500))
    # A second process would know no more than the lake table: that is where the log goes on.
    second = tier(source.open(name, LAYOUT.get(format)), tmp_path, format)
    assert (second.rows, second.left) == (500, 0)
    assert tier(log, tmp_path, format).outcome is None
    rows = read_all(lake_at(tmp_path, format, "lake.t")).sort_by("id")
    assert rows["id"].to_pylist() == list(range(1_500))
    assert rows["at"].cast(pa.int64()).to_pylist() == [1_700_000_000_000_000 + i for i in range(1_500)]
    if format in ("delta", "localfile"):
        info = lake_at(tmp_path, format, "lake.t").load_table()
        assert info.descriptor.buckets == BucketSpec(3, ("id",), "fluss")


@pytest.mark.parametrize("format", OURS)
def test_a_partitioned_log_table(format: str, feed: Feed, source: OpenSource, tmp_path: Path) -> None:
    name = feed.create(
        f"parts.{format}", ORDERS, [{"region": "eu"}, {"region": "us"}], bucket_count=3, partition_keys=["region"]
    )
    feed.append(name, orders(*range(300)))
    feed.append(name, orders(*range(300, 400), region="us"))
    log = source.open(name, LAYOUT.get(format))
    assert len(log.bounds()) == 6
    assert tier(log, tmp_path, format).rows == 400
    feed.create_partition(name, region="asia")
    feed.append(name, orders(*range(400, 450), region="asia"))
    feed.append(name, orders(*range(450, 500)))
    assert len(log.bounds()) == 9
    assert tier(log, tmp_path, format).rows == 100
    rows = read_all(lake_at(tmp_path, format, "lake.t"))
    assert sorted(rows["id"].to_pylist()) == list(range(500))
    assert Counter(rows["region"].to_pylist()) == {"eu": 350, "us": 100, "asia": 50}


def test_a_tablet_server_restarted_in_mid_round(fluss: FlussServer, feed: Feed, tmp_path: Path) -> None:
    source = source_at(fluss, **{"timeout-seconds": 90})
    name = feed.create("plain.restarted", ORDERS, bucket_count=3, bucket_keys=["id"])
    for start in range(0, 30_000, 3_000):
        feed.append(name, orders(*range(start, start + 3_000)))
    log = source.open(name)
    one = LogRound(log, lake_keys(tmp_path, "delta"))
    tasks = one.plan()
    reading = log.read(tasks[0].splits[0])
    next(reading)
    fluss.stop_tablet()
    impatient = source_at(fluss, **{"timeout-seconds": 1})
    with pytest.raises(StorageError):
        impatient.open(name).bounds()
    impatient.source.close()
    fluss.start_tablet()
    # Tasks that begin while it comes up wait for it.
    answers: list[LogAnswer] = [run_log_task(task) for task in tasks]
    assert [str(answer.error) for answer in answers if answer.error] == []
    assert one.finish(answers).rows == 30_000
    assert sum(batch.num_rows for batch in reading) >= 0
    feed.append(name, orders(*range(30_000, 30_100)))
    assert tier(log, tmp_path, "delta").rows == 100
    assert ids_in(tmp_path, "delta") == list(range(30_100))


@pytest.mark.parametrize("format", OURS)
def test_a_table_with_a_primary_key_is_followed(format: str, feed: Feed, source: OpenSource, tmp_path: Path) -> None:
    name = feed.create(f"keyed.{format}", USERS, bucket_count=2, primary_keys=["id"])
    feed.upsert(name, [{"id": i, "name": "a"} for i in range(100)])
    log = source.open(name, LAYOUT.get(format))
    tier(log, tmp_path, format)
    feed.upsert(name, [{"id": i, "name": "b"} for i in range(50, 120)])
    feed.delete(name, [{"id": i} for i in range(0, 120, 3)])
    wanted = {i: "a" if i < 50 else "b" for i in range(120) if i % 3}
    _, batches = union_batches(lake_keys(tmp_path, format), log)
    both = pa.Table.from_batches(batches)
    assert dict(zip(both["id"].to_pylist(), both["name"].to_pylist(), strict=True)) == wanted
    tier(log, tmp_path, format)
    lake = read_all(lake_at(tmp_path, format, "lake.t"))
    assert lake.schema.names == ["id", "name"]
    assert lake.num_rows == len(wanted)
    assert dict(zip(lake["id"].to_pylist(), lake["name"].to_pylist(), strict=True)) == wanted


@pytest.mark.spark
def test_rounds_on_spark(spark: SparkSession, feed: Feed, source: OpenSource, tmp_path: Path) -> None:
    from laketier.spark.log_engine import SparkLogEngine

    plain = feed.create("plain.spark", ORDERS, bucket_count=3, bucket_keys=["id"])
    keyed = feed.create("keyed.spark", USERS, bucket_count=2, primary_keys=["id"])
    engine = SparkLogEngine(spark)
    for turn in range(5):
        feed.append(plain, orders(*range(turn * 1_000, (turn + 1) * 1_000)))
        feed.upsert(keyed, [{"id": i, "name": f"{turn}"} for i in range(turn, 100)])
        logs = {name: source.open(name, {"split-offsets": 100}) for name in (plain, keyed)}
        rounds = [LogRound(log, lake_keys(tmp_path / name, "delta"), name=name) for name, log in logs.items()]
        tasks = [one.plan() for one in rounds]
        # One job for both tables.
        answers = list(engine.run([task for planned in tasks for task in planned]))
        assert [str(answer.error) for answer in answers if answer.error] == []
        for name, one in zip(logs, rounds, strict=True):
            one.finish([answer for answer in answers if answer.table == name])
    # Spark uses its workers again; an abort would have ended one, and failed its task.
    # A lambda: the workers can't import this module.
    workers = spark.sparkContext.parallelize(range(8), 8).map(lambda _: "fluss" in sys.modules).collect()
    assert workers == [False] * 8
    assert ids_in(tmp_path / plain, "delta") == list(range(5_000))
    users = read_all(lake_at(tmp_path / keyed, "delta", "lake.t"))
    state = dict(zip(users["id"].to_pylist(), users["name"].to_pylist(), strict=True))
    assert state == {i: f"{min(i, 4)}" for i in range(100)}


SERVICE = """
name: shop
state: sqlite:///{folder}/state.db
sources:
  shop:
    type: fluss
    options: {{ bootstrap-servers: "{bootstrap}", databases: served }}
defaults:
  freshness: 1 s
  sink: {{ lake: {{ warehouse: {folder}/lake }} }}
tables:
  - source: shop
    include: ["*.lance"]
    sink: {{ lake: {{ format: lance }} }}
    read: {{ with-buckets: false }}
  - source: shop
    include: ["*.iceberg"]
    sink: {{ lake: {{ format: iceberg }} }}
    read: {{ with-buckets: false }}
  - source: shop
    include: ["*.delta"]
    sink: {{ lake: {{ format: delta }} }}
  - source: shop
    sink: {{ lake: {{ format: localfile }} }}
"""


def test_served_into_four_formats_at_once(fluss: FlussServer, feed: Feed, tmp_path: Path) -> None:
    names = [feed.create(f"served.{each}", ORDERS, bucket_count=3, bucket_keys=["id"]) for each in OURS]
    file = tmp_path / "service.yaml"
    file.write_text(SERVICE.format(folder=tmp_path, bootstrap=fluss.bootstrap))
    for turn in range(2):
        for name in names:
            feed.append(name, orders(*range(turn * 500, (turn + 1) * 500)))
        command = [
            str(Path(sys.executable).parent / "laketier"),
            "serve",
            str(file),
            "--engine",
            "local",
            "--until-idle",
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
        # The service's own process never loads the client, so its end is its own.
        assert done.returncode == 0, done.stdout + done.stderr
    for each in OURS:
        rows = read_all(lake_at(tmp_path / "lake", each, f"shop.served_{each}"))
        assert sorted(rows["id"].to_pylist()) == list(range(1_000)), each
