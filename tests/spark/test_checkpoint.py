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

NAMED = '{"conf":{"spark.sql.streaming.queryEvolution.enableSourceEvolution":"true"}}'


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
    assert len(set(map(str, contents))) == 12
    assert not any(isinstance(content, Unreadable) for content in contents)
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


def make(
    folder: Path, epochs: dict[int, list[str]], sources: dict[str, str] | None = None, version: str = "v1"
) -> Path:
    (folder / "offsets").mkdir(parents=True)
    (folder / "metadata").write_text('{"id":"run-1"}')
    for epoch, offsets in epochs.items():
        (folder / "offsets" / str(epoch)).write_text("\n".join([version, '{"batchTimestampMs":1}', *offsets]))
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


def test_a_source_that_a_query_reads_in_two_places_is_one(tmp_path: Path) -> None:
    """Spark lists it twice, for a self-join or a union of two of its parts, and keeps one log."""
    offsets = {epoch: [f'{{"logOffset":{epoch}}}'] * 2 for epoch in range(2)}
    sources = {f"0/{i}": f"v1\n{entry(f'f{i}', i)}" for i in range(2)}
    one = opened(make(tmp_path / "a", offsets, sources))
    other = opened(make(tmp_path / "b", offsets, sources | {"0/1": f"v1\n{entry('x', 1)}"}))
    assert one.content(0) == other.content(0)
    assert one.content(1) != other.content(1)
    mixed = {0: ['{"logOffset":0}', '{"logOffset":0}', '{"logOffset":1}']}
    unclear = opened(make(tmp_path / "c", mixed, sources | {"1/1": f"v1\n{entry('y', 1)}"})).content(0)
    assert isinstance(unclear, Unreadable)
    assert "in 3 places" in unclear.why


@pytest.mark.parametrize("lost", [0, 1])
def test_a_lost_log_of_one_of_two_sources_is_no_source_that_is_read_in_two_places(tmp_path: Path, lost: int) -> None:
    """Without its log Spark would read all its files again."""
    offsets = {0: ['{"logOffset":0}', '{"logOffset":1}']}
    sources = {f"{source}/{i}": f"v1\n{entry(f'f{i}', i)}" for source, i in ((0, 0), (1, 0), (1, 1))}
    torn = {name: text for name, text in sources.items() if not name.startswith(str(lost))}
    with pytest.raises(CorruptTable, match=f"sources/{lost} does not list the files"):
        opened(make(tmp_path, offsets, torn)).content(0)


def test_a_source_without_news_reads_nothing(tmp_path: Path) -> None:
    still = make(tmp_path / "a", {3: ['{"logOffset":1}', "-"], 4: ['{"logOffset":1}', "-"]}, {"0/9.compact": "v1"})
    assert str(opened(still).content(4)).startswith("sha256:")


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


def test_the_digest_of_version_1_is_the_one_that_tables_hold(tmp_path: Path) -> None:
    """A stream that went on under an earlier laketier must find its last epoch again."""
    offsets = ['{"logOffset":0}', "-", '{"topic":{"0":5}}']
    one = make(tmp_path / "a", {0: offsets}, {"0/0": f"v1\n{entry('file:///in/f%20%C3%A9', 0)}"})
    assert opened(one).content(0) == "sha256:219e07162668e70419ad9def8fdb939caf13aa185c3fd1b1b2c43720bf919e07"


def test_version_2_is_read_as_version_1(tmp_path: Path) -> None:
    sources = {"0/0": f"v1\n{entry('f', 0)}", "1/0": f"v1\n{entry('g', 0)}"}
    two = {0: ['{"logOffset":0}', '{"logOffset":0}']}
    keyed = {0: ['1:{"logOffset":0}', '0:{"logOffset":0}']}
    one = opened(make(tmp_path / "a", two, sources)).content(0)
    assert opened(make(tmp_path / "b", keyed, sources, version="v2")).content(0) == one
    other = opened(make(tmp_path / "c", keyed, sources | {"1/0": f"v1\n{entry('h', 0)}"}, version="v2"))
    assert other.content(0) != one


def test_named_sources_lie_below_their_names(tmp_path: Path) -> None:
    epochs = {0: ['orders:{"logOffset":0}'], 1: ['late:{"logOffset":0}', 'orders:{"logOffset":0}']}
    sources = {"orders/0": f"v1\n{entry('f', 0)}", "late/0": f"v1\n{entry('g', 0)}"}
    whole = opened(make(tmp_path / "a", epochs, sources, version="v2"))
    other = opened(make(tmp_path / "b", epochs, sources | {"late/0": f"v1\n{entry('x', 0)}"}, version="v2"))
    assert whole.content(0) == other.content(0)
    assert whole.content(1) != other.content(1), "a source that came later is read from its first batch on"
    with pytest.raises(CorruptTable, match="sources/orders"):
        opened(make(tmp_path / "c", epochs, version="v2")).content(0)


