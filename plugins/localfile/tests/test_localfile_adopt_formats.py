"""Folders of JSON lines, CSV, Arrow and Vortex files that become tables, and such tables whose manifests were lost."""

from __future__ import annotations

import csv
import datetime
import gzip
import io
import json
import math
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import vortex
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import laketier
from laketier.cli.app import app
from laketier.codecs.flatbuffer import Table as Flatbuffer
from laketier.kit.manifests import files_at
from laketier.registry import configure, open_lake
from laketier.spi import (
    AddColumn,
    CorruptTable,
    IncompatibleData,
    IncompatibleTable,
    ScanRequest,
    TableNotFound,
    WidenColumn,
    WriteMode,
)
from laketier.spi.predicate import Leaf, Op
from laketier_localfile import adoption
from laketier_localfile.file_formats.known import KNOWN
from laketier_localfile.names import ADOPTABLE
from laketier_localfile.options import LocalFileOptions
from laketier_localfile.plugin import LocalFilePlugin

MANIFESTS = "_laketier_manifests"


def as_json(table: pa.Table) -> bytes:
    return "".join(json.dumps(row, default=str) + "\n" for row in table.to_pylist()).encode()


def as_csv(table: pa.Table) -> bytes:
    out = io.StringIO()
    writer = csv.DictWriter(out, table.schema.names)
    writer.writeheader()
    writer.writerows(table.to_pylist())
    return out.getvalue().encode()


def as_arrow(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    return sink.getvalue().to_pybytes()


def as_vortex(table: pa.Table) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        vortex.io.write(table, f"{folder}/x.vortex")
        return Path(f"{folder}/x.vortex").read_bytes()


WRITERS: dict[str, Callable[[pa.Table], bytes]] = {
    ".json": as_json,
    ".jsonl.gz": lambda table: gzip.compress(as_json(table)[:9]) + gzip.compress(as_json(table)[9:]),
    ".ndjson.zst": lambda table: pa.Codec("zstd").compress(as_json(table), asbytes=True),
    ".csv": as_csv,
    ".csv.gz": lambda table: gzip.compress(as_csv(table)),
    ".arrow": as_arrow,
    ".feather": as_arrow,
    ".vortex": as_vortex,
}


def put(path: Path, **columns: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    end = next(end for end in sorted(WRITERS, key=len, reverse=True) if path.name.endswith(end))
    path.write_bytes(WRITERS[end](pa.table(columns)))


def adopt(table: Any, **options: Any) -> Any:
    return laketier.adopt(table.location, lake_format="localfile", **options)


def read_with(table: Any) -> dict[str, list[tuple[Any, ...]]]:
    """The rows by the lines that laketier says for each tool, and by laketier."""
    names = table.info.schema.names
    found = {"laketier": _sorted(table.scan().to_pylist(), names)}
    for tool, line in LocalFilePlugin().open_with(table.info).items():
        if tool != "Spark":
            *imports, last = line.split("; ")
            space: dict[str, Any] = {}
            exec("; ".join(imports), space)  # noqa: S102 - our own lines
            rows = eval(last, space)  # noqa: S307
            rows = rows.pl() if tool == "DuckDB" else rows
            found[tool] = _sorted(rows.to_dicts(), names)
    return found


def _sorted(rows: list[dict[str, Any]], names: list[str]) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.get(name) for name in names) for row in rows), key=repr)


DEEP = {".ndjson.zst", ".csv.gz", ".feather"}
"""Codecs and names, which one test reads in any case."""


@pytest.fixture(params=[pytest.param(end, marks=pytest.mark.deep) if end in DEEP else end for end in WRITERS])
def end(request: Any) -> str:
    return str(request.param)


@pytest.fixture
def folder(make_table: Callable[..., Any]) -> Any:
    """An empty folder where a table may be."""
    table = make_table()
    shutil.rmtree(table.location)
    table.location.mkdir()
    return table


@pytest.fixture
def lying(folder: Any, end: str) -> Any:
    """A folder of three files, of other writers. One lacks a column, one has another one, two have other widths."""
    put(folder.location / f"b 1{end}", id=[3, 4], region=['x, "y"', "ü\\"])
    put(folder.location / f"2026/a#1{end}", id=pa.array([1, 2], pa.int32()), region=["x", None])
    put(folder.location / f"2026/z{end}", id=[5], score=[0.5])
    return folder


