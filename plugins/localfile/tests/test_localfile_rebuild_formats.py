"""Tables of JSON, CSV, Arrow and Vortex files whose manifests were deleted or damaged."""

from __future__ import annotations

import datetime
import decimal
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from laketier.spi import AddColumn, CorruptTable, IncompatibleData, RolledBack
from laketier.tiering import pipelines
from laketier_localfile.options import FileFormatName, LocalFileOptions, TextCompression

FORMATS = {
    "json": LocalFileOptions(file_format=FileFormatName.JSON),
    "json.gz": LocalFileOptions(file_format=FileFormatName.JSON, text_compression=TextCompression.GZIP),
    "json.zst": LocalFileOptions(file_format=FileFormatName.JSON, text_compression=TextCompression.ZSTD),
    "csv": LocalFileOptions(file_format=FileFormatName.CSV),
    "csv.zst": LocalFileOptions(file_format=FileFormatName.CSV, text_compression=TextCompression.ZSTD),
    "arrow": LocalFileOptions(file_format=FileFormatName.ARROW),
    "vortex": LocalFileOptions(file_format=FileFormatName.VORTEX),
}
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("region", pa.string()),
        ("score", pa.float64()),
        ("price", pa.decimal128(9, 2)),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("raw", pa.binary()),
        ("yes", pa.bool_()),
    ]
)
ROWS = [
    {
        "id": 1,
        "region": 'two\nlines, "quoted"',
        "score": float("inf"),
        "price": decimal.Decimal("1.50"),
        "day": datetime.date(2026, 1, 1),
        "at": datetime.datetime(2026, 1, 1, 1, 2, 3, 4, datetime.UTC),
        "raw": b"\x00\xff",
        "yes": True,
    },
    {"id": 2, "region": "007", "score": 0.1},
    {"id": 3, "region": "", "score": -0.0},
]


@pytest.fixture(params=list(FORMATS))
def table(request: Any, make_table: Callable[..., Any]) -> Any:
    return make_table(schema=SCHEMA, options=FORMATS[request.param])


def rebuild(table: Any, **options: Any) -> Any:
    return table.storage.adoption().rebuild(table.path, **options)


def rows(table: Any) -> list[dict[str, Any]]:
    return sorted(table.scan().to_pylist(), key=lambda row: int(row["id"]))


def lose(table: Any) -> None:
    shutil.rmtree(table.location / "_laketier_manifests")


def test_a_damaged_chain_tells_the_types(table: Any) -> None:
    table.round(0, ROWS)
    table.storage.catalog().alter_table(table.path, [AddColumn(pa.field("note", pa.string()))])
    table.schema = table.info.schema
    table.round(1, [{"id": 9, "note": "new"}])
    before = rows(table)
    files = {path: path.read_bytes() for path in table.plain_files()}
    table.log.path(3).write_bytes(b"damaged")
    with pytest.raises(CorruptTable, match="damaged"):
        table.round(2, [{"id": 10}])
    made = rebuild(table, leave_staged=True)
    assert (made.rows, table.info.schema) == (4, SCHEMA.append(pa.field("note", pa.string())))
    assert rows(table) == before
    assert {path: path.read_bytes() for path in table.plain_files()} == files
    with pytest.raises(RolledBack):
        table.round(2, [{"id": 10}])
    pipelines.adopt(table.factory, "p", run="run", epoch=1)
    assert table.round(1, [{"id": 9}]).outcome.value != "committed"
    table.round(2, [{"id": 10, "region": "x"}])
    assert [row["id"] for row in rows(table)] == [1, 2, 3, 9, 10]


TEXTS = {"number": "007", "float": "1.50", "day": "2026-01-01", "flag": "true", "moment": "2026-01-01 01:02:03"}


