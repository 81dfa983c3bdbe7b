"""The checkpoint reader: over checkpoints that Spark wrote, and over what its files may look like."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from laketier.spark.checkpoint import Checkpoint, Unreadable
from laketier.spi import CorruptTable
from spark_lake import COLUMNS, Landing


def opened(location: str | Path) -> Checkpoint:
    found = Checkpoint.open(str(location))
    assert isinstance(found, Checkpoint)
    return found


@pytest.fixture(scope="module")
def real(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of a file stream after 12 epochs, so that `sources/0/9.compact` is there."""
    folder = tmp_path_factory.mktemp("real")
    landing = Landing(folder / "landing", rows=1)
    landing.land(12)
    df = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(str(landing.folder))
    query = df.writeStream.format("noop").option("checkpointLocation", str(folder / "checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination()
    return folder / "checkpoint"


def test_real_checkpoint(real: Path) -> None:
    checkpoint = opened(real)
    assert checkpoint.run == json.loads((real / "metadata").read_text())["id"]
    assert checkpoint.latest_epoch() == 11
    contents = [checkpoint.content(epoch) for epoch in range(12)]
    assert len(set(contents)) == 12
    assert opened(f"file://{real}").content(9) == contents[9]
    assert (real / "sources/0/9.compact").exists()


def test_content_is_the_same_once_its_log_was_compacted(real: Path, tmp_path: Path) -> None:
    before = [opened(real).content(epoch) for epoch in range(12)]
    copy = tmp_path / "copy"
    shutil.copytree(real, copy)
    for epoch in range(9):
        (copy / "sources/0" / str(epoch)).unlink()
    assert [opened(copy).content(epoch) for epoch in range(12)] == before


def test_other_files_under_the_same_offset_are_another_content(real: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(real, copy)
    log = copy / "sources/0/10"
    log.write_text(log.read_text().replace(".parquet", ".other.parquet"))
    assert (copy / "offsets/10").read_text() == (real / "offsets/10").read_text()
    assert opened(copy).content(10) != opened(real).content(10)
    assert opened(copy).content(11) == opened(real).content(11)


def make(folder: Path, epochs: dict[int, list[str]], sources: dict[str, str] | None = None) -> Path:
    (folder / "offsets").mkdir(parents=True)
    (folder / "metadata").write_text('{"id":"run-1"}')
    for epoch, offsets in epochs.items():
        (folder / "offsets" / str(epoch)).write_text("\n".join(["v1", '{"batchTimestampMs":1}', *offsets]))
    for name, text in (sources or {}).items():
        path = folder / "sources" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def entry(path: str, batch: int) -> str:
    return json.dumps({"path": path, "timestamp": 1, "batchId": batch}, separators=(",", ":"))


def test_time_and_settings_of_the_batch_do_not_count(tmp_path: Path) -> None:
    one = make(tmp_path / "one", {0: ['{"topic":{"0":5}}']})
    two = make(tmp_path / "two", {0: ['{"topic":{"0":5}}']})
    (two / "offsets/0").write_text(
        'v1\n{"batchTimestampMs":2,"conf":{"spark.sql.shuffle.partitions":"7"}}\n{"topic":{"0":5}}'
    )
    assert opened(one).content(0) == opened(two).content(0)
    three = make(tmp_path / "three", {0: ['{"topic":{"0":6}}']})
    assert opened(three).content(0) != opened(one).content(0)


def test_an_epoch_covers_all_source_batches_since_the_one_before(tmp_path: Path) -> None:
    """A driver that died between the source's log and the offsets leaves a batch that the next epoch takes along."""
    sources = {f"0/{i}": f"v1\n{entry(f'f{i}', i)}" for i in range(4)}
    whole = make(tmp_path / "a", {0: ['{"logOffset":0}'], 1: ['{"logOffset":3}']}, sources)
    other = make(
        tmp_path / "b", {0: ['{"logOffset":0}'], 1: ['{"logOffset":3}']}, sources | {"0/2": f"v1\n{entry('x', 2)}"}
    )
    assert opened(whole).content(1) != opened(other).content(1)
    assert opened(whole).content(0) == opened(other).content(0)


def test_a_source_without_news_reads_nothing(tmp_path: Path) -> None:
    still = make(tmp_path / "a", {3: ['{"logOffset":1}', "-"], 4: ['{"logOffset":1}', "-"]}, {"0/9.compact": "v1"})
    assert opened(still).content(4).startswith("sha256:")


def test_a_batch_id_inside_a_path_is_not_taken_for_one(tmp_path: Path) -> None:
    tricky = entry('{"batchId":1}', 0)
    plain = make(tmp_path / "a", {0: ['{"logOffset":0}']}, {"0/0": f"v1\n{entry('f', 0)}"})
    odd = make(tmp_path / "b", {0: ['{"logOffset":0}']}, {"0/0": f"v1\n{entry('f', 0)}\n{tricky}"})
    assert opened(plain).content(0) != opened(odd).content(0)


def test_lost_parts_are_an_error_not_another_token(tmp_path: Path) -> None:
    offsets = {0: ['{"logOffset":0}'], 1: ['{"logOffset":1}']}
    no_log = make(tmp_path / "a", offsets, {"0/0": f"v1\n{entry('f', 0)}"})
    with pytest.raises(CorruptTable, match="batch 1"):
        opened(no_log).content(1)
    with pytest.raises(CorruptTable, match="offsets/2"):
        opened(no_log).content(2)
    (no_log / "metadata").write_text("{")
    with pytest.raises(CorruptTable, match="metadata"):
        Checkpoint.open(str(no_log))


def test_a_checkpoint_out_of_reach_says_why(tmp_path: Path) -> None:
    nowhere = Checkpoint.open(str(tmp_path / "nothing"))
    assert isinstance(nowhere, Unreadable)
    assert "metadata" in nowhere.why
    foreign = Checkpoint.open("dbfs:///checkpoints/a")
    assert isinstance(foreign, Unreadable)
    assert "dbfs" in foreign.why