ROWS = [(1, "x", None), (2, None, None), (3, 'x, "y"', None), (4, "ü\\", None), (5, None, 0.5)]


def test_every_file_format_says_what_it_adopts() -> None:
    ends = [end for one in KNOWN.values() for end in one.lying_suffixes]
    assert sorted(ends) == sorted(ADOPTABLE)
    assert all(set(one.suffixes) <= set(one.lying_suffixes) for one in KNOWN.values())


@pytest.mark.parametrize("end", list(WRITERS), indirect=True)
def test_files_become_a_table_and_stay_as_they_are(lying: Any) -> None:
    before = {
        path: (path.read_bytes(), path.stat().st_mtime_ns) for path in lying.location.rglob("*") if path.is_file()
    }
    made = adopt(lying)
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in before} == before
    assert (made.files, made.rows, made.made) == (3, 5, True)
    assert lying.info.schema == pa.schema([("id", pa.int64()), ("region", pa.string()), ("score", pa.float64())])
    found = read_with(lying)
    assert set(found) == {"laketier", "DuckDB", "Polars"}
    assert {tool: rows for tool, rows in found.items() if rows != ROWS} == {}
    assert adopt(lying).made is False


def test_what_the_manifest_says_of_each_file_is_true(lying: Any) -> None:
    adopt(lying)
    for entry in files_at(lying.log, 0):
        [split] = [
            each for each in lying.storage.source(lying.info).plan(ScanRequest()).splits if each.files[0] == entry.path
        ]
        schema = lying.info.schema
        rows = pa.Table.from_batches(lying.storage.source(lying.info).read(split, schema), schema=schema)
        assert rows.num_rows == entry.rows
        assert entry.bytes == (lying.location / entry.path).stat().st_size
        for name, (low, high, nulls) in entry.details["stats"].items():
            ends = pc.min_max(rows[name]).as_py()
            assert nulls == rows[name].null_count
            assert (low, high) == tuple(None if each is None else str(each) for each in ends.values())
        assert "id" in entry.details["stats"]
    assert lying.scan(filters=(Leaf("id", Op.GE, 4),))["id"].to_pylist()
    assert lying.scan(columns=("score",))["score"].to_pylist().count(0.5) == 1
    assert lying.scan(columns=()).num_rows == 5


def test_streams_go_on_small_files_are_folded_and_overwrites_move_the_files_away(lying: Any) -> None:
    adopt(lying)
    lying.schema = lying.info.schema
    lying.options = LocalFileOptions(fold_files=2)
    for epoch in range(4):
        lying.round(epoch, [{"id": 10 + epoch, "region": "é"}])
    assert lying.round(3, [{"id": 13}]).outcome.value != "committed"
    more = sorted([*ROWS, *((10 + epoch, "é", None) for epoch in range(4))], key=repr)
    assert {tool: rows for tool, rows in read_with(lying).items() if rows != more} == {}
    assert len(lying.plain_files()) < 7
    lying.round(None, [{"id": 20}], mode=WriteMode.OVERWRITE)
    assert {tuple(rows) for rows in read_with(lying).values()} == {((20, None, None),)}
    assert lying.read_ids(snapshot_id=0) == [1, 2, 3, 4, 5]


def test_columns_are_added_and_widened_after(folder: Any, end: str) -> None:
    put(folder.location / f"a{end}", id=pa.array([1, 2], pa.int32()))
    adopt(folder)
    catalog = folder.storage.catalog()
    catalog.alter_table(folder.path, [AddColumn(pa.field("new", pa.int32()))])
    catalog.alter_table(folder.path, [WidenColumn("new", pa.int64())])
    assert folder.read_ids() == [1, 2]
    assert folder.scan(columns=("new",))["new"].to_pylist() == [None, None]


