"""Folders of Parquet files that become tables, where they lie."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import laketier
from laketier.kit import foreign_tables
from laketier.kit.manifests import Manifest, files_at
from laketier.kit.manifests.document import decode, encode
from laketier.kit.manifests.rollup import write_rollups
from laketier.spi import (
    AddColumn,
    ConfigError,
    CorruptTable,
    IncompatibleData,
    IncompatibleTable,
    LaketierError,
    OutsideTable,
    ScanRequest,
    StorageError,
    TableNotFound,
    Token,
    UnsupportedType,
    WidenColumn,
    WriteMode,
)
from laketier.spi.predicate import Leaf, Op
from laketier.tiering import TieringRound
from laketier_localfile import adoption
from laketier_localfile.lying import kind_of
from laketier_localfile.options import LocalFileOptions
from laketier_localfile.plugin import LocalFilePlugin


def put(path: Path, **columns: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


def adopt(table: Any, **options: Any) -> Any:
    return laketier.adopt(table.location, lake_format="localfile", **options)


def digests(folder: Path) -> dict[str, str]:
    """All files but the table's own."""
    paths = (p for p in folder.rglob("*") if p.is_file() and "_laketier_manifests" not in p.parts)
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in paths}


@pytest.fixture
def lying(make_table: Callable[..., Any], tmp_path: Path) -> Any:
    """A folder of three files, of other writers."""
    table = make_table()
    shutil.rmtree(table.location)
    put(table.location / "b 100%.parquet", id=[3, 4], region=["x", "y"])
    put(table.location / "2026/a#1.parquet", id=pa.array([1, 2], pa.int32()), region=["x", None])
    put(table.location / "2026/ü'.parquet", id=[5], score=[0.5])
    return table


@pytest.fixture
def empty(make_table: Callable[..., Any]) -> Any:
    """A place without anything."""
    table = make_table()
    shutil.rmtree(table.location)
    return table


def readers(table: Any) -> dict[str, list[int]]:
    pattern = f"{table.location}/**/*.parquet"
    files = table.plain_files()
    query = f"SELECT id FROM read_parquet('{pattern}', union_by_name=True)"
    plain = ds.dataset(list(map(str, files)), format="parquet").to_table(columns=["id"])
    return {
        "DuckDB": sorted(row[0] for row in duckdb.sql(query).fetchall()),
        "Polars": sorted(each for file in files for each in pl.read_parquet(file, glob=False)["id"].to_list()),
        "pyarrow": sorted(plain["id"].to_pylist()),
        "laketier": table.read_ids(),
    }


def test_files_become_a_table_and_stay_as_they_are(lying: Any) -> None:
    (lying.location / "README.md").write_text("notes")
    before = digests(lying.location)
    made = adopt(lying)
    assert digests(lying.location) == before
    (lying.location / "README.md").unlink()
    assert (made.files, made.rows, made.made) == (3, 5, True)
    assert made.left_out == {"README.md": "its name is that of no data file"}
    assert lying.info.schema == pa.schema([("id", pa.int64()), ("region", pa.string()), ("score", pa.float64())])
    assert {tuple(ids) for ids in readers(lying).values()} == {(1, 2, 3, 4, 5)}
    rows = sorted(lying.scan().to_pylist(), key=lambda row: row["id"])
    assert rows[1] == {"id": 2, "region": None, "score": None}
    assert rows[4] == {"id": 5, "region": None, "score": 0.5}


def test_again_is_the_same_table(lying: Any) -> None:
    first = adopt(lying)
    again = adopt(lying)
    assert (again.made, again.table.table_uuid, again.rows) == (False, first.table.table_uuid, 5)
    lying.schema = lying.info.schema
    lying.round(0, [{"id": 9}])
    assert adopt(lying).rows == 5
    assert lying.read_ids() == [1, 2, 3, 4, 5, 9]


def test_again_tells_of_files_that_came_since(lying: Any) -> None:
    """Whoever adopts once more may think that they are in the table now."""
    adopt(lying)
    lying.schema = lying.info.schema
    lying.round(0, [{"id": 9}])
    assert not adopt(lying).left_out
    put(lying.location / "later.parquet", id=[9])
    (lying.location / "notes.txt").write_text("")
    again = adopt(lying)
    assert (again.made, list(again.left_out)) == (False, ["later.parquet"])
    assert "it is not in the table" in again.left_out["later.parquet"]