def test_a_named_source_of_spark_4_2_is_read_as_one_of_4_3(tmp_path: Path) -> None:
    """Spark 4.2.1 writes version 1 for it, though its log lies below its name."""
    logs = {"orders/0": f"v1\n{entry('a.parquet', 0)}"}
    named = make(tmp_path / "4.3", {0: ['orders:{"logOffset":0}']}, logs, version="v2")
    hidden = make(tmp_path / "4.2", {0: ['{"logOffset":0}']}, logs)
    offsets = hidden / "offsets" / "0"
    offsets.write_text(offsets.read_text().replace('{"batchTimestampMs":1}', NAMED))
    assert opened(hidden).content(0) == opened(named).content(0)
    (hidden / "sources/orders/0").write_text(f"v1\n{entry('b.parquet', 0)}")
    assert opened(hidden).content(0) != opened(named).content(0)


def test_several_named_sources_of_spark_4_2_have_no_content(tmp_path: Path) -> None:
    logs = {f"{name}/0": f"v1\n{entry(name, 0)}" for name in ("1", "0")}
    checkpoint = make(tmp_path / "checkpoint", {0: ['{"logOffset":0}', '{"logOffset":0}']}, logs)
    offsets = checkpoint / "offsets" / "0"
    offsets.write_text(offsets.read_text().replace('{"batchTimestampMs":1}', NAMED))
    content = opened(checkpoint).content(0)
    assert isinstance(content, Unreadable)
    assert "lie below names" in content.why


@pytest.mark.parametrize(
    ("version", "lines"),
    [
        ("v3", ['{"logOffset":0}']),
        ("", ['{"logOffset":0}']),
        ("v1", ['orders:{"logOffset":0}']),
        ("v1", ["", '{"logOffset":0}']),
        ("v1", ['{"logOffset":0,"more":1}']),
        ("v1", ['{"logOffset":"0"}']),
        ("v1", ["a word"]),
        ("v1", ["7"]),
        ("v1", ["[" * 100_000]),
        ("v2", ['{"logOffset":0}']),
        ("v2", ['../x:{"logOffset":0}']),
        ("v2", ['a b:{"logOffset":0}']),
        ("v2", ['a:{"logOffset":0}', 'a:{"logOffset":0}']),
        ("v2", ["a"]),
        ("v2", ["a:"]),
    ],
)
def test_a_layout_that_is_not_understood_is_not_taken_for_content(
    tmp_path: Path, version: str, lines: list[str]
) -> None:
    sources = {f"{name}/0": f"v1\n{entry('f', 0)}" for name in ("0", "a", "orders")}
    del sources["0/0" if lines == ["7"] else "orders/0"]
    found = opened(make(tmp_path / "a", {0: lines}, sources, version=version)).content(0)
    assert isinstance(found, Unreadable)
    assert "layout" in found.why


@pytest.mark.parametrize(
    "log", ["v2\n{}", "v1\nnot json", 'v1\n{"path":"f"}', 'v1\n{"path":"f","batchId":true}', 'v1\n["batchId"]', ""]
)
def test_a_source_log_that_is_not_understood_is_not_taken_for_content(tmp_path: Path, log: str) -> None:
    found = opened(make(tmp_path / "a", {0: ['{"logOffset":0}']}, {"0/0": log})).content(0)
    assert isinstance(found, Unreadable)
    assert "sources/0/0" in found.why


def test_a_source_with_a_log_that_only_it_can_read_has_no_content(tmp_path: Path) -> None:
    """Its offset counts what lies there, as `{"seqNum":7}` does."""
    epochs = {0: ['{"seqNum":7}']}
    assert isinstance(opened(make(tmp_path / "a", epochs, {"0/rocksdb/x": ""})).content(0), Unreadable)
    assert isinstance(opened(make(tmp_path / "b", epochs, {"0/0": "v1", "0/1": "v1"})).content(0), Unreadable)
    began = make(tmp_path / "c", {0: ['{"topic":{"0":5}}', "3"]}, {"0/0": 'v1\n{"topic":{"0":0}}', "1/0": "v1\n1795"})
    assert isinstance(opened(began).content(0), str), "Kafka and rate leave where they began"


def test_a_line_separator_of_unicode_ends_no_line(tmp_path: Path) -> None:
    def content(name: str) -> object:
        text = json.dumps({"path": f"{name}\u2028x", "timestamp": 1, "batchId": 0}, ensure_ascii=False)
        return opened(make(tmp_path / name, {0: ['{"logOffset":0}']}, {"0/0": f"v1\n{text}"})).content(0)

    assert content("a") != content("b")


def test_odd_names_in_a_checkpoint_are_passed_over(tmp_path: Path) -> None:
    offsets = {0: ['{"logOffset":0}'], 1: ['{"logOffset":1}']}
    logs = {"0/0": f"v1\n{entry('f', 0)}", "0/x.compact": "", "0/9.compact": f"v1\n{entry('f', 0)}\n{entry('g', 1)}"}
    odd = make(tmp_path / "a", offsets, logs)
    for name in ("²", "1.tmp", "-1", "٣", "007"):
        (odd / "offsets" / name).write_text("")
    assert opened(odd).latest_epoch() == 1
    assert isinstance(opened(odd).content(1), str)


@pytest.mark.parametrize("text", ['{"id":null}', '{"id":""}', '{"id":7}', "[]", "7", "\xff"])
def test_metadata_without_an_id_is_no_run(tmp_path: Path, text: str) -> None:
    (make(tmp_path / "a", {}) / "metadata").write_bytes(text.encode("latin-1"))
    with pytest.raises(CorruptTable):
        Checkpoint.open(str(tmp_path / "a"))
