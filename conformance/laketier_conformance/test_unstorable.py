"""Rows that a writer refuses for their own values. A service takes these aside and stores the others, so each is
refused in any company, and nothing else is refused as one. That an error of a step is none is asked in test_effects."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from laketier.spi import Feature, IncompatibleData, PartitionField, UnstorableRows, UnsupportedType
from laketier.tiering.unstorable import Trial
from laketier_conformance.expect import expect, goes_well, refused
from laketier_conformance.lake import SCHEMA, Lake, Table, token

FIRST_DAY, LAST_DAY = -719_162, 2_932_896
"""Those of Python's dates, counted from 1970."""
MICROSECONDS = 86_400_000_000
BEYOND = {
    "days": pa.array([0, FIRST_DAY - 1, LAST_DAY, LAST_DAY + 1], pa.int32()).cast(pa.date32()),
    "moments": pa.array([0, FIRST_DAY * MICROSECONDS - 1, (LAST_DAY + 1) * MICROSECONDS, 2**62]).cast(
        pa.timestamp("us")
    ),
}
KEYS = ["a", "", "A", "x" * 120, "x" * 300, None, "a/b", "..", "nul\0", "a "]

ALONE = "a row that is refused alone, as UnstorableRows,"


def test_nulls_where_none_may_be(table: Table) -> None:
    ids = [1, None, 2, 3, None, 4]
    _taken_aside(table, pa.record_batch({"id": pa.array(ids, pa.int64()), "name": [f"row {each}" for each in ids]}))


@pytest.mark.parametrize("name", BEYOND)
def test_times_beyond_those_of_python(lake: Lake, name: str) -> None:
    values = BEYOND[name]
    rows = pa.record_batch({"id": pa.array(range(len(values))), "v": values})
    schema = pa.schema([SCHEMA.field("id"), ("v", values.type)])
    _taken_aside(lake.create(schema, "db.plain"), rows)
    if lake.declares(Feature.PARTITIONING):
        try:
            table = lake.create(schema, "db.parts", partition_by=(PartitionField("v"),))
        except UnsupportedType:
            return
        _taken_aside(table, rows)


@pytest.mark.needs(Feature.PARTITIONING)
def test_values_that_name_no_partition(lake: Lake) -> None:
    rows = pa.record_batch({"id": pa.array(range(len(KEYS))), "key": pa.array(KEYS, pa.string())})
    schema = pa.schema([SCHEMA.field("id"), ("key", pa.string())])
    _taken_aside(lake.create(schema, "db.parts", partition_by=(PartitionField("key"),)), rows)


def _taken_aside(table: Table, rows: pa.RecordBatch) -> None:
    """As a service does it. What is refused as another `IncompatibleData` stops its table; nobody takes it aside."""
    trial = Trial(table.factory)
    try:
        trial.store([rows])
        return
    except UnstorableRows as error:
        said = str(error)
    except IncompatibleData:
        return
    try:
        found = trial.unstorable(rows)
    except UnstorableRows:
        raise
    except IncompatibleData:
        return
    assert found, (
        f"a batch of {rows.num_rows} rows was refused as UnstorableRows, so some of them are refused alone: found that "
        f"each of them is taken alone. It was refused by: {said}"
    )
    good = rows.filter(pa.array([place not in found for place in range(rows.num_rows)]))
    for place in found:
        one = rows.slice(place, 1)
        with refused(UnstorableRows, f"{ALONE} comes behind others, in a batch of its own"):
            table.stage_arrow([good, one])
        with refused(UnstorableRows, f"{ALONE} comes before others"):
            table.stage_arrow([one, good])
    with goes_well(f"{good.num_rows} rows are written of which none was refused alone, as UnstorableRows"):
        table.publish_arrow([good], token(0))
    kept: list[dict[str, Any]] = table.read(columns=("id",)).sort_by("id").to_pylist()
    expect([row["id"] for row in kept], good["id"].to_pylist(), f"rows after {len(found)} others were taken aside")
