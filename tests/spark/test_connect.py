"""Spark Connect, with a real server: what `docs/howto/cluster.md` says of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from deltalake import DeltaTable

pytest.importorskip("grpc", reason="the client of Spark Connect needs grpc")
pytestmark = pytest.mark.spark

CHILD = Path(__file__).with_name("connect_child.py")
FILES, ROWS = 3, 5
LANDED = list(range(FILES * ROWS))
REMOTE = "local[2]"


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    folder = tmp_path / "landing"
    folder.mkdir()
    for n in range(FILES):
        pq.write_table(pa.table({"id": pa.array(range(n * ROWS, (n + 1) * ROWS))}), folder / f"{n}.parquet")
    return folder


def environment(**others: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}
    return kept | {"SPARK_REMOTE": REMOTE, "SPARK_LOCAL_IP": "127.0.0.1"} | others


def ids(folder: Path, table: str) -> list[int]:
    """By delta-rs."""
    return sorted(DeltaTable(str(folder / "lake" / "db" / table)).to_pyarrow_table()["id"].to_pylist())


def test_each_lane_writes_once(landing: Path, tmp_path: Path) -> None:
    child = subprocess.run(
        [sys.executable, str(CHILD), str(tmp_path)],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert child.returncode == 0, child.stderr[-4000:]
    answer = json.loads(child.stdout.splitlines()[-1])
    assert answer.pop("tier").startswith("Spark Connect does not support `tier`, because its sessions have no")
    assert answer == {
        "session": "pyspark.sql.connect.session",
        "again": True,
        "epochs": ["published", "published", "already there"],
        "read": 20,
        "stream": True,
        "each": True,
    }
    assert ids(tmp_path, "batch") == sorted([*range(10)] * 2)
    assert ids(tmp_path, "stream") == ids(tmp_path, "each") == LANDED


def run(job: Path, **others: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-c", "from laketier.cli.app import main; main()", "run", str(job)]
    return subprocess.run(program, env=environment(**others), capture_output=True, text=True, check=False, timeout=600)


def a_job(folder: Path, landing: Path) -> Path:
    job = folder / "job.yaml"
    sink = {"lake.format": "delta", "lake.warehouse": str(folder / "lake"), "lake.table": "db.job"}
    job.write_text(
        yaml.safe_dump(
            {
                "source": {"files": {"path": str(landing), "format": "parquet"}},
                "sink": sink | {"lake.pipeline": "p", "lake.epoch": 0},
            }
        )
    )
    return job


def test_a_master_beside_a_server_is_refused(landing: Path, tmp_path: Path) -> None:
    ended = run(a_job(tmp_path, landing), SPARK_MASTER="local[1]")
    assert ended.returncode != 0
    assert f"ConfigError SPARK_REMOTE={REMOTE}: Spark can't have a master and be at a server" in ended.stderr
    assert not (tmp_path / "lake").exists()


@pytest.mark.deep
def test_a_job_of_parquet_files_is_a_dataframe_there(landing: Path, tmp_path: Path) -> None:
    job = a_job(tmp_path, landing)
    assert [run(job).returncode for _ in range(2)] == [0, 0]
    assert ids(tmp_path, "job") == LANDED
