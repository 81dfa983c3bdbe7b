"""``laketier schema`` and ``laketier adopt``, as people and programs call them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from laketier.cli.app import app
from laketier.registry import configure, open_lake
from laketier.spi import AddColumn, IncompatibleData, IncompatibleTable, TableDescriptor, TableInfo, WidenColumn

runner = CliRunner()


def put(path: Path, **columns: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


def call(*words: object, code: int = 0) -> Any:
    done = runner.invoke(app, [*map(str, words), "--json"])
    assert done.exit_code == code, (done.output, done.exception)
    return json.loads(done.stdout)


def create(warehouse: Path, name: str, schema: pa.Schema) -> tuple[Any, TableInfo]:
    lake = open_lake(configure({"lake.format": "localfile", "lake.warehouse": str(warehouse), "lake.table": name}))
    return lake, lake.storage.catalog().create_table(lake.config.table, TableDescriptor(schema))


@pytest.fixture
def at(tmp_path: Path) -> list[str]:
    """A table whose columns changed twice: an int that was widened, and a column that was added."""
    lake, _ = create(tmp_path / "lake", "db.t", pa.schema([pa.field("id", pa.int32(), nullable=False)]))
    catalog = lake.storage.catalog()
    catalog.alter_table(lake.config.table, [AddColumn(pa.field("name", pa.string()))])
    catalog.alter_table(lake.config.table, [WidenColumn("id", pa.int64())])
    return ["db.t", "-f", "localfile", "-w", str(tmp_path / "lake")]


def test_show(at: list[str]) -> None:
    assert call("schema", "show", *at)["columns"] == {"id": "int64 not null", "name": "string"}
    assert call("schema", "show", *at, "-s", "lake.snapshot-id=0")["columns"] == {"id": "int32 not null"}
    assert "not null" in runner.invoke(app, ["schema", "show", *at]).output


def test_infer(tmp_path: Path) -> None:
    for number in range(30):
        put(tmp_path / f"{number:02}.parquet", id=pa.array([number], pa.int8()))
    put(tmp_path / "99.parquet", id=pa.array([1], pa.int64()), new=["x"])
    found = call("schema", "infer", tmp_path, "--sample", 3)
    assert (found["columns"], found["read"], found["files"]) == ({"id": "int64", "new": "string"}, 3, 31)
    assert (
        "sampled 3 of 31 files (10 %)" in runner.invoke(app, ["schema", "infer", str(tmp_path), "--sample", "3"]).output
    )
    assert call("schema", "infer", tmp_path, "--all")["schemas"] == 2
    put(tmp_path / "odd.parquet", id=["x"])
    done = runner.invoke(app, ["schema", "infer", str(tmp_path)])
    assert isinstance(done.exception, IncompatibleData)
    assert call("schema", "infer", tmp_path, "-t", "id=string")["columns"]["id"] == "string"


def test_diff(at: list[str], tmp_path: Path) -> None:
    put(tmp_path / "files/a.parquet", id=[1], other=[1.5])
    found = call("schema", "diff", *at, "--with-files", tmp_path / "files", code=1)
    assert [(each["column"], each["here"], each["there"]) for each in found] == [
        ("id", "int64 not null", "int64"),
        ("name", "string", None),
        ("other", None, "double"),
    ]
    assert [each["column"] for each in call("schema", "diff", *at, "--with-snapshot", 1, code=1)] == ["id"]
    create(tmp_path / "lake", "db.same", pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())]))
    assert call("schema", "diff", *at, "--with-table", "db.same") == []
    assert runner.invoke(app, ["schema", "diff", *at]).exit_code != 0


def test_history(at: list[str]) -> None:
    lines = call("schema", "history", *at)
    assert [line["snapshot"] for line in lines] == [2, 1, 0]
    assert lines[0]["changes"][0].startswith("~ id int32 not null → int64 not null")
    assert lines[1]["changes"] == ["+ name string: added with mergeSchema, refused without"]
    assert "int64" in runner.invoke(app, ["schema", "history", *at]).output


def test_adopt_lose_and_rebuild(tmp_path: Path) -> None:
    folder = tmp_path / "lake" / "db" / "t"
    put(folder / "day=2026-01-01" / "a.parquet", id=[1, 2])
    made = call("adopt", folder, "-f", "localfile", "--partitions")
    assert (made["rows"], made["made"], made["partitioned by"]) == (2, True, ["day"])
    assert call("adopt", folder, "-f", "localfile", "--partitions")["made"] is False
    done = runner.invoke(app, ["adopt", str(folder), "-f", "localfile"])
    assert isinstance(done.exception, IncompatibleTable), "the table that is there is another one"
    words = ["db.t", "-f", "localfile", "-w", str(tmp_path / "lake")]
    done = runner.invoke(app, ["schema", "rebuild", *words, "--yes"])
    assert isinstance(done.exception, IncompatibleTable)
    manifests = folder / "_laketier_manifests"
    (manifests / "table.json").write_bytes(b"")
    assert call("schema", "rebuild", *words, "--yes")["rows"] == 2
    [chain] = [path for path in manifests.iterdir() if path.is_dir()]
    next(iter(chain.glob("0*.json"))).write_bytes(b"damaged")
    told = call("schema", "rebuild", *words, "--yes")["told"]
    assert any("watermarks of all pipelines are lost" in sentence for sentence in told)
    assert runner.invoke(app, ["schema", "rebuild", *words], input="n\n").exit_code != 0
    shutil.rmtree(folder)