def test_again_where_something_odd_was_put_there(lying: Any, tmp_path: Path) -> None:
    """It refused a table that was there, and fine."""
    adopt(lying)
    (lying.location / "link.parquet").symlink_to(tmp_path)
    again = adopt(lying)
    assert (again.made, again.rows) == (False, 5)
    assert "were not looked for: 'link.parquet' is a symbolic link" in again.told[0]
    (lying.location / "link.parquet").unlink()
    (lying.location / "_spark_metadata").mkdir()
    assert "a table of Spark's file sink" in adopt(lying).told[0]


def test_again_does_not_guess_when_a_file_came(empty: Any) -> None:
    """One without records was there at the first time, too."""
    empty.location.mkdir(exist_ok=True)
    (empty.location / "a.json").write_text('{"id": 1}\n')
    (empty.location / "b.json").write_text("")
    adopt(empty, options={"lake.localfile.file-format": "json"})
    [told] = adopt(empty, options={"lake.localfile.file-format": "json"}).left_out.values()
    assert told.startswith("it is not in the table")


def test_again_as_another_file_format_is_refused(lying: Any) -> None:
    adopt(lying)
    with pytest.raises(ConfigError, match=r"file-format is json, and the table's files are parquet"):
        adopt(lying, options={"lake.localfile.file-format": "json"})


def test_streams_go_on_and_overwrites_move_the_files_away(lying: Any) -> None:
    adopt(lying)
    lying.schema = lying.info.schema
    lying.round(0, [{"id": 10}])
    assert lying.round(0, [{"id": 10}]).outcome.value != "committed"
    lying.round(1, [{"id": 11}])
    assert {tuple(ids) for ids in readers(lying).values()} == {(1, 2, 3, 4, 5, 10, 11)}
    lying.round(None, [{"id": 20}], mode=WriteMode.OVERWRITE)
    assert {tuple(ids) for ids in readers(lying).values()} == {(20,)}
    assert lying.read_ids(snapshot_id=0) == [1, 2, 3, 4, 5]
    assert lying.read_ids(snapshot_id=2) == [1, 2, 3, 4, 5, 10, 11]


def test_upserts_replace_files_of_the_same_name_in_several_folders(make_table: Callable[..., Any]) -> None:
    table = make_table()
    shutil.rmtree(table.location)
    for at, folder in enumerate("ab"):
        put(table.location / folder / "part-00000-x.parquet", id=[at], region=["r"])
    adopt(table)
    paths = ["a/part-00000-x.parquet", "b/part-00000-x.parquet"]
    result = replace(table.stage([{"id": 7, "region": "r"}]), replaced=tuple(paths))
    tiering = TieringRound(table.factory, token=Token("p", "run", 0), mode=WriteMode.UPSERT)
    tiering.begin()
    tiering.commit([result])
    assert table.read_ids() == [7]
    assert table.read_ids(snapshot_id=0) == [0, 1]
    assert len(table.plain_files()) == 1


def test_columns_are_added_and_widened_after(lying: Any) -> None:
    adopt(lying)
    catalog = lying.storage.catalog()
    catalog.alter_table(lying.path, [AddColumn(pa.field("new", pa.int32()))])
    catalog.alter_table(lying.path, [WidenColumn("new", pa.int64())])
    assert lying.read_ids() == [1, 2, 3, 4, 5]
    assert lying.scan(columns=("new",)).num_rows == 5
    assert lying.scan(columns=()).num_rows == 5


def test_rollups_keep_the_names_of_others(lying: Any) -> None:
    adopt(lying)
    lying.schema = lying.info.schema
    log = lying.log
    for epoch in range(33):
        lying.round(epoch, [{"id": 100 + epoch}])
    write_rollups(log, 31)
    assert len(files_at(log, 33)) == 36
    [rollup] = (log.folder / "rollups").glob("*.json")
    assert json.loads(rollup.read_bytes())["body"]["version"] == 5


