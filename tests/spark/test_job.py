"""Jobs from YAML, and what the command line shows of them."""

from __future__ import annotations

import io
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from rich.console import Console

import laketier.spark
from laketier.config.job import load_job, parse_job
from laketier.spark.failures import told_of_spark
from laketier.spark.job import run_job
from laketier.spark.progress import on_console
from laketier.spark.session import require_java
from laketier.spi import ConfigError, CorruptTable, StorageError, TokenMismatch, WatermarkLost
from spark_lake import COLUMNS, Landing, Target


def job_file(folder: Path, document: dict[str, Any]) -> Path:
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


def sink(target: Target, **more: Any) -> dict[str, Any]:
    return {"lake": {key.removeprefix("lake."): value for key, value in target.options(**more).items()}}


def test_a_stream_of_files(spark: SparkSession, landing: Landing, target: Target) -> None:
    landing.land(3)
    document: dict[str, Any] = {
        "source": {"files": {"path": str(landing.folder), "max-files-per-trigger": 1}},
        "sink": sink(target, pipeline="events-v1"),
        "sql": "SELECT id, upper(name) AS name FROM source WHERE id % 2 = 0",
        "stream": {"checkpoint": str(target.checkpoint)},
    }
    shown = io.StringIO()
    with on_console(Console(file=shown, width=200)) as on_epoch:
        result = run_job(load_job(job_file(target.folder, document)), spark=spark, on_epoch=on_epoch)
    assert result.totals is not None
    assert (result.totals.epochs, result.totals.rows, result.totals.files) == (3, 15, 3)
    assert target.ids(spark) == landing.ids[::2]
    lines = shown.getvalue().splitlines()
    assert [line.split("]")[0] for line in lines] == [
        f"[table=db.events pipeline=events-v1 epoch={epoch}" for epoch in range(3)
    ]
    assert "5 rows, 1 files" in lines[0]

    document["stream"]["checkpoint"] = str(target.folder / "another")
    with pytest.raises(TokenMismatch, match="pipeline adopt"):
        run_job(parse_job(document, origin="the test"), spark=spark)

    document["stream"]["checkpoint"] = str(target.checkpoint)
    document["sink"]["lake"]["table"] = "db.other"
    with pytest.raises(WatermarkLost, match=f"`laketier pipeline adopt db.other -f {target.format} .* -p events-v1"):
        run_job(parse_job(document, origin="the test"), spark=spark)


def test_made_up_rows_end_when_told(spark: SparkSession, target: Target) -> None:
    document = {
        "source": {"rate": {"rows-per-batch": 4, "batches": 3}},
        "sink": sink(target, pipeline="rate"),
        "stream": {"checkpoint": str(target.checkpoint), "trigger": {"processing-time": "50 milliseconds"}},
    }
    result = run_job(parse_job(document, origin="the test"), spark=spark)
    assert result.totals is not None
    assert result.totals.epochs >= 3
    values = [row.value for row in laketier.spark.read(spark, target.options()).collect()]
    assert len(values) == len(set(values)) >= 12


def test_batches_take_the_cheapest_lane(spark: SparkSession, landing: Landing, target: Target, tmp_path: Path) -> None:
    landing.land(2)
    files = {"files": {"path": str(landing.folder)}}
    first = run_job(parse_job({"source": files, "sink": sink(target)}, origin="the test"), spark=spark)
    assert (first.lane, first.round and first.round.rows) == ("split", 20)
    copy = Target(tmp_path / "copy", "localfile")
    table = {"table": sink(target)}
    second = run_job(parse_job({"source": table, "sink": sink(copy)}, origin="the test"), spark=spark)
    assert second.lane == "split"
    queried = {"source": table, "sink": sink(copy), "mode": "overwrite", "sql": "SELECT * FROM source WHERE id < 5"}
    third = run_job(parse_job(queried, origin="the test"), spark=spark)
    assert third.lane == "dataframe"
    assert copy.ids(spark) == [0, 1, 2, 3, 4]


def test_json_and_csv(spark: SparkSession, tmp_path: Path, target: Target) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.json").write_text('{"id": 1, "name": "x"}\n{"id": 2}\n')
    json_files = {"path": str(tmp_path / "in"), "format": "json", "columns": COLUMNS}
    run_job(parse_job({"source": {"files": json_files}, "sink": sink(target)}, origin="the test"), spark=spark)
    (tmp_path / "in/a.json").unlink()
    (tmp_path / "in/b.csv").write_text("id,name\n3,z\n")
    csv = {
        "path": str(tmp_path / "in"),
        "format": "csv",
        "columns": "id long, name string",
        "options": {"header": "true"},
    }
    run_job(parse_job({"source": {"files": csv}, "sink": sink(target)}, origin="the test"), spark=spark)
    assert target.ids(spark) == [1, 2, 3]