def test_partitions_come_from_folders(folder: Any, end: str) -> None:
    put(folder.location / f"day=2026-01-01/n=1/x{end}", id=[1], n=[1])
    put(folder.location / f"day=2026-01-02/n=__HIVE_DEFAULT_PARTITION__/x{end}", id=[2])
    adopt(folder, partitions=True)
    folder.schema = folder.info.schema
    assert [str(each) for each in folder.info.descriptor.partition_by] == ["day", "n"]
    folder.round(0, [{"id": 3, "day": datetime.date(2026, 1, 2), "n": 5}])
    rows = sorted((row["id"], str(row["day"]), row["n"]) for row in folder.scan().to_pylist())
    assert rows == [(1, "2026-01-01", 1), (2, "2026-01-02", None), (3, "2026-01-02", 5)]
    assert folder.scan(filters=(Leaf("n", Op.EQ, 1),)).num_rows == 1
    assert folder.scan(columns=("day",)).num_rows == 3


def test_a_folder_that_says_something_else_than_its_file(folder: Any, end: str) -> None:
    put(folder.location / f"n=2/x{end}", id=[1], n=[3])
    with pytest.raises(IncompatibleData, match="holds '3' of column 'n', and its folder says '2'"):
        adopt(folder, partitions=True)


def test_a_conflict_names_both_files(folder: Any, end: str) -> None:
    put(folder.location / f"a{end}", id=[1], v=[[1]] if "csv" not in end else [1])
    put(folder.location / f"b{end}", id=[2], v=["text"])
    if "csv" in end:  # where all is text
        adopt(folder)
        assert folder.info.schema.field("v").type == pa.string()
        return
    with pytest.raises(IncompatibleData, match=rf"column 'v' is list<.*> in 'a{end}' and string in 'b{end}'"):
        adopt(folder)
    assert not (folder.location / MANIFESTS).exists()