def test_small_files_of_others_are_folded_with_their_rows(lying: Any) -> None:
    adopt(lying)
    lying.schema = lying.info.schema
    lying.options = LocalFileOptions(fold_files=2)
    for epoch in range(4):
        lying.round(epoch, [{"id": 10 + epoch}])
    assert {tuple(ids) for ids in readers(lying).values()} == {(1, 2, 3, 4, 5, 10, 11, 12, 13)}
    assert len(lying.plain_files()) < 7
    assert lying.read_ids(snapshot_id=0) == [1, 2, 3, 4, 5]


def test_older_versions_refuse_it(lying: Any) -> None:
    adopt(lying)
    lying.schema = lying.info.schema
    lying.round(0, [{"id": 9}])
    for number in range(2):
        body = json.loads(lying.log.path(number).read_bytes())["body"]
        assert (body["version"], body["origin"]) == (5, "adopted")


@pytest.mark.parametrize(
    "path", ["../x.parquet", "_laketier_manifests/x.parquet", "a/.b/x.parquet", "x.txt", "/x.parquet"]
)
def test_a_forged_name_is_refused(lying: Any, path: str) -> None:
    adopt(lying)
    file = lying.log.path(0)
    body = json.loads(file.read_bytes())["body"]
    body["added"][0]["path"] = path
    with pytest.raises(CorruptTable):
        Manifest.decode(encode(body), file, lying.log.layout)
    del body["origin"]
    with pytest.raises(CorruptTable):
        decode(encode(body), file, lambda b, s: Manifest.decode(encode(b), file, lying.log.layout))


def test_filters_skip_files_and_lose_no_row(lying: Any) -> None:
    put(lying.location / "wide.parquet", id=[100, 2**40], region=["10", "9"])
    put(lying.location / "text.parquet", id=[7], region=["5"], score=pa.array([2], pa.int32()))
    adopt(lying)
    source = lying.storage.source(lying.info)
    plan = source.plan(ScanRequest(filters=(Leaf("id", Op.GE, 100),)))
    assert [split.files[0] for split in plan.splits] == ["wide.parquet"]
    assert [split.plain_parquet for split in plan.splits] == [None]
    kept = source.plan(ScanRequest(filters=(Leaf("score", Op.EQ, 2.0),)))
    assert "text.parquet" in [split.files[0] for split in kept.splits]


def test_types_that_the_user_gives(lying: Any) -> None:
    put(lying.location / "odd.parquet", id=["6"], region=["z"])
    with pytest.raises(IncompatibleData, match=r"column 'id' is int32 in .* and string in 'odd\.parquet'"):
        adopt(lying)
    adopt(lying, types={"id": pa.string()})
    assert sorted(lying.scan()["id"].to_pylist()) == ["1", "2", "3", "4", "5", "6"]