GOOD: dict[str, Any] = {"source": {"files": {"path": "/landing"}}, "sink": {"lake.format": "x"}}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"sorce": {}}, "'source'"),
        ({"source": {"files": {"path": "/landing", "fromat": "csv"}}}, "'source.files.format'"),
        ({"source": {"files": {"path": "/landing", "format": "orc"}}}, "source.files.format = 'orc'"),
        ({"source": {"files": {}}}, "source.files.path must be set"),
        ({"source": {}}, "exactly one of files, table, rate"),
        ({"source": {"rate": {}}}, "stream.checkpoint"),
        ({"lake": {"format": "x"}}, "below `sink:`"),
        ({"stream": {"checkpoint": "/c", "trigger": {"once": True, "processing-time": "1 second"}}}, "exactly one of"),
        ({"stream": {"checkpoint": "/c"}, "mode": "overwrite"}, "mode overwrite is for batches"),
        ({"stream": {}}, "stream.checkpoint must be set"),
    ],
)
def test_bad_jobs(change: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        parse_job(GOOD | change, origin="job.yaml")
    assert says in str(refusal.value)
    assert "job.yaml" in str(refusal.value)


def test_a_job_that_spark_ends_says_why(spark: SparkSession, landing: Landing, target: Target) -> None:
    """It was called an error that laketier did not expect, with pages of Java."""
    landing.land(1)
    document: dict[str, Any] = {
        "source": {"files": {"path": str(landing.folder)}},
        "sink": sink(target, pipeline="events-v1"),
        "sql": "SELECT id, cast(raise_error('no such region') AS string) AS name FROM source",
        "stream": {"checkpoint": str(target.checkpoint)},
    }
    with pytest.raises(
        StorageError, match=r"^db\.events: Spark could not run the job, because .*no such region"
    ) as ended:
        run_job(parse_job(document, origin="the test"), spark=spark)
    assert "\n" not in str(ended.value)


def test_a_second_run_with_one_checkpoint_is_told_what_to_do() -> None:
    text = (
        "[STREAM_FAILED] Query [id = 48f4f56f, runId = b61d991f] terminated with exception: "
        "[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update to the log. \nPlease make sure only one streaming job runs "
        "on a specific checkpoint location at a time. SQLSTATE: 40000 SQLSTATE: XXKST\n=== Streaming Query ===\nId"
    )
    told = told_of_spark(PySparkException(text), "db.events")
    assert isinstance(told, ConfigError)
    assert str(told).startswith("db.events: another run has the checkpoint of this stream, because ")
    assert "Streaming Query" not in str(told)
    assert "at a time. No row is lost or doubled." in str(told)


def _is_gone(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def _is_empty(path: Path) -> None:
    path.with_name(f".{path.name}.crc").unlink()
    path.write_bytes(b"")


def _is_cut(path: Path) -> None:
    path.with_name(f".{path.name}.crc").unlink()
    path.write_bytes(path.read_bytes()[:30])


@pytest.mark.parametrize(
    ("harm", "name", "says"),
    [
        (_is_gone, "sources", "does not list the files of batch 0"),
        (_is_gone, "offsets", "commits/1 is there, and offsets/1 is not"),
        (_is_empty, "offsets/1", "offsets/1 begins with ''"),
        (_is_cut, "sources/0/1", "sources/0/1 holds a line that is not a file's"),
        (_is_empty, "commits/1", "commits/1 is empty"),
    ],
)
def test_a_damaged_checkpoint_is_told_as_such(
    spark: SparkSession, landing: Landing, target: Target, harm: Callable[[Path], None], name: str, says: str
) -> None:
    """A disk lost power, or a copy was cut off. Spark's own word of it is `assertion failed`, or its parser's."""
    landing.land(2)
    document: dict[str, Any] = {
        "source": {"files": {"path": str(landing.folder), "max-files-per-trigger": 1}},
        "sink": sink(target, pipeline="p"),
        "stream": {"checkpoint": str(target.checkpoint)},
    }
    run_job(parse_job(document, origin="the test"), spark=spark)
    harm(target.checkpoint / name)
    landing.land(1)
    with pytest.raises(CorruptTable, match=f"checkpoint of the stream is damaged, because .*{re.escape(says)}"):
        run_job(parse_job(document, origin="the test"), spark=spark)
    assert target.ids(spark) == landing.ids[:20]


def test_a_path_that_is_not_there(spark: SparkSession, target: Target, tmp_path: Path) -> None:
    document = {
        "source": {"files": {"path": str(tmp_path / "nothing"), "format": "json"}},
        "sink": sink(target, pipeline="p"),
        "stream": {"checkpoint": str(target.checkpoint)},
    }
    with pytest.raises(ConfigError, match="nothing"):
        run_job(parse_job(document, origin="the test"), spark=spark)


def test_java_is_looked_for_before_spark_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ConfigError, match="none was found"):
        require_java()
    old = tmp_path / "bin" / "java"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    old.chmod(0o755)
    with pytest.raises(ConfigError, match="this is 11"):
        require_java()
    assert sys.executable
