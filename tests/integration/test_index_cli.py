"""``laketier index`` on Lance tables, without Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import Result
from typer.testing import CliRunner

from laketier.cli.app import app
from laketier.spi import ConfigError, FeatureNotSupported
from laketier_verification.lakes import append, lake_at

pytest.importorskip("laketier_lance")

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])


@pytest.fixture
def where(tmp_path: Path) -> list[str]:
    lake = lake_at(tmp_path, "lance")
    for epoch in range(4):
        add(tmp_path, epoch)
    return [str(lake.config.table), "-f", "lance", "-w", str(lake.config.warehouse)]


def add(root: Path, epoch: int) -> None:
    ids = range(epoch * 50, epoch * 50 + 50)
    columns = {"id": list(ids), "text": [f"paper {each} on lakes" for each in ids]}
    append(lake_at(root, "lance"), pa.RecordBatch.from_pydict(columns, schema=SCHEMA), epoch=epoch)


def call(*words: str) -> Result:
    return CliRunner().invoke(app, ["index", *words])


def told(*words: str) -> dict[str, object]:
    done = call(*words, "--json")
    assert done.exit_code == 0, (done.output, done.exception)
    document: dict[str, object] = json.loads(done.stdout)
    return document


def test_an_index_from_its_creation_to_its_end(where: list[str], tmp_path: Path) -> None:
    assert told("list", *where) == {"indexes": []}
    words = told("create", *where, "text", "inverted", "-o", "with_position=true", "--parts", "3", "--processes", "1")
    assert (words["name"], words["rows_indexed"], words["rows_not_indexed"]) == ("text_idx", 200, 0)
    assert (len(words["segments"]), words["options"]["with_position"]) == (2, True)  # type: ignore[arg-type, index]
    add(tmp_path, 4)
    assert told("describe", *where, "text_idx")["share_indexed"] == 0.8
    assert told("append", *where, "text_idx", "--processes", "1")["rows_not_indexed"] == 0
    assert "250" in call("list", *where).stdout
    one = told("create", *where, "text", "inverted", "--replace", "--parts", "1", "--processes", "1")
    assert len(one["segments"]) == 1  # type: ignore[arg-type]
    status = CliRunner().invoke(app, ["status", *where])
    assert "inverted of text, 1 segments, 250 rows in it, 0 without" in status.stdout
    assert call("drop", *where, "text_idx").exit_code == 1, "nobody said yes"
    assert len(told("list", *where)["indexes"]) == 1  # type: ignore[arg-type]
    assert told("drop", *where, "text_idx", "--yes") == {"dropped": "text_idx"}
    assert told("list", *where) == {"indexes": []}


def test_an_index_is_brought_up_to_date(where: list[str], tmp_path: Path) -> None:
    told("create", *where, "text", "inverted", "--parts", "1", "--processes", "1")
    told("create", *where, "id", "btree", "--parts", "1", "--processes", "1")
    for epoch in (4, 5):
        add(tmp_path, epoch)
        told("append", *where, "text_idx", "--processes", "1")
    add(tmp_path, 6)
    done = told("optimize", *where, "text_idx", "--max-segments", "2", "--processes", "1")["indexes"][0]  # type: ignore[index]
    assert [each["step"] for each in done["steps"]] == ["append", "merge"]
    assert (len(done["segments"]), done["rows_indexed"], done["rows_not_indexed"]) == (1, 350, 0)
    every = told("optimize", *where, "--processes", "1")["indexes"]
    assert [[each["step"] for each in one["steps"]] for one in every] == [["append"], []]  # type: ignore[attr-defined]
    assert call("optimize", *where).stdout.splitlines() == ["id_idx: nothing to do", "text_idx: nothing to do"]


def test_a_build_in_processes_tells_each_part_as_it_ends(where: list[str]) -> None:
    done = call("create", *where, "id", "btree", "--processes", "2", "--parts", "4")
    assert done.exit_code == 0, (done.output, done.exception)
    lines = [line.rpartition(",")[0] for line in done.stderr.splitlines() if line.startswith("index id_idx")]
    assert lines == [f"index id_idx: {n} of 4 parts, {50 * n} of 200 rows" for n in range(5)]


def test_what_does_not_fit_is_refused(where: list[str]) -> None:
    for words, says in [
        (("create", *where, "text", "invertid"), "'inverted'"),
        (("create", *where, "text", "inverted", "-o", "stem"), "NAME=VALUE"),
        (("create", *where, "text", "inverted", "-o", "stemm=true"), "'stem'"),
        (("append", *where, "text_idx"), "no index 'text_idx'"),
        (("drop", *where, "text_idx", "--yes"), "no index 'text_idx'"),
    ]:
        refused = call(*words)
        assert isinstance(refused.exception, ConfigError)
        assert says in str(refused.exception)


def test_what_a_build_may_take_and_what_it_took(where: list[str], tmp_path: Path) -> None:
    limits = ["--memory", "160MiB", "--partition-size", "32 MiB", "--spill", str(tmp_path)]
    built = told(
        "create", *where, "text", "inverted", "--parts", "3", "--processes", "1", "--max-segments", "1", *limits
    )
    assert (len(built["segments"]), built["parts_kept"]) == (1, 0)  # type: ignore[arg-type]
    memory = built["peak_memory_of_parts"]
    assert isinstance(memory, list)
    assert len(memory) == 3, "two parts, and one of both"
    assert min(memory) > 10_000_000
    taken = built["memory_taken_by_parts"]
    assert isinstance(taken, list)
    assert len(taken) == 3
    assert all(0 <= part < held for part, held in zip(taken, memory, strict=True))
    assert max(taken) > 1_000_000, "a part of full text loads Lance's code for it, at least"
    wrong = call("create", *where, "id", "zonemap", "--memory", "64MiB")
    assert isinstance(wrong.exception, FeatureNotSupported)
    wrong = call("create", *where, "id", "btree", "--memory", "much")
    assert isinstance(wrong.exception, ConfigError)
    assert "--memory 'much' is no size" in str(wrong.exception)
