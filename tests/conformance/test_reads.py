"""How the suite reads a split: a reader that never ends is told, and a cursor that gives a row at a time is none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pyarrow as pa
import pytest

from laketier.spi import LakeSource, LakeSplit, ScanPlan
from laketier_conformance.lake import MOST_BATCHES, read_plan
from laketier_conformance.test_scale import MOST, ROWS

SCHEMA = pa.schema([("id", pa.int64())])
ROW = pa.record_batch([pa.array([1])], schema=SCHEMA)


class Cursor:
    """A row in each batch."""

    def __init__(self, rows: int) -> None:
        self.rows = rows

    def read(self, split: LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        return (ROW for _ in range(self.rows))


def _read(rows: int, most: int) -> int:
    plan = ScanPlan(snapshot_id=1, schema=SCHEMA, splits=(LakeSplit(index=0),))
    return len(read_plan(cast("LakeSource", Cursor(rows)), plan, most))


def test_a_table_of_a_million_rows_may_come_row_by_row() -> None:
    assert MOST >= ROWS
    assert _read(MOST_BATCHES + 1, MOST) == MOST_BATCHES + 1


def test_of_other_tables_so_many_batches_are_no_end() -> None:
    assert _read(MOST_BATCHES, MOST_BATCHES) == MOST_BATCHES
    with pytest.raises(AssertionError, match=f"expected {MOST_BATCHES} batches at most"):
        _read(MOST_BATCHES + 1, MOST_BATCHES)
