"""Values that are long or deep, tables that are wide, rows without a value, and columns that are all but the same: what
a page, a counter, a statement or a sample of a library may not hold."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from laketier.spi import Feature, IncompatibleData, IncompatibleTable, LaketierError, Leaf, Op, UnsupportedType
from laketier_conformance.expect import expect, goes_well
from laketier_conformance.lake import SCHEMA, Lake, Table, token

LONG = (1 << 24) + 3
"""Bytes of a value: more than three of them can count, as lengths of texts of databases do."""
MANY = 70_000
"""Items of a list: more than two bytes can count."""
COLUMNS = 1_100
"""More than databases commonly have, or let a statement name."""


def _written(table: Table, rows: pa.RecordBatch, what: str) -> bool:
    """Whether the format takes the rows. Refused, they leave none."""
    with goes_well(f"{what} is written, or refused as IncompatibleData", but=(IncompatibleData,)):
        try:
            table.publish_arrow([rows], token(0))
        except IncompatibleData:
            expect(table.read().num_rows, 0, f"the number of rows after {what} was refused")
            return False
    return True


def test_values_of_many_bytes(lake: Lake) -> None:
    """A text, and bytes, which come back to the last one; or such a row is refused."""
    for kind in (pa.string(), pa.binary()):
        schema = pa.schema([SCHEMA.field("id"), ("v", kind)])
        table = lake.create(schema, f"db.long_{kind}")
        values = pa.array([b"x" * LONG + b"!", b"short"], pa.binary()).cast(kind)
        rows = pa.record_batch([pa.array([0, 1]), values], schema=schema)
        what = f"a value of {LONG + 1} bytes as {kind}"
        if _written(table, rows, what):
            read = table.read().sort_by("id")["v"].combine_chunks()
            expect(pc.binary_length(read).to_pylist(), [LONG + 1, 5], f"the bytes that are read of {what}")
            assert read.equals(values), f"{what} comes back to its last byte"


@pytest.mark.needs(Feature.NESTED_TYPES)
def test_a_list_of_many_items(lake: Lake) -> None:
    """And a map of as many entries."""
    schema = pa.schema([SCHEMA.field("id"), ("l", pa.list_(pa.int64())), ("m", pa.map_(pa.int64(), pa.int64()))])
    try:
        table = lake.create(schema, "db.lists")
    except UnsupportedType:  # maps
        schema = schema.remove(2)
        table = lake.create(schema, "db.lists")
    items = pa.array(range(MANY + 1), pa.int64())
    offsets = pa.array([0, MANY, MANY + 1], pa.int32())
    columns = [pa.array([0, 1]), pa.ListArray.from_arrays(offsets, items)]
    if len(schema) == 3:
        columns.append(pa.MapArray.from_arrays(offsets, items, items))
    rows = pa.record_batch(columns, schema=schema)
    what = f"a list of {MANY} items"
    if _written(table, rows, what):
        read = table.read().sort_by("id")
        for name in schema.names[1:]:
            told = f"the items that are read of {what}, and of one of one, as {schema.field(name).type}"
            column = read[name].combine_chunks()
            lengths = pc.list_value_length(column) if name == "l" else pa.array([len(each) for each in column])
            expect(lengths.to_pylist(), [MANY, 1], told)
            assert column.to_pylist() == rows[name].to_pylist(), f"{what} comes back with the same items: {name}"


def test_a_table_of_many_columns(lake: Lake) -> None:
    """Each has its values, whichever the reader asks for; or the table is refused."""
    names = [f"c{number}" for number in range(COLUMNS)]
    schema = pa.schema([SCHEMA.field("id"), *((name, pa.int64()) for name in names)])
    what = f"a table of {COLUMNS} columns"
    refusals = (UnsupportedType, IncompatibleTable)
    try:
        with goes_well(f"{what} is made, or refused as UnsupportedType or IncompatibleTable", but=refusals):
            table = lake.create(schema, "db.wide")
    except refusals:
        expect(lake.storage.catalog().list_tables(), [], f"the tables of the warehouse after {what} was refused")
        return
    columns = [pa.array([number, None, -number]) for number in range(COLUMNS)]
    rows = pa.record_batch([pa.array(range(3)), *columns], schema=schema)
    table.publish_arrow([rows], token(0))
    read = table.read().sort_by("id")
    expect(read.schema.names, schema.names, f"the columns of {what}")
    other = [name for name in schema.names if not read[name].combine_chunks().equals(rows[name])]
    expect(other, [], f"the columns of {what} whose values are others than were written")
    last = table.read(columns=("id", names[-1]), filters=(Leaf(names[-1], Op.LT, 0),))
    expect(last.to_pylist(), [{"id": 2, names[-1]: 1 - COLUMNS}], f"rows of {what}, by its last column")
    nulls = table.read(columns=("id", names[-1]), filters=(Leaf(names[-1], Op.IS_NULL),))["id"].to_pylist()
    expect(nulls, [1], f"rows of {what} whose last column is null")


def test_rows_without_a_value(lake: Lake) -> None:
    """A row of nulls is a row: beside others, alone in its batch, and alone in its file."""
    schema = pa.schema([("a", pa.int64()), ("b", pa.string())])
    table = lake.create(schema, "db.empty")
    of = {"beside": ([1, None, None, 4], ["x", None, "y", None]), "batch": ([None, None], [None, None])}
    beside, alone = (
        pa.record_batch([pa.array(a, pa.int64()), pa.array(b, pa.string())], schema=schema) for a, b in of.values()
    )
    table.commit([table.stage_arrow([beside, alone]), table.stage_arrow([alone])], token(0))
    read = sorted(table.read().to_pylist(), key=repr)
    expected = sorted([*beside.to_pylist(), *alone.to_pylist() * 2], key=repr)
    expect(read, expected, "rows, some of which have no value in any column, or none in the first")
    found = table.read(filters=(Leaf("a", Op.IS_NULL),)).num_rows
    expect(found, 6, "the number of rows whose first column is null")


def test_values_that_are_the_same_but_for_one(lake: Lake) -> None:
    """A sample of a column may show one value alone."""
    count, odd = 5_000, 2_711
    pairs: dict[str, tuple[pa.DataType, Any, Any]] = {
        "whole": (pa.int64(), 7, 8),
        "real": (pa.float64(), 0.5, 0.25),
        "text": (pa.string(), "same", "other"),
        "flag": (pa.bool_(), False, True),
        "none": (pa.int64(), None, 1),
        "some": (pa.string(), "there", None),
    }
    schema = pa.schema([SCHEMA.field("id"), *((name, kind) for name, (kind, _, _) in pairs.items())])
    columns = [pa.array([other if at == odd else same for at in range(count)], k) for k, same, other in pairs.values()]
    rows = pa.record_batch([pa.array(range(count)), *columns], schema=schema)
    table = lake.create(schema, "db.same")
    table.publish_arrow([rows], token(0))
    read = table.read().sort_by("id")
    for name, (_, same, other) in pairs.items():
        found = {at: value for at, value in enumerate(read[name].to_pylist()) if value != same}
        expect(found, {odd: other}, f"the values of a column that are not {same!r}, of {count} rows, by their row")


INNERMOST = pa.list_(pa.list_(pa.struct([("l", pa.list_(pa.struct([("a", pa.int64())])))])))
DEEP: list[Any] = [
    [[{"l": [{"a": 1}, None, {"a": None}]}, {"l": []}, {"l": None}, None], [], None],
    [],
    None,
    [None, [None], [{"l": None}], [{"l": [None]}]],
]
"""On each level what is null, what is empty, and what holds nothing but a null."""


@pytest.mark.needs(Feature.NESTED_TYPES)
def test_nothing_on_the_inner_levels(lake: Lake) -> None:
    """An empty list, a list of null and null itself are three values on each level; or so deep a type is refused."""
    schema = pa.schema([SCHEMA.field("id"), ("v", INNERMOST)])
    try:
        table = lake.create(schema, "db.deep")
    except UnsupportedType:
        if lake.declares(Feature.NESTED_TYPES):
            return
        raise  # the run judges the refusal of what is declared unsupported
    rows = pa.record_batch([pa.array(range(len(DEEP))), pa.array(DEEP, INNERMOST)], schema=schema)
    if _written(table, rows, f"what is null or empty within {INNERMOST}"):
        found = table.read().sort_by("id")["v"].to_pylist()
        expect(found, DEEP, f"what is null or empty within {INNERMOST}")


@pytest.mark.needs(Feature.NESTED_TYPES)
def test_fields_whose_names_differ_by_case(lake: Lake) -> None:
    """Each keeps its values, within a struct of a list, too; or such a type is refused."""
    fields = pa.struct([("a", pa.int64()), ("A", pa.int64()), ("é", pa.int64()), ("É", pa.int64())])
    schema = pa.schema([SCHEMA.field("id"), ("s", fields), ("l", pa.list_(fields))])
    try:
        table = lake.create(schema, "db.cases")
    except LaketierError:
        if lake.declares(Feature.NESTED_TYPES):
            return
        raise
    value = {"a": 1, "A": 2, "é": 3, "É": 4}
    rows = pa.record_batch(
        [pa.array([0]), pa.array([value], fields), pa.array([[value]], pa.list_(fields))], schema=schema
    )
    if _written(table, rows, "a struct whose fields differ by case"):
        expect(table.read().to_pylist(), rows.to_pylist(), "the fields of a struct whose names differ by case")