@pytest.mark.parametrize("end", [".json", ".arrow"], indirect=True)
@pytest.mark.parametrize("change", ["grow", "new", "gone", "replace"])
def test_a_folder_that_changes_meanwhile_is_not_adopted(
    lying: Any, end: str, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure = adoption.measure

    def later(*args: Any) -> Any:
        found = measure(*args)
        path = lying.location / f"b 1{end}"
        if change == "grow":
            with path.open("ab") as file:
                file.write(b'{"id": 6}\n')
        elif change == "new":
            put(lying.location / f"new{end}", id=[1])
        elif change == "gone":
            path.unlink()
        else:
            data = path.read_bytes()
            (lying.location / ".x").write_bytes(data)
            os.replace(lying.location / ".x", path)
        return found

    monkeypatch.setattr(adoption, "measure", later)
    with pytest.raises(IncompatibleTable, match="1 files changed while the folder was looked at"):
        adopt(lying)
    with pytest.raises(TableNotFound):
        lying.storage.catalog().load_table(lying.path)


def test_a_file_that_changes_between_both_looks_at_it(folder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    put(folder.location / "a.json", id=[1])
    measure = adoption.measure

    def later(*args: Any) -> Any:
        (folder.location / "a.json").write_text('{"id": 2}\n')
        return measure(*args)

    monkeypatch.setattr(adoption, "measure", later)
    with pytest.raises(IncompatibleData, match=r"a\.json: it changed while it was looked at"):
        adopt(folder)


@pytest.mark.parametrize("end", [".json", ".csv", ".arrow"], indirect=True)
def test_killed_in_the_middle_there_is_no_table(lying: Any, end: str) -> None:
    code = f"import laketier; laketier.adopt({str(lying.location)!r}, lake_format='localfile')"
    env = {**os.environ, "LAKETIER_FAILPOINTS": "create.before_table_file=kill"}
    assert subprocess.run([sys.executable, "-c", code], env=env, check=False).returncode == -signal.SIGKILL
    with pytest.raises(TableNotFound):
        lying.storage.catalog().load_table(lying.path)
    assert adopt(lying).rows == 5
    assert read_with(lying)["laketier"] == ROWS


STREAM = pa.BufferOutputStream()
with pa.ipc.new_stream(STREAM, pa.schema([("id", pa.int64())])) as _writer:
    _writer.write_table(pa.table({"id": [1]}))


CUSTOMS = [
    ("x.csv", b"1,2.5,x\n2,3.5,y\n", "its first line has '1', a value and no name .*: it has no header"),
    ("x.csv", b"id,2026-01-01\n1,2\n", "its first line has '2026-01-01', a value"),
    ("x.csv", b"id,\n1,2\n", "column 2 in its first line has no name"),
    ("x.csv", b"id;n\n1;2\n", "its values are parted by ';'"),
    ("x.csv", b"id\tn\n1\t2\n", r"its values are parted by '\\t'"),
    ("x.csv", b"id,n\n1,2\n\n3,4\n", "its line 3 is blank, which some readers take for a row"),
    ("x.csv", b"id,n\n1,2\n3\n", "Expected 2 columns, got 1"),
    ("x.csv", b"id,n\n1,2,3\n", "Expected 2 columns, got 3"),
    ("x.csv", b'id,n\n1,"two\nlines"\n', "a value can't hold the end of a line"),
    ("x.csv", b"id,id\n1,2\n", "its header names .'id'. twice"),
    ("x.csv", "id,n\n1,2\n".encode("utf-16"), "it is text in UTF-16"),
    ("x.json", '{"id": 1}\n'.encode("utf-16"), "it is text in UTF-16; save it as UTF-8"),
    ("x.json", gzip.compress(b'{"id": 1}\n'), "it is compressed with gzip, and its name does not end in .gz"),
    ("x.csv", b"id,n\n1,\xff\n", "utf-8"),
    ("x.csv", b"id,n\r1,2\r3,4\r", "header|carriage return|records"),
    ("x.json", b'[{"id": 1}, {"id": 2}]', "it is one JSON array"),
    ("x.json", b'[\n{"id": 1},\n{"id": 2}\n]\n', "it is one JSON array"),
    ("x.json", b'{\n  "id": 1\n}\n', "its JSON documents take several lines each"),
    ("x.json", b'{"id": 1}\n{"id": NaN}\n', "it holds a bare NaN"),
    ("x.json", b'{"id": 1}\n{"id": -Infinity}\n', "it holds a bare Infinity"),
    ("x.json", b'{"id": 1}\n{"id": 2', "its line 2: the value is not a JSON object"),
    ("x.json", b'{"id": 1}\n7\n', "its line 2: the value is not a JSON object"),
    ("x.json", b'{"id": 1, "id": 2}\n', "its line 1: the field id is there twice"),
    ("x.json", b'{"id": 1} {"id": 2}\n', "the value is not JSON"),
    ("x.json", b'{"id": 1}\n{"id": "one"}\n', "its line 2: the field id has a value of the kind string"),
    ("x.json", b'{"id": 123456789012345678901234567890}\n', "no exact|too large|Number too big"),
    ("x.json.gz", b'{"id": 1}\n', "damaged|gzip|zlib"),
    ("x.json.gz", gzip.compress(b'{"id": 1}\n' * 1000)[:-9], "Truncated compressed stream"),
    ("x.json.gz", gzip.compress(b'{"id": 1}\n') + b"more", "incorrect header check"),
    (
        "x.json.zst",
        pa.Codec("zstd").compress(b'{"id": 1}\n' * 1000, asbytes=True)[:-3],
        "ZSTD|compressed|Truncated",
    ),
    ("x.arrow", STREAM.getvalue().to_pybytes(), "it is an Arrow stream"),
    ("x.feather", b"FEA1" + b"\0" * 64, "the first version of Feather"),
    ("x.arrow", b"PAR1" + b"\0" * 64, "it is no Arrow file"),
    ("x.arrow", as_arrow(pa.table({"id": [1]}))[:-12], "it has no footer"),
    ("x.vortex", b"VTXF" + b"\0" * 64, "Vortex can't read the file"),
]


@pytest.mark.parametrize(("name", "data", "why"), CUSTOMS, ids=[f"{name} {why}" for name, _, why in CUSTOMS])
def test_what_is_of_another_custom_is_refused_by_name(folder: Any, name: str, data: bytes, why: str) -> None:
    (folder.location / name).write_bytes(data)
    with pytest.raises(IncompatibleData, match=f"(?s)1 of 1 files can't be read.*{name}: .*({why})"):
        adopt(folder)
    assert not (folder.location / MANIFESTS).exists()


@pytest.mark.parametrize(
    ("name", "data", "rows"),
    [
        ("x.csv", b"\xef\xbb\xbfid,n\r\n1,x\r\n2,\r\n", [(1, "x"), (2, None)]),
        ("x.csv", b'id,n\n"1",007\n,"a ""b"", c"', [(1, "007"), (None, 'a "b", c')]),
        ("x.csv", b"id,n\n1,\n,\n", [(1, None), (None, None)]),
        ("x.json", b'{"id": 1}\r\n\n{"id": 2, "n": null}\n{}', [(1,), (2,), (None,)]),
        ("x.json", b'{"id": 1, "n": "NaN \\" Infinity"}\n', [(1, 'NaN " Infinity')]),
        ("x.json", b'{"id": 1, "n": {"b": [1, 2.5]}}\n', [(1, {"b": [1.0, 2.5]})]),
    ],
)
def test_what_readers_agree_on_is_read_as_they_do(folder: Any, name: str, data: bytes, rows: list[Any]) -> None:
    (folder.location / name).write_bytes(data)
    adopt(folder)
    assert [tuple(row.values())[: len(rows[0])] for row in folder.scan().to_pylist()] == rows
    lines = len(rows)
    if name == "x.json":
        assert duckdb.sql(f"SELECT count(*) FROM read_json('{folder.location}/{name}')").fetchall() == [(lines,)]
        assert pl.read_ndjson(folder.location / name).height == lines
    else:
        assert duckdb.sql(f"SELECT count(*) FROM read_csv('{folder.location}/{name}')").fetchall() == [(lines,)]
        assert pl.read_csv(folder.location / name).height == lines


def test_a_type_that_is_chosen_takes_the_file_that_needs_it(folder: Any) -> None:
    """No type was found for the file by itself, and the error said to choose one, in vain."""
    put_bytes = (folder.location / "x.json").write_bytes
    put_bytes(b'{"v": 1.5}\n\n{"v": 9007199254740993}\n')
    with pytest.raises(IncompatibleData, match=r"x\.json: its line 3: 9007199254740993 .*declare it as decimal128"):
        adopt(folder)
    adopt(folder, types={"v": pa.decimal128(20, 1)})
    assert [str(value) for value in folder.scan()["v"].to_pylist()] == ["1.5", "9007199254740993.0"]


def test_two_files_of_csv_without_a_common_column(folder: Any) -> None:
    (folder.location / "a.csv").write_text("ann,berlin\nbob,rome\n")
    (folder.location / "b.csv").write_text("cleo,paris\ndan,oslo\n")
    with pytest.raises(IncompatibleData, match=r"'a\.csv' and 'b\.csv' have no column in common"):
        adopt(folder)


def test_folders_that_may_be_tables_of_their_own(folder: Any) -> None:
    """As where a folder one level too high was named."""
    for name, columns in (("orders", {"id": [1], "total": [2]}), ("visits", {"who": ["x"]})):
        (folder.location / name).mkdir()
        put(folder.location / name / "1.json", **columns)
    with pytest.raises(IncompatibleData, match=r"files in orders/ and the files in visits/ have no column in common"):
        adopt(folder)
    assert not (folder.location / MANIFESTS).exists()
    put(folder.location / "visits" / "1.json", who=["x"], id=[2])
    assert adopt(folder).told[0] == "Its files lie in 2 folders, such as orders and visits, and are one table."


def test_folders_by_time_are_told_no_table(folder: Any) -> None:
    for name in ("2026-01-01", "2026-01-02"):
        (folder.location / name).mkdir()
        put(folder.location / name / "1.json", id=[1])
    assert adopt(folder).told == ()


def test_files_of_several_formats(folder: Any) -> None:
    put(folder.location / "a.json", id=[1])
    put(folder.location / "b.csv", id=[2])
    (folder.location / "empty.json").touch()
    with pytest.raises(
        IncompatibleData, match=r"files of several formats, because there are 1 of csv \('b\.csv'\), 2 of"
    ):
        adopt(folder)
    made = adopt(folder, options={"lake.localfile.file-format": "json"})
    assert made.left_out == {"b.csv": "it is named as a file of csv", "empty.json": "it has no records"}
    assert folder.read_ids() == [1]


def test_the_command_line_chooses_too(folder: Any) -> None:
    put(folder.location / "a.json", id=[1])
    put(folder.location / "b.csv", id=[2])
    keys = ["-s", "lake.localfile.file-format=csv"]
    done = CliRunner().invoke(app, ["adopt", str(folder.location), "-f", "localfile", *keys, "--json"])
    assert done.exit_code == 0
    assert json.loads(done.output)["rows"] == 1
    assert folder.read_ids() == [2]


_TEXT = st.text(st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp")), max_size=8)
_VALUES = st.fixed_dictionaries(
    {
        "i": st.none() | st.integers(-(2**63), 2**63 - 1),
        "f": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "t": st.none() | _TEXT.filter(lambda text: text.strip() == text and text.strip("0123456789.eE+-") != ""),
        "b": st.none() | st.booleans(),
    }
)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(_VALUES, min_size=1, max_size=6), end=st.sampled_from([".json", ".csv"]))
def test_any_rows_of_text_are_read_as_they_were_written(tmp_path: Path, rows: list[dict[str, Any]], end: str) -> None:
    rows = [{"k": "x", **row} for row in rows]
    folder = Path(tmp_path, os.urandom(8).hex(), "db", "t")
    folder.mkdir(parents=True)
    if end == ".json":
        (folder / "x.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        with (folder / "x.csv").open("w", newline="") as out:
            writer = csv.DictWriter(out, rows[0], quoting=csv.QUOTE_MINIMAL)
            writer.writeheader()
            writer.writerows(rows)
    laketier.adopt(folder, lake_format="localfile")
    lake = open_lake(
        configure({"lake.format": "localfile", "lake.warehouse": str(folder.parent.parent), "lake.table": "db.t"})
    )
    info = lake.load_table()
    plan = lake.source(info).plan(ScanRequest())
    found = pa.Table.from_batches([b for s in plan.splits for b in lake.source(info).read(s, plan.schema)]).to_pylist()
    assert len(found) == len(rows)
    for got, wanted in zip(found, rows, strict=True):
        for name, value in wanted.items():
            there = got.get(name)
            if end == ".csv" and value == "":  # which csv.writer does not put in quotes
                value = None
            if isinstance(value, float) and there is not None:
                assert math.isclose(float(there), value, rel_tol=0, abs_tol=0)
            else:
                assert there == value or (value is None and there is None) or str(there).lower() == str(value).lower()


def arrow_of_two() -> tuple[bytearray, int]:
    """An Arrow file of two batches of the same size, and where its footer begins."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, pa.schema([("id", pa.int64())])) as writer:
        for first in (0, 8):
            writer.write_batch(pa.record_batch({"id": list(range(first, first + 8))}))
    data = bytearray(sink.getvalue().to_pybytes())
    return data, len(data) - 10 - int.from_bytes(data[-10:-6], "little")


def test_a_footer_that_leads_readers_to_other_rows_is_refused(folder: Any) -> None:
    """What is looked at is the stream in front of it, and readers of files go by the footer."""
    data, footer = arrow_of_two()
    blocks = list(Flatbuffer.root(bytes(data[footer:])).structs(3, "<qi4xq"))
    places = [data.index(struct.pack("<qi4xq", *block), footer) for block in blocks]
    data[places[1] : places[1] + 24] = struct.pack("<qi4xq", *blocks[0])
    assert pa.ipc.open_file(pa.py_buffer(data)).read_all()["id"].to_pylist() == [*range(8)] * 2
    (folder.location / "x.arrow").write_bytes(data)
    with pytest.raises(IncompatibleData, match=r"x\.arrow: its footer tells of other places of rows"):
        adopt(folder)


def test_a_footer_that_no_reader_takes_is_refused(folder: Any) -> None:
    """Each byte of it, changed: the file is refused, or its rows are those that it had."""
    whole, footer = arrow_of_two()
    refused = 0
    for place in range(footer, len(whole) - 10, 3):
        data = bytearray(whole)
        data[place] ^= 0x55
        shutil.rmtree(folder.location)
        folder.location.mkdir()
        (folder.location / "x.arrow").write_bytes(data)
        try:
            adopt(folder)
        except IncompatibleData:
            refused += 1
        else:
            assert sorted(folder.scan()["id"].to_pylist()) == list(range(16)), place
    assert refused > 10


def test_text_that_is_no_utf_8_is_told_as_damage(folder: Any) -> None:
    """Arrow reads it as it is, and whoever looks at the text fails."""
    bad = pa.array([b"a", b"\xff\xfe"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"id": [1, 2], "text": bad}), folder.location / "x.parquet")
    adopt(folder)
    with pytest.raises(CorruptTable, match=r"x\.parquet: a data file is damaged.*UTF8"):
        folder.scan()
