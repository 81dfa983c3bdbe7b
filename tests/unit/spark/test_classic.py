"""What needs a SparkContext says so on Spark Connect, without a server: `tests/spark/test_connect.py` has one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import laketier.spark
from laketier.connectors import ParquetFolder
from laketier.spark.log_engine import SparkLogEngine
from laketier.spark.session import connect_server
from laketier.spi import FeatureNotSupported

Remote = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})
TABLE = {"lake.format": "localfile", "lake.table": "db.t"}


@pytest.mark.parametrize(
    ("work", "says"),
    [
        (lambda spark, to: laketier.spark.tier(spark, ParquetFolder("/none"), to), "does not support `tier`, because"),
        (lambda spark, to: laketier.spark.create_index(spark, to, "text", "inverted"), "`laketier index create`"),
        (lambda spark, to: laketier.spark.maintain_indexes(spark, to, tasks=2), "a build of an index"),
        (lambda spark, _: SparkLogEngine(spark), "a service"),
    ],
)
def test_what_needs_a_context_is_refused_by_name(work: Any, says: str, tmp_path: Path) -> None:
    with pytest.raises(FeatureNotSupported, match=r"^Spark Connect does not support") as refused:
        work(Remote(), TABLE | {"lake.warehouse": str(tmp_path)})
    assert says in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def test_a_server_is_named_and_its_client_is_not_installed(tmp_path: Path) -> None:
    """In another process: what pyspark has imported it does not look for again. And it leaves one without a file."""
    script = tmp_path / "script.py"
    script.write_text("import sys; sys.modules['grpc'] = None; import laketier.spark; laketier.spark.get_or_create()")
    remote = os.environ | {"SPARK_REMOTE": "sc://127.0.0.1:1"}
    ended = subprocess.run([sys.executable, str(script)], env=remote, capture_output=True, text=True, check=False)
    told = ended.stderr.splitlines()[-1]
    assert told.startswith(
        "laketier.spi.errors.ConfigError: SPARK_REMOTE=sc://127.0.0.1:1: the client of Spark Connect"
    )
    assert told.endswith("Install `pyspark[connect]`, or unset SPARK_REMOTE.")


@pytest.mark.parametrize("remote", ["sc://h:1", "sc://h:1/;token=x", "sc://h:1;token=x", "sc://x:x@h:1/", "sc://h:1?x"])
def test_a_server_is_named_without_what_may_be_secret(remote: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REMOTE", remote)
    assert connect_server() == "h:1"


def test_a_job_says_which_server_it_asks_as_that_may_take_minutes(tmp_path: Path) -> None:
    """The client tries again for two minutes, and says nothing."""
    script, job = tmp_path / "script.py", tmp_path / "job.yaml"
    script.write_text("import sys; sys.modules['grpc'] = None; from laketier.cli.app import main; main()")
    sink = {**TABLE, "lake.warehouse": str(tmp_path)}
    job.write_text(json.dumps({"source": {"files": {"path": str(tmp_path), "format": "parquet"}}, "sink": sink}))
    remote = os.environ | {"SPARK_REMOTE": "sc://127.0.0.1:1/;token=cAnArYs3cr3t", "JAVA_HOME": str(tmp_path)}
    command = [sys.executable, str(script), "run", str(job)]
    ended = subprocess.run(command, env=remote, capture_output=True, text=True, check=False)
    first, *_ = ended.stderr.splitlines()
    assert first.startswith("asking Spark Connect at 127.0.0.1:1 for a session"), ended.stderr
    assert "cAnArYs3cr3t" not in first
