"""Columns that get a wider type or another name."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from laketier.spi import (
    AddColumn,
    Feature,
    IncompatibleTable,
    Leaf,
    Op,
    PartitionField,
    RenameColumn,
    SchemaChange,
    TableChanged,
    TableInfo,
    TableNotFound,
    TablePath,
    WidenColumn,
)
from laketier.tiering import RoundOutcome
from laketier_conformance.lake import SCHEMA, Lake, Table, ids_of, token

_NARROW = pa.schema(
    [("id", pa.int64()), ("count", pa.int32()), ("ratio", pa.float32()), ("price", pa.decimal128(10, 2))]
)
_WIDE = {"count": pa.int64(), "ratio": pa.float64(), "price": pa.decimal128(18, 2)}
WIDEN = [WidenColumn(name, kind) for name, kind in _WIDE.items()]
RENAME = [RenameColumn("name", "title")]

_SMALL: dict[str, list[Any]] = {
    "id": [1, 2, 3],
    "count": [7, None, -5],
    "ratio": [0.5, 0.25, None],
    "price": [Decimal("1.25"), None, Decimal("-3.00")],
}
_LARGE: dict[str, list[Any]] = {
    "id": [4, 5],
    "count": [2**40, -(2**40)],
    "ratio": [0.1, None],
    "price": [Decimal("9999999999999.99"), None],
}


@pytest.fixture
def numbers(lake: Lake) -> Table:
    """Narrow columns, and an epoch of rows."""
    table = lake.create(_NARROW, "db.numbers")
    table.publish_arrow([pa.RecordBatch.from_pydict(_SMALL, _NARROW)], token(0))
    return table


def _alter(table: Table, changes: list[SchemaChange]) -> TableInfo:
    return table.lake.storage.catalog().alter_table(table.path, changes)


@pytest.mark.needs(Feature.WIDEN_TYPE)
def test_wider_types(numbers: Table) -> None:
    altered = _alter(numbers, list(WIDEN))
    assert {name: altered.schema.field(name).type for name in _WIDE} == _WIDE
    assert altered.schema.names == _NARROW.names
    assert numbers.read().sort_by("id").to_pydict() == _SMALL
    numbers.publish_arrow([pa.RecordBatch.from_pydict(_LARGE, pa.schema(list(numbers.info.schema)))], token(1))
    read = numbers.read().sort_by("id")
    assert {name: read.schema.field(name).type for name in _WIDE} == _WIDE
    assert read.to_pydict() == {name: _SMALL[name] + _LARGE[name] for name in _SMALL}


@pytest.mark.needs(Feature.WIDEN_TYPE)
@pytest.mark.parametrize(
    ("filter", "ids"),
    [
        (Leaf("count", Op.GT, 2**31), [4]),
        (Leaf("count", Op.LE, 7), [1, 3, 5]),
        (Leaf("count", Op.EQ, 7), [1]),
        (Leaf("ratio", Op.EQ, 0.25), [2]),
        (Leaf("price", Op.LT, Decimal("1.25")), [3]),
        (Leaf("count", Op.IS_NULL), [2]),
    ],
    ids=str,
)
def test_filters_see_values_of_old_and_new_files(numbers: Table, filter: Leaf, ids: list[int]) -> None:
    _alter(numbers, list(WIDEN))
    numbers.publish_arrow([pa.RecordBatch.from_pydict(_LARGE, pa.schema(list(numbers.info.schema)))], token(1))
    assert sorted(numbers.read(filters=(filter,))["id"].to_pylist()) == ids


@pytest.mark.needs(Feature.WIDEN_TYPE)
def test_widening_twice_is_the_same_as_once(numbers: Table) -> None:
    first, second = _alter(numbers, list(WIDEN)), _alter(numbers, list(WIDEN))
    assert first.schema_fingerprint == second.schema_fingerprint
    assert first.snapshot_id == second.snapshot_id, "there was nothing to do"


@pytest.mark.needs(Feature.WIDEN_TYPE)
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(WidenColumn("id", pa.int32()), id="narrower"),
        pytest.param(WidenColumn("count", pa.string()), id="another-kind"),
        pytest.param(WidenColumn("price", pa.decimal128(18, 4)), id="another-scale"),
        pytest.param(WidenColumn("missing", pa.int64()), id="not-there"),
    ],
)
def test_a_type_that_is_not_wider_is_refused(numbers: Table, change: WidenColumn) -> None:
    with pytest.raises(IncompatibleTable):
        _alter(numbers, [WidenColumn("ratio", pa.float64()), change])
    assert numbers.info.schema.field("ratio").type == pa.float32(), "all changes, or none"


@pytest.mark.needs(Feature.WIDEN_TYPE, Feature.PARTITIONING)
def test_a_column_that_rows_are_laid_out_by_stays(lake: Lake) -> None:
    table = lake.create(_NARROW, "db.laid_out", partition_by=(PartitionField("count"),))
    with pytest.raises(IncompatibleTable, match="partition"):
        _alter(table, [WidenColumn("count", pa.int64())])


@pytest.mark.needs(Feature.WIDEN_TYPE)
def test_files_staged_before_a_wider_type_are_refused(numbers: Table) -> None:
    """Some libraries take such files, and read their values as nulls."""
    staged = numbers.stage_arrow([pa.RecordBatch.from_pydict(_SMALL, _NARROW)])
    _alter(numbers, list(WIDEN))
    with pytest.raises(TableChanged, match="schema"):
        numbers.commit([staged], token(1))
    assert numbers.read().sort_by("id").to_pydict() == _SMALL
    numbers.publish_arrow([pa.RecordBatch.from_pydict(_SMALL, _NARROW)], token(1))
    assert numbers.read()["count"].to_pylist() == _SMALL["count"] * 2


@pytest.mark.needs(Feature.RENAME_COLUMN)
def test_rename(table: Table) -> None:
    table.append(0)
    before = table.read().sort_by("id")
    altered = _alter(table, list(RENAME))
    assert altered.schema.names == ["id", "title", "value"]
    assert table.read().sort_by("id").equals(before.rename_columns(["id", "title", "value"]))
    rows = pa.record_batch({"id": pa.array([90], pa.int64()), "title": ["new"], "value": [1.0]})
    table.publish_arrow([rows], token(1))
    read = table.read().sort_by("id")
    assert read["title"].to_pylist() == [*before["name"].to_pylist(), "new"]
    for name, found in (("new", [90]), ("row 1", [1])):
        assert table.read(filters=(Leaf("title", Op.EQ, name),))["id"].to_pylist() == found


@pytest.mark.needs(Feature.RENAME_COLUMN)
def test_renaming_twice_is_the_same_as_once(table: Table) -> None:
    first, second = _alter(table, list(RENAME)), _alter(table, list(RENAME))
    assert first.schema_fingerprint == second.schema_fingerprint
    assert first.snapshot_id == second.snapshot_id, "there was nothing to do"


@pytest.mark.needs(Feature.RENAME_COLUMN)
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(RenameColumn("value", "id"), id="taken"),
        pytest.param(RenameColumn("value", "ID"), id="taken-but-for-case"),
        pytest.param(RenameColumn("missing", "other"), id="not-there"),
    ],
)
def test_a_name_that_does_not_fit_is_refused(table: Table, change: RenameColumn) -> None:
    with pytest.raises(IncompatibleTable):
        _alter(table, [*RENAME, change])
    assert table.info.schema.names == SCHEMA.names, "all changes, or none"


@pytest.mark.needs(Feature.RENAME_COLUMN)
def test_files_staged_before_a_rename_are_refused(table: Table) -> None:
    staged = table.staged(ids_of(0))
    _alter(table, list(RENAME))
    with pytest.raises(TableChanged, match="schema"):
        table.commit([staged], token(0))
    assert table.ids == []


@pytest.mark.needs(Feature.RENAME_COLUMN, Feature.ADD_COLUMN)
def test_the_old_name_may_be_used_again(table: Table) -> None:
    table.append(0)
    _alter(table, list(RENAME))
    _alter(table, [AddColumn(pa.field("name", pa.int64()))])
    rows = pa.record_batch({"id": pa.array([90], pa.int64()), "title": ["new"], "name": pa.array([5], pa.int64())})
    table.publish_arrow([rows], token(1))
    read = table.read().sort_by("id")
    assert read["name"].to_pylist() == [None] * 5 + [5]
    assert read["title"].to_pylist()[-2:] == ["row 4", "new"]


@pytest.mark.needs(Feature.RENAME_COLUMN, Feature.WIDEN_TYPE)
@pytest.mark.parametrize("order", [(0, 1), (2, 0)], ids=["new-name-first", "new-type-first"])
def test_rename_and_widen_in_one_step(numbers: Table, order: tuple[int, int]) -> None:
    wide = pa.int64()
    every: list[SchemaChange] = [RenameColumn("count", "total"), WidenColumn("total", wide), WidenColumn("count", wide)]
    changes = [every[index] for index in order]
    altered = _alter(numbers, changes)
    assert _alter(numbers, changes).snapshot_id == altered.snapshot_id, "there was nothing to do"
    assert (altered.schema.names[1], altered.schema.field(1).type) == ("total", pa.int64())
    assert numbers.read().sort_by("id")["total"].to_pylist() == _SMALL["count"]


@pytest.mark.needs(Feature.RENAME_COLUMN, Feature.TIME_TRAVEL)
def test_an_older_snapshot_has_the_old_name(table: Table) -> None:
    before = table.append(0).snapshot_id
    _alter(table, list(RENAME))
    table.publish_arrow([], token(1))
    assert table.read(snapshot_id=before).schema.names == SCHEMA.names


@pytest.mark.needs(Feature.RENAME_COLUMN)
def test_watermarks_survive_a_rename(table: Table) -> None:
    table.append(0)
    _alter(table, [RenameColumn("value", "weight")])
    assert table.watermark() is not None
    again = table.round(token(0), [])
    assert again.outcome is RoundOutcome.ALREADY_THERE


@pytest.mark.needs(Feature.WIDEN_TYPE)
def test_watermarks_survive_a_wider_type(numbers: Table) -> None:
    _alter(numbers, list(WIDEN))
    assert numbers.round(token(0), []).outcome is RoundOutcome.ALREADY_THERE
    numbers.publish_arrow([pa.RecordBatch.from_pydict(_LARGE, pa.schema(list(numbers.info.schema)))], token(1))
    assert numbers.round(token(1), []).outcome is RoundOutcome.ALREADY_THERE


@pytest.mark.needs(Feature.WIDEN_TYPE)
def test_widening_what_is_not_there(numbers: Table) -> None:
    with pytest.raises(TableNotFound):
        numbers.lake.storage.catalog().alter_table(TablePath("db", "missing"), [WIDEN[0]])
    _alter(numbers, [WIDEN[0]])
