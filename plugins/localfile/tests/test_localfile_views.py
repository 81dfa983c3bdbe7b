"""Views of text and bytes, which Arrow neither filters nor takes from, in tables of each file format."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from laketier.spi import Leaf, Op, ScanRequest, WriterInitContext, new_attempt_id
from laketier.tables.scan import plan_scan
from laketier.tiering import TieringRound
from laketier_localfile.options import FileFormatName, LocalFileOptions

VIEW = pa.string_view()
STRUCT = pa.struct([pa.field("a", VIEW, nullable=False)])
SCHEMA = pa.schema([("id", pa.int64()), ("region", VIEW), ("list", pa.list_(VIEW)), ("struct", STRUCT)])
ROWS: list[dict[str, Any]] = [
    {"id": i, "region": f"r{i % 2}", "list": ["a", f"{i}"] if i % 3 else None, "struct": {"a": "b"} if i % 2 else None}
    for i in range(6)
]


@pytest.mark.parametrize("file_format", ["parquet", "json", "arrow"])
@pytest.mark.parametrize("partition_by", [(), ("region",)], ids=["plain", "partitioned"])
def test_rows_of_views_come_back(
    make_table: Callable[..., Any], file_format: str, partition_by: tuple[str, ...]
) -> None:
    options = LocalFileOptions(file_format=FileFormatName(file_format))
    table = make_table(schema=SCHEMA, partition_by=partition_by, options=options)
    writer = table.factory.create_writer(WriterInitContext(new_attempt_id()))
    batch = pa.RecordBatch.from_pylist(ROWS, schema=SCHEMA)
    for start in (0, 3):
        writer.write(batch.slice(start, 3))
    TieringRound(table.factory, token=None).commit([writer.complete()])
    assert sorted(table.scan().to_pylist(), key=lambda row: int(row["id"])) == ROWS
    scan = plan_scan(table.storage.source(table.info), ScanRequest(filters=(Leaf("id", Op.EQ, 4),)))
    assert [row for split in scan.plan.splits for batch in scan.read(split) for row in batch.to_pylist()] == [ROWS[4]]