@pytest.mark.parametrize("way", FORMATS)
@pytest.mark.parametrize("first", ["id", "number"])
def test_texts_that_look_like_something_else_stay_texts(make_table: Callable[..., Any], way: str, first: str) -> None:
    """Whichever columns they are in: as numbers they would be other values without a word, and as moments
    be written otherwise."""
    names = sorted(["id", *TEXTS], key=lambda name: name != first)
    schema = pa.schema([(name, pa.int64() if name == "id" else pa.string()) for name in names])
    table = make_table(schema=schema, options=FORMATS[way])
    table.round(0, [{"id": 1, **TEXTS}, {"id": 2, "float": "2.50"}, {"id": 3, **TEXTS}])
    before = rows(table)
    lose(table)
    rebuild(table)
    assert table.info.schema.types == schema.types
    assert rows(table) == before


def test_data_files_alone_tell_what_they_can(table: Any) -> None:
    table.round(0, ROWS)
    before = rows(table)
    lose(table)
    made = rebuild(table)
    tells = table.options.file_format in (FileFormatName.ARROW, FileFormatName.VORTEX)
    assert any("given by --type" in sentence for sentence in made.told) is not tells
    assert [row["id"] for row in rows(table)] == [1, 2, 3]
    assert [row["region"] for row in rows(table)] == [row["region"] for row in ROWS]
    assert table.info.schema.field("region").type == pa.string()
    lose(table)
    rebuild(table, types={field.name: field.type for field in SCHEMA})
    assert table.info.schema == SCHEMA
    assert rows(table) == before


@pytest.mark.parametrize("lost", [1, 10])
def test_a_file_without_its_end_is_no_whole_file(table: Any, lost: int) -> None:
    """Its digest is lost with the manifests, and rows would be, too, without a word."""
    table.round(0, ROWS)
    [file] = table.plain_files()
    whole = file.read_bytes()
    file.write_bytes(whole[:-lost])
    lose(table)
    with pytest.raises(IncompatibleData, match="1 of 1 files can't be read") as told:
        rebuild(table)
    assert file.name in str(told.value.why)
    file.write_bytes(whole)
    assert rebuild(table).rows == len(ROWS)


def test_a_type_that_the_files_do_not_fit(make_table: Callable[..., Any]) -> None:
    table = make_table(schema=SCHEMA, options=FORMATS["csv"])
    table.round(0, ROWS)
    lose(table)
    with pytest.raises(IncompatibleData, match="1 of 1 files can't be read"):
        rebuild(table, types={"region": pa.date32()})
    assert rebuild(table).rows == 3


@pytest.mark.parametrize("name", ["json", "arrow"])
def test_partitions_and_files_of_others_and_folds(make_table: Callable[..., Any], name: str) -> None:
    schema = pa.schema([("id", pa.int64()), ("region", pa.string())])
    table = make_table(schema=schema, options=FORMATS[name], partition_by=("region",))
    for epoch in range(3):
        table.round(epoch)
    before = rows(table)
    lose(table)
    made = rebuild(table)
    assert [str(each) for each in made.table.descriptor.partition_by] == ["region"]
    assert rows(table) == before
    pipelines.adopt(table.factory, "p", run="run", epoch=2)
    table.options = LocalFileOptions(fold_files=1)
    for epoch in range(3, 5):
        table.round(epoch)
    assert len(rows(table)) == 20


def test_files_of_several_formats_move_nothing(make_table: Callable[..., Any]) -> None:
    table = make_table(options=FORMATS["json"])
    table.round(0)
    for path in table.plain_files():
        shutil.copy(path, path.with_name("part-00000-0198f2d5c0de7000800000000000abcd-0000.csv"))
    table.log.path(0).write_bytes(b"")
    table.options = LocalFileOptions()
    before = sorted(table.location.rglob("*"))
    with pytest.raises(IncompatibleData, match="files of several formats"):
        rebuild(table)
    assert sorted(table.location.rglob("*")) == before
    Path(table.location, "part-00000-0198f2d5c0de7000800000000000abcd-0000.csv").unlink()
    assert rebuild(table).rows == 4
