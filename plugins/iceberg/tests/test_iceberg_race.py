"""Rival drivers in processes of their own on one SQLite catalog."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

CHILD = Path(__file__).with_name("iceberg_child.py")
EPOCHS = 5


def _start(warehouse: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", str(CHILD), str(warehouse), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_two_pipelines_with_two_rival_drivers_each_lose_and_double_nothing(events: Any, warehouse: Path) -> None:
    children = [_start(warehouse, pipeline, str(EPOCHS)) for pipeline in ("a", "a", "b", "b")]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    output = [child.communicate() for child in children]
    assert [child.returncode for child in children] == [0, 0, 0, 0], output
    found = Counter(events.table().scan().to_arrow()["s"].to_pylist())
    wanted = {f"{p}-{e}-{i}" for p in ("a", "b") for e in range(EPOCHS) if e % 5 != 4 for i in range(10)}
    assert set(found) == wanted
    assert set(found.values()) == {1}
    assert len(events.table().metadata.snapshots) == 2 * EPOCHS
    listed = {Path(path).name for path in events.table().inspect.all_manifests()["path"].to_pylist()}
    manifests = {path.name for path in Path(events.info.location, "metadata").glob("*-m*.avro")}
    assert manifests == listed


def test_processes_that_create_one_table_at_once_get_the_same_one(warehouse: Path) -> None:
    program = (
        "import sys, pyarrow as pa\n"
        "from laketier.spi import *\n"
        "from laketier_iceberg.plugin import IcebergPlugin\n"
        "storage = IcebergPlugin().create_storage(LakeStorageConfig(sys.argv[1]))\n"
        "wanted = TableDescriptor(pa.schema([('id', pa.int64())]))\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "print(storage.catalog().create_table(TablePath('db', 't'), wanted).table_uuid)\n"
    )
    children = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", program, str(warehouse)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for child in children:
        assert child.stdout is not None
        child.stdout.readline()
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    answers = [child.communicate() for child in children]
    assert [child.returncode for child in children] == [0, 0], answers
    assert len({out for out, _ in answers}) == 1
