"""Reading a file of many columns costs as much as its columns, and not their square."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from calls import counted_calls
from laketier.spi import ScanRequest
from laketier_conformance.lake import Lake, read_plan, token

COLUMNS = 400


@pytest.mark.parametrize("format", ["localfile", "iceberg", "delta"])
def test_no_column_looks_at_all_columns(format: str, tmp_path: Path) -> None:
    schema = pa.schema([(f"c{number}", pa.int32()) for number in range(COLUMNS)])
    table = Lake(format, str(tmp_path / "warehouse"), {}).create(schema)
    rows = pa.record_batch([pa.array([1], pa.int32())] * COLUMNS, schema=schema)
    table.publish_arrow([rows], token(0))
    source = table.source
    plan = source.plan(ScanRequest())
    with counted_calls() as calls:
        read = read_plan(source, plan)
    assert read.num_columns == COLUMNS
    name, most = calls.most_common(1)[0]
    assert most < 20 * COLUMNS, f"{name} is called {most} times for {COLUMNS} columns"
    assert calls["schema_arrow"] < 10, "the schema of the file is made anew for each column"
