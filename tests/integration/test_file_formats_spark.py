"""Spark reads files of lines of a local table with the line that `laketier status` prints."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from laketier_verification.lakes import append, lake_at

SCHEMA = pa.schema(
    [
        ("id", pa.int64()), ("flag", pa.bool_()), ("name", pa.string()), ("price", pa.decimal128(18, 6)),
        ("ratio", pa.float64()), ("day", pa.date32()), ("at", pa.timestamp("us", "UTC")), ("local", pa.timestamp("us")),
    ]
)  # fmt: skip
ROWS = [
    {
        "id": 1, "flag": True, "name": 'a "quoted", \\ text\non two lines', "price": Decimal("123456789012.345678"),
        "ratio": 0.1, "day": datetime.date(1, 1, 1), "local": datetime.datetime(2026, 11, 21, 8, 30, 15, 123456),
        "at": datetime.datetime(2026, 11, 21, 8, 30, 15, 1, tzinfo=datetime.UTC),
    },
    {
        "id": 2, "flag": False, "name": "", "price": Decimal("-0.000001"), "ratio": -0.0,
        "day": datetime.date(9999, 12, 31), "local": datetime.datetime(1969, 12, 31, 23, 59, 59, 1),
        "at": datetime.datetime(1969, 12, 31, tzinfo=datetime.UTC),
    },
    {"id": 3} | dict.fromkeys(SCHEMA.names[1:]),
]  # fmt: skip


@pytest.mark.parametrize(
    "options",
    [
        {"file-format": "json"},
        {"file-format": "json", "text-compression": "gzip"},
        {"file-format": "json", "text-compression": "zstd"},
        {"file-format": "csv"},
        {"file-format": "csv", "text-compression": "gzip"},
    ],
    ids=lambda options: "-".join(options.values()),
)
def test_spark_reads_the_files(tmp_path: Path, spark: Any, options: dict[str, str]) -> None:
    keys = {f"lake.localfile.{key}": value for key, value in options.items()}
    lake = lake_at(tmp_path / "lake", "localfile", **keys)
    append(lake, pa.RecordBatch.from_pylist(ROWS, schema=SCHEMA), epoch=0)
    info = lake.storage.catalog().load_table(lake.config.table)
    line = lake.plugin.open_with(info)["Spark"]
    found = eval(line, {"spark": spark}).orderBy("id").toArrow().cast(SCHEMA).to_pylist()  # noqa: S307 - our own line
    assert found == ROWS
    assert math.copysign(1, found[1]["ratio"]) == -1