@pytest.mark.parametrize(
    ("types", "says"),
    [
        ({"regoin": pa.string()}, r"a type is given for column 'regoin', and there is no .*Did you mean 'region'"),
        ({"id": "string"}, "'string' is no type of column 'id'"),
    ],
)
def test_types_of_nothing_are_refused(lying: Any, types: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        adopt(lying, types=types)
    assert not (lying.location / "_laketier_manifests").exists()


def test_a_path_behind_file_and_what_is_no_path(lying: Any) -> None:
    assert laketier.adopt(f"file:{lying.location}", lake_format="localfile").made
    assert not laketier.adopt(f"file://{lying.location}", lake_format="localfile").made
    odd_name = lying.location.parents[2] / "my file:eu lake"
    lying.location.parents[1].rename(odd_name)
    there = odd_name / lying.location.parent.name / lying.location.name
    assert not laketier.adopt(there, lake_format="localfile").made
    assert not laketier.adopt(f"file:{there}".replace(" ", "%20"), lake_format="localfile").made
    for odd in (None, b"lake/sales/orders"):
        with pytest.raises(ConfigError, match="and not text"):
            laketier.adopt(odd, lake_format="localfile")  # type: ignore[arg-type]


def test_partitions_come_from_folders(make_table: Callable[..., Any]) -> None:
    table = make_table()
    shutil.rmtree(table.location)
    put(table.location / "day=2026-01-01/n=1/x.parquet", id=[1])
    put(table.location / "day=2026-01-02/n=__HIVE_DEFAULT_PARTITION__/x.parquet", id=[2])
    adopt(table, partitions=True)
    assert [str(each) for each in table.info.descriptor.partition_by] == ["day", "n"]
    table.schema = table.info.schema
    table.round(0, [{"id": 3, "day": datetime.date(2026, 1, 2), "n": 5}])
    rows = sorted(table.scan().to_pylist(), key=lambda row: row["id"])
    assert [(row["id"], str(row["day"]), row["n"]) for row in rows] == [
        (1, "2026-01-01", 1),
        (2, "2026-01-02", None),
        (3, "2026-01-02", 5),
    ]
    assert table.scan(filters=(Leaf("n", Op.EQ, 1),)).num_rows == 1
    assert table.scan(columns=("day",)).num_rows == 3
    lines = LocalFilePlugin().open_with(table.info)
    for tool, rows_of in (("DuckDB", "found.pl()"), ("Polars", "found")):
        *imports, last = lines[tool].split("; ")
        told = f"sorted(zip({rows_of}['id'].to_list(), map(str, {rows_of}['day'].to_list())))"
        code = "; ".join((*imports, f"found = {last}", f"print({told})"))
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "[(1, '2026-01-01'), (2, '2026-01-02'), (3, '2026-01-02')]"


def test_types_of_columns_in_folders_are_chosen(empty: Any) -> None:
    """They were taken for what the names look like, and the choice was ignored."""
    for day, price, flag in (("01", "1.50", "True"), ("1", "2", "0")):
        put(empty.location / f"day={day}/price={price}/flag={flag}/a.parquet", id=[1])
    types = {"day": pa.int8(), "price": pa.decimal128(9, 2), "flag": pa.bool_()}
    adopt(empty, partitions=True, types=types)
    rows = empty.scan().select(list(types)).sort_by("price").to_pylist()
    assert rows == [
        {"day": 1, "price": Decimal("1.50"), "flag": True},
        {"day": 1, "price": Decimal("2.00"), "flag": False},
    ]


@pytest.mark.parametrize(
    ("value", "kind"),
    [("300", pa.int8()), ("x", pa.int64()), ("1_000", pa.int64()), ("0x10", pa.int32()), ("+1", pa.int32())],
)
def test_a_folder_that_the_chosen_type_does_not_hold(empty: Any, value: str, kind: pa.DataType) -> None:
    put(empty.location / f"k={value}/a.parquet", id=[1])
    with pytest.raises(IncompatibleData, match=f"folder's value '{re.escape(value)}' is no {kind}"):
        adopt(empty, partitions=True, types={"k": kind})


def test_a_type_that_may_not_partition_is_told_as_that(empty: Any) -> None:
    """It said that 5 is no double, and to give the column's type."""
    put(empty.location / "k=5/a.parquet", id=[1])
    with pytest.raises(UnsupportedType, match="column 'k' of type double can't be a partition column"):
        adopt(empty, partitions=True, types={"k": pa.float64()})


def test_what_is_lost_without_partitions_is_told(lying: Any) -> None:
    """Of columns that only folders have; and of what Spark would have read."""
    put(lying.location / "day=2026-01-01/a.parquet", id=[1])
    put(lying.location / "_k=1/a.parquet", id=[1])
    made = adopt(lying)
    assert made.told[0].startswith("Its folders name day, and no file has such a column")
    assert "_k=1" in made.left_out


def test_a_folder_that_says_something_else_than_its_file(make_table: Callable[..., Any]) -> None:
    table = make_table()
    shutil.rmtree(table.location)
    put(table.location / "n=1/x.parquet", id=[1], n=[1])
    adopt(table, partitions=True)
    shutil.rmtree(table.location / "_laketier_manifests")
    shutil.rmtree(table.location / "__in_progress")
    put(table.location / "n=2/x.parquet", id=[1], n=[3])
    with pytest.raises(IncompatibleData, match="holds '3' of column 'n', and its folder says '2'"):
        adopt(table, partitions=True)


def test_int96_of_old_writers_is_the_moment_that_it_was(make_table: Callable[..., Any]) -> None:
    table = make_table()
    shutil.rmtree(table.location)
    table.location.mkdir()
    moments = [datetime.datetime(1500, 1, 1), datetime.datetime(2500, 1, 1)]
    rows = pa.table({"id": [1, 2], "at": pa.array(moments, pa.timestamp("us"))})
    pq.write_table(rows, table.location / "old.parquet", use_deprecated_int96_timestamps=True)
    adopt(table)
    assert sorted(table.scan()["at"].to_pylist()) == moments


@pytest.mark.parametrize(
    ("name", "is_folder", "who"),
    [
        ("_delta_log", True, "Delta"),
        ("metadata/v1.metadata.json", False, "Iceberg"),
        ("_versions", True, "Lance"),
        ("inner/_laketier_manifests", True, "laketier"),
        ("_spark_metadata", True, "Spark's file sink"),
        ("delete_delta_0000002_0000002_0000", True, "Hive's transactions"),
        ("ducklake-01923f3a-1b2c-7d3e-8f40-123456789abc-delete.parquet", False, "DuckLake"),
    ],
)
def test_tables_of_other_formats_are_refused_by_name(lying: Any, name: str, is_folder: bool, who: str) -> None:
    path = lying.location / name
    path.mkdir(parents=True) if is_folder else (path.parent.mkdir(exist_ok=True), path.write_text("{}"))
    with pytest.raises(IncompatibleTable, match=f"a table of {who}"):
        adopt(lying)
    assert not (lying.location / "_laketier_manifests").exists()


def test_folders_that_are_a_table_together(lying: Any) -> None:
    for name in ("snapshot", "schema", "manifest"):
        put(lying.location / name / "snapshot-20260101/a.parquet", id=[1])
    with pytest.raises(IncompatibleTable, match="a table of Paimon"):
        adopt(lying)
    shutil.rmtree(lying.location / "schema")
    assert adopt(lying).files == 5


def test_each_mark_of_a_table_has_a_name() -> None:
    acid = ("base_0000001", "delta_0000001_0000001", "delete_delta_0000001_0000001")
    for mark in (*foreign_tables.MARKS, f"{foreign_tables.INSIDE}/v1.metadata.json", "snapshot", "ducklake-1", *acid):
        assert kind_of(mark) != "another format", mark
    assert kind_of("_new_one") == "another format"


def test_names_of_tables_that_others_have_too(lying: Any) -> None:
    put(lying.location / "photos/metadata/a.parquet", id=[1])
    (lying.location / "photos/metadata/img1.jpg.metadata.json").write_text("{}")
    (lying.location / "base_0000012").write_text("")
    put(lying.location / "metadata/v1.metadata.json/a.parquet", id=[1])
    assert adopt(lying, options={"lake.localfile.file-format": "parquet"}).files == 5


def test_a_folder_within_a_table_is_refused(lying: Any) -> None:
    put(lying.location / "inner/a.parquet", id=[1])
    adopt(lying)
    with pytest.raises(IncompatibleTable, match="the folder lies within a table"):
        laketier.adopt(lying.location / "inner", lake_format="localfile")
    assert not (lying.location / "inner" / "_laketier_manifests").exists()


def test_the_files_of_a_table_alone_are_refused(lying: Any) -> None:
    """Of Iceberg's `data` some were deleted, and the folder above says so."""
    inner = lying.location / "data"
    put(inner / "a.parquet", id=[1])
    (lying.location / "metadata").mkdir()
    (lying.location / "metadata" / "v1.metadata.json").write_text("{}")
    with pytest.raises(IncompatibleTable, match=r"lies within a table, because .* is a table of Iceberg"):
        laketier.adopt(inner, lake_format="localfile")


def test_a_table_of_laketier_is_refused(table: Any) -> None:
    table.round(0)
    with pytest.raises(IncompatibleTable, match="a table of laketier already"):
        adopt(table)


def test_what_is_left_of_a_table_is_not_adopted(table: Any) -> None:
    table.round(0)
    shutil.rmtree(table.location / "_laketier_manifests")
    with pytest.raises(IncompatibleTable, match="whose manifests are gone"):
        adopt(table)


def test_what_nobody_could_look_at_may_be_what_is_left_of_a_table(lying: Any) -> None:
    """A folder lies so deep that the system takes no path of it; and a name that leads to itself can't be looked at."""
    here = os.open(lying.location, os.O_RDONLY)
    for _ in range(17):
        os.mkdir("x" * 250, dir_fd=here)
        above, here = here, os.open("x" * 250, os.O_RDONLY, dir_fd=here)
        os.close(above)
    os.close(here)
    own = lying.location / "_laketier_manifests"
    own.mkdir()
    with pytest.raises(StorageError, match="a folder was looked at, because file name too long"):
        adopt(lying)
    own.rmdir()
    own.symlink_to(own.name)
    with pytest.raises(StorageError, match=r"a folder was looked at.*symbolic links"):
        adopt(lying)


def test_links_and_damage_and_nothing_at_all(lying: Any, tmp_path: Path) -> None:
    (lying.location / "link.parquet").symlink_to(tmp_path)
    with pytest.raises(OutsideTable, match=r"'link\.parquet' is a symbolic link"):
        adopt(lying)
    (lying.location / "link.parquet").unlink()
    (lying.location / "zero.parquet").touch()
    with pytest.raises(IncompatibleData, match=r"1 of 4 files can't be read.*zero\.parquet"):
        adopt(lying)
    shutil.rmtree(lying.location)
    with pytest.raises(TableNotFound):
        adopt(lying)
    lying.location.mkdir()
    with pytest.raises(IncompatibleData, match="no data file"):
        adopt(lying)
    with pytest.raises(LaketierError, match="a table is named by its folder"):
        laketier.adopt(tmp_path / "od d" / "x y", lake_format="localfile")


@pytest.mark.parametrize("change", ["grow", "new", "gone", "replace"])
def test_a_folder_that_changes_meanwhile_is_not_adopted(
    lying: Any, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = adoption.look_at

    def later(*args: Any) -> Any:
        found = look(*args)
        path = lying.location / "b 100%.parquet"
        if change == "grow":
            with path.open("ab") as file:
                file.write(b"x")
        elif change == "new":
            put(lying.location / "new.parquet", id=[1])
        elif change == "gone":
            path.unlink()
        else:
            put(lying.location / ".x", id=[3, 4], region=["x", "y"])
            os.replace(lying.location / ".x", path)
        return found

    monkeypatch.setattr(adoption, "look_at", later)
    with pytest.raises(IncompatibleTable, match="1 files changed while the folder was looked at"):
        adopt(lying)
    with pytest.raises(TableNotFound):
        lying.storage.catalog().load_table(lying.path)


def test_of_two_at_once_one_makes_the_table(lying: Any) -> None:
    made: list[Any] = []

    def run() -> None:
        try:
            made.append(adopt(lying).table.table_uuid)
        except IncompatibleTable as error:
            made.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {each for each in made if isinstance(each, str)} == {lying.info.table_uuid}
    assert lying.read_ids() == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("point", ["create.before_table_file"])
def test_killed_in_the_middle_there_is_no_table(lying: Any, point: str) -> None:
    code = f"import laketier; laketier.adopt({str(lying.location)!r}, lake_format='localfile')"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "LAKETIER_FAILPOINTS": f"{point}=kill"}, check=False
    )
    assert done.returncode == -signal.SIGKILL
    with pytest.raises(TableNotFound):
        lying.storage.catalog().load_table(lying.path)
    assert adopt(lying).rows == 5
    assert {tuple(ids) for ids in readers(lying).values()} == {(1, 2, 3, 4, 5)}


def test_a_footer_that_would_end_the_process_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "lake" / "db" / "events"
    folder.mkdir(parents=True)
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"n": pa.array([1, None, 3])}), sink)
    data = sink.getvalue().to_pybytes()
    at = data.index(b"\x15\x04\x25\x02\x18\x01n")
    (folder / "a.parquet").write_bytes(data[: at + 3] + b"\x00" + data[at + 4 :])
    with pytest.raises(LaketierError, match="levels of column 'n'"):
        laketier.adopt(folder, lake_format="localfile")
