"""Rows that a detour loses: through Python's objects, text files, another order, or a batch of another form."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from laketier.spi import (
    AddColumn,
    Feature,
    FeatureNotSupported,
    IncompatibleData,
    Leaf,
    Op,
    ScanRequest,
    SnapshotNotFound,
    UnsupportedType,
    to_arrow,
)
from laketier_conformance.column_types import alike
from laketier_conformance.expect import expect, goes_well
from laketier_conformance.lake import SCHEMA, Lake, Table, batch, ids_of, read_split, token

MICROSECONDS = pa.timestamp("us")
DAY, SECOND = 86_400, 1_000_000
FIRST_DAY, LAST_DAY = -719_162, 2_932_896
"""The days of Python's `date.min` and `date.max`, counted from 1970."""
BEYOND: dict[str, tuple[pa.DataType, list[int], Any]] = {
    "days": (pa.date32(), [FIRST_DAY - 1, FIRST_DAY, LAST_DAY, LAST_DAY + 1, 4_000_000], date(9999, 12, 31)),
    "moments": (
        MICROSECONDS,
        [FIRST_DAY * DAY * SECOND - 1, 0, (LAST_DAY + 1) * DAY * SECOND - 1, (LAST_DAY + 1) * DAY * SECOND],
        datetime(9999, 12, 31, 23, 59, 59, 999999),
    ),
}
"""Of each type the numbers by which its values are stored, and the last value that Python has."""

TEXTS = (
    "NA", "N/A", "NaN", "nan", "NULL", "Null", "null", "None", "nil", "\\N", "-", "?", "#N/A",
    "007", "1e3", "1.0", "+1", "-0", "0x1F", "1_000", "true", "False", "t", "yes", "2026-11-21", "Infinity",
    "a\r\nb", "a\rb", "\r", "\n", "a\x0bb", "a\x0cb", "a\x1cb", "a\x85b", "a\u2028b", "a\u2029b", "\x1a", "\x7f",
    "\ufeffa", "a\ufeff", "\ufffd", "\uffff", "\U0010ffff", "a\u200b", "\u00a0a\u00a0", "\u0130\u0131", "\u00df",
    '"', '""', "'", "\\", "\\n", "\\u0041", "a,b", "a;b", "a\tb", "{}", "[]", "%s", "%41", "&amp;", "<a>", "$1", "{0}",
)  # fmt: skip
"""Text that a text file, a spreadsheet, a shell or a parser would take for something else."""


def _taken(table: Table, batches: Iterable[pa.RecordBatch]) -> bool:
    """Whether the format takes the batches. Refused, they leave nothing."""
    try:
        table.publish_arrow(batches, token(0))
    except IncompatibleData:
        expect(table.read().num_rows, 0, "the number of rows after a batch was refused")
        return False
    return True


def test_a_batch_of_many_different_texts(lake: Lake) -> None:
    """More than 16 bits can count, which some dictionaries of texts are made for."""
    count = (1 << 16) + 2
    rows = pa.record_batch({"id": pa.array(range(count)), "name": pa.array([f"{i:x}" for i in range(count)])})
    table = lake.create(rows.schema, "db.different")
    table.publish_arrow([rows], token(0))
    read = table.read().sort_by("id")
    assert read.equals(pa.Table.from_batches([rows])), (
        f"rows of {count} different texts come back as written: found "
        f"{len(set(read['name'].to_pylist()))} different ones of {read.num_rows} rows"
    )
    _read_while_a_row_comes(table, count)


def _read_while_a_row_comes(table: Table, count: int) -> None:
    """Who reads page by page, a row behind the last one, finds what came since the plan there. A format without
    snapshots looks before each page whether the table is as it was planned."""
    source, came = table.source, False
    plan, found = source.plan(ScanRequest(columns=("id",))), []
    with suppress(SnapshotNotFound):
        for split in plan.splits:
            for rows in read_split(source, split, plan.schema):
                found += rows["id"].to_pylist()
                if not came:
                    came = True
                    table.publish_arrow([pa.record_batch({"id": [count], "name": ["late"]})], token(1))
        assert sorted(found) == list(range(count)), (
            f"a plan of {count} rows is read, and a row comes after its first batch: found {len(found)} rows, of "
            f"which the last one is {max(found, default=None)}"
        )


def test_text_stays_text(lake: Lake) -> None:
    """Whatever else it looks like."""
    schema = pa.schema([SCHEMA.field("id"), ("name", pa.string()), ("bytes", pa.binary())])
    table = lake.create(schema, "db.texts")
    raw = [text.encode() for text in TEXTS[:-1]] + [bytes(range(256)) * 300]
    rows = pa.record_batch([pa.array(range(len(TEXTS))), pa.array(TEXTS), pa.array(raw, pa.binary())], schema=schema)
    table.publish_arrow([rows], token(0))
    read = table.read().sort_by("id")
    expect(read["name"].to_pylist(), list(TEXTS), "text that looks like something else")
    expect(read["bytes"].to_pylist(), raw, "bytes of text that looks like something else, and 76,800 bytes")


@pytest.mark.parametrize("name", BEYOND)
def test_time_does_not_end_with_pythons(lake: Lake, name: str) -> None:
    """Python's dates end with the years 1 and 9999, and Arrow's do not. Values beyond come back, or are refused when
    they are written. Whoever filters finds what a filter of the plain scan does."""
    kind, numbers, last = BEYOND[name]
    schema = pa.schema([SCHEMA.field("id"), ("v", kind)])
    table = lake.create(schema, f"db.{name}")
    plain = pa.int32() if kind == pa.date32() else pa.int64()
    values = pa.array(numbers, plain).cast(kind)
    with goes_well(f"{name} beyond those of Python are written, or refused as IncompatibleData, and read"):
        if not _taken(table, [pa.record_batch([pa.array(range(len(numbers))), values], schema=schema)]):
            return
        read = table.read().sort_by("id")
    found = read["v"].cast(kind).cast(plain).to_pylist()
    expect(found, numbers, f"{name} beyond those of Python, as numbers")
    for op in (Op.GT, Op.LE, Op.EQ, Op.NE):
        predicate = Leaf("v", op, last)
        expected = read.filter(to_arrow(predicate, read.schema))["id"].to_pylist()
        told = f"rows of {op.value} the last of Python's {name}"
        expect(sorted(table.read(filters=(predicate,))["id"].to_pylist()), expected, told)


@pytest.mark.needs(Feature.NESTED_TYPES)
def test_maps_keep_each_entry(lake: Lake) -> None:
    """In their order, and a key that is there twice with both values; or such a map is refused."""
    kind = pa.map_(pa.string(), pa.int64())
    schema = pa.schema([SCHEMA.field("id"), ("m", kind)])
    plain, twice = [("z", 1), ("a", None), ("\u00e9", 3)], [("k", 1), ("a", 2), ("k", 3)]
    columns: list[list[Any]] = [[plain, [], None], [plain, twice]]
    for number, maps in enumerate(columns):
        table = lake.create(schema, f"db.maps_{number}")
        rows = pa.record_batch([pa.array(range(len(maps))), pa.array(maps, kind)], schema=schema)
        taken = _taken(table, [rows])
        assert taken or twice in maps, "maps whose keys are there once are refused"
        if taken:
            expect(table.read().sort_by("id")["m"].to_pylist(), maps, "the entries of maps")


FIELDS = pa.struct([("z", pa.int64()), ("a", pa.int64()), ("M", pa.struct([("y", pa.int64()), ("b", pa.int64())]))])
"""Fields that are not in the order of their names."""


def _structs(lake: Lake, name: str) -> Table:
    return lake.create(pa.schema([SCHEMA.field("id"), ("s", FIELDS)]), name)


@pytest.mark.needs(Feature.NESTED_TYPES)
def test_fields_of_structs_keep_their_order(lake: Lake) -> None:
    table = _structs(lake, "db.structs")
    kind = table.info.schema.field("s").type
    assert alike(kind, FIELDS), f"the type of a column that was created as {FIELDS}: found {kind}"
    values = [{"z": 1, "a": 2, "M": {"y": 3, "b": 4}}, {"z": None, "a": 5, "M": None}, None]
    rows = pa.record_batch([pa.array(range(3)), pa.array(values, FIELDS)], schema=pa.schema(list(table.info.schema)))
    table.publish_arrow([rows], token(0))
    expect(table.read().sort_by("id")["s"].to_pylist(), values, "values of structs")


OTHERWISE: dict[str, tuple[pa.DataType, dict[str, Any], dict[str, Any] | None]] = {
    "in another order": (
        pa.struct([("a", pa.int64()), ("z", pa.int64()), ("M", pa.struct([("b", pa.int64()), ("y", pa.int64())]))]),
        {"a": 2, "z": 1, "M": {"b": 4, "y": 3}},
        {"z": 1, "a": 2, "M": {"y": 3, "b": 4}},
    ),
    "without one of them": (
        pa.struct([("a", pa.int64()), ("z", pa.int64())]),
        {"a": 2, "z": 1},
        {"z": 1, "a": 2, "M": None},
    ),
    "with one more": (pa.struct([*FIELDS.fields, ("more", pa.int64())]), {"z": 1, "a": 2, "M": None, "more": 7}, None),
    "by other names": (
        pa.struct([("p", pa.int64()), ("q", pa.int64()), ("M", FIELDS.field("M").type)]),
        {"p": 1},
        None,
    ),
}
"""A type of the batch, its value, and what is read of it; None where that would be less than was written."""


@pytest.mark.needs(Feature.NESTED_TYPES)
@pytest.mark.parametrize("how", OTHERWISE, ids=lambda how: how.replace(" ", "-"))
def test_fields_of_structs_go_by_name(lake: Lake, how: str) -> None:
    """A batch's fields are found by name, as its columns are, or the batch is refused. None is left out silently."""
    kind, value, expected = OTHERWISE[how]
    table = _structs(lake, "db.structs")
    rows = pa.record_batch([pa.array([0]), pa.array([value], kind)], names=["id", "s"])
    if _taken(table, [rows]):
        read = table.read()["s"].to_pylist()
        assert expected is not None, (
            f"a struct that has its fields {how} is refused: {value} was written, {read} is read"
        )
        expect(read, [expected], f"a struct of a batch that has its fields {how}")


@pytest.mark.needs(Feature.NESTED_TYPES)
def test_what_lies_below_a_null(lake: Lake) -> None:
    """Arrow keeps something where a struct or a list is null. It is no value, and counts for no other."""
    schema = pa.schema([SCHEMA.field("id"), ("s", pa.struct([("a", pa.int64())])), ("l", pa.list_(pa.int64()))])
    gone = pa.array([False, True, False, True])
    structs = pa.StructArray.from_arrays([pa.array([1, 2, 3, None])], fields=schema.field("s").type.fields, mask=gone)
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 4, 5, 6], pa.int32()), pa.array([1, 2, 8, 8, 3, 8]), mask=gone)
    table = lake.create(schema, "db.hidden")
    table.publish_arrow([pa.record_batch([pa.array(range(4)), structs, lists], schema=schema)], token(0))
    read = table.read().sort_by("id")
    expect(read["s"].to_pylist(), [{"a": 1}, None, {"a": 3}, None], "structs that are null, whatever lies below")
    expect(read["l"].to_pylist(), [[1, 2], None, [3], None], "lists that are null, whatever lies below")
    for name in ("s", "l"):
        found = table.read(filters=(Leaf(name, Op.IS_NULL),))["id"].to_pylist()
        expect(sorted(found), [1, 3], f"rows whose {name} is null, whatever lies below")


@pytest.mark.needs(Feature.NESTED_TYPES, Feature.ADD_COLUMN)
def test_a_struct_that_came_later_is_null_in_older_rows(table: Table) -> None:
    """It is no struct of nulls."""
    table.append(0)
    kind = pa.struct([("a", pa.int64())])
    table.lake.storage.catalog().alter_table(table.path, [AddColumn(pa.field("s", kind))])
    values = [{"a": 1}, {"a": None}, None]
    rows = batch(range(100, 103)).append_column("s", pa.array(values, kind))
    table.publish_arrow([rows], token(1))
    read = table.read(columns=("id", "s")).sort_by("id")["s"].to_pylist()
    expect(read, [None] * len(ids_of(0)) + values, "structs of rows from before the column came, and of later ones")
    nulls = table.read(columns=("id", "s"), filters=(Leaf("s", Op.IS_NULL),))["id"].to_pylist()
    expect(sorted(nulls), [*ids_of(0), 102], "rows whose struct is null, where the column was added")


def test_slices_that_begin_within_a_byte(lake: Lake) -> None:
    """Booleans, and what is null, are bits: a slice may begin at any of them."""
    count = 40
    values: dict[str, tuple[pa.DataType, Callable[[int], Any]]] = {
        "flag": (pa.bool_(), lambda i: i % 3 == 0),
        "maybe": (pa.bool_(), lambda i: None if i % 5 == 2 else i % 2 == 0),
        "small": (pa.int32(), lambda i: None if i % 7 == 3 else i),
        "day": (pa.date32(), lambda i: date.fromordinal(i + 700_000)),
        "bytes": (pa.binary(), lambda i: None if i % 4 == 1 else bytes([i]) * (i % 3)),
    }
    schema = pa.schema([SCHEMA.field("id"), *((name, kind) for name, (kind, _) in values.items())])
    columns = [pa.array([of(i) for i in range(count)], kind) for kind, of in values.values()]
    whole = pa.record_batch([pa.array(range(count)), *columns], schema=schema)
    table = lake.create(schema, "db.bits")
    ends = (0, 1, 4, 11, 12, 19, 33, count)
    table.publish_arrow([whole.slice(a, b - a) for a, b in itertools.pairwise(ends)], token(0))
    expect(table.read().sort_by("id"), pa.Table.from_batches([whole]), "rows of slices that begin within a byte")


PARTED: dict[str, tuple[pa.DataType, Callable[[int], Any]]] = {
    "vectors": (pa.list_(pa.float32(), 2), lambda i: [float(i), -float(i)]),
    "maps": (pa.map_(pa.string(), pa.int64()), lambda i: [(f"key {i}", i)] * (i % 2)),
    "lists": (pa.list_(pa.int64()), lambda i: [i] * (i % 3)),
    "structs": (pa.struct([("a", pa.int64()), ("b", pa.string())]), lambda i: {"a": i, "b": f"text {i}"}),
}


@pytest.mark.parametrize("name", PARTED)
def test_slices_of_what_has_parts(lake: Lake, name: str) -> None:
    """What lies below a slice of vectors, maps or lists is that of the whole column, from its first row on."""
    kind, of = PARTED[name]
    schema = pa.schema([SCHEMA.field("id"), ("v", kind)])
    try:
        table = lake.create(schema, "db.parted")
    except (FeatureNotSupported, UnsupportedType):
        return
    whole = pa.record_batch([pa.array(range(12)), pa.array([of(i) for i in range(12)], kind)], schema=schema)
    table.publish_arrow([whole.slice(a, b - a) for a, b in itertools.pairwise((0, 1, 4, 9, 12))], token(0))
    found, expected = (rows.sort_by("id")["v"].to_pylist() for rows in (table.read(), pa.Table.from_batches([whole])))
    expect(found, expected, f"{name} of slices of one batch")


def test_a_batch_without_columns_has_rows(lake: Lake) -> None:
    """Each is a row of nulls, where all columns may be null; or the batch is refused."""
    schema = pa.schema([("a", pa.int64()), ("b", pa.string())])
    table = lake.create(schema, "db.nulls")
    rows = pa.record_batch([pa.array([1, 2, 3]), pa.array(["x", "y", None])], schema=schema)
    if _taken(table, [rows, rows.select([])]):
        read = table.read()
        expect(read.num_rows, 6, "the number of rows of a batch of three, and of one of three without columns")
        expect(read["a"].null_count, 3, "the number of nulls of a batch of three without columns")


def test_batches_of_one_task_differ(table: Table) -> None:
    """In the columns that they have, their order, their types and what their schemas note; some have no rows. A query
    of several branches makes such batches. The first one says nothing about the others."""
    rows = batch(ids_of(0))
    few = batch(ids_of(1)).select(["id"])
    small = pa.record_batch({"value": pa.array([0.5], pa.float32()), "id": pa.array([77], pa.int16())})
    noted = batch(ids_of(2)).replace_schema_metadata({"pandas": "{}", "origin": "somewhere"})
    batches = [few.slice(0, 0), rows, small.slice(0, 0), few, small, noted, noted.slice(0, 0), batch([])]
    with goes_well("a task writes batches whose columns, order, types and notes differ: they fit the table's by name"):
        table.publish_arrow(batches, token(0))
    read = table.read().sort_by("id")
    ids = sorted([*ids_of(0), *ids_of(1), *ids_of(2), 77])
    expect(read["id"].to_pylist(), ids, "rows of one task whose batches have other columns, types and notes")
    whole = [*rows.to_pylist(), *noted.to_pylist(), {"id": 77, "name": None, "value": 0.5}]
    expected = {row["id"]: row for row in whole} | {i: {"id": i, "name": None, "value": None} for i in ids_of(1)}
    expect(read.to_pylist(), [expected[i] for i in ids], "values of one task whose batches have other columns")


def test_rows_that_are_equal_are_all_kept(table: Table) -> None:
    """A table without a key has each row that was written, as often as it was: of a batch, of a task, of two tasks."""
    one = batch([1, 1, 2, 1])
    results = [table.stage_arrow([one, one]), table.stage_arrow([one, one]), table.stage_arrow([batch([2])])]
    table.commit(results, token(0))
    expect(table.ids, sorted([1] * 12 + [2] * 5), "rows that are equal, of several batches and tasks")


RARE: tuple[pa.DataType, ...] = (
    pa.time64("ns"), pa.time32("s"), pa.duration("s"), pa.duration("ns"), pa.timestamp("ns", "UTC"),
    pa.decimal32(7, 2), pa.decimal64(12, 3), pa.decimal128(5, -2), pa.binary_view(), pa.month_day_nano_interval(),
    pa.dictionary(pa.int8(), pa.int64()), pa.dictionary(pa.int32(), pa.string(), ordered=True), pa.bool8(), pa.json_(),
    pa.run_end_encoded(pa.int32(), pa.int64()),
)  # fmt: skip


def test_a_rare_type_comes_back_or_is_refused(lake: Lake) -> None:
    """No type becomes another one silently: one of finer values, of other signs, or of fewer."""
    for number, kind in enumerate(RARE):
        schema = pa.schema([SCHEMA.field("id"), ("v", kind)])
        name = f"db.rare_{number}"
        try:
            table = lake.create(schema, name)
        except (UnsupportedType, FeatureNotSupported):
            continue
        declared = table.info.schema.field("v").type
        assert alike(declared, kind), f"{kind} silently became {declared}: refuse it with UnsupportedType"
        values = _of(kind)
        table.publish_arrow([pa.record_batch([pa.array(range(len(values))), values], schema=schema)], token(0))
        read = table.read()
        found = dict(zip(read["id"].to_pylist(), plainly(read["v"].combine_chunks()), strict=True))
        expected = values if declared.equals(kind) else values.cast(declared)
        expect(found, dict(enumerate(plainly(expected))), f"values of {kind}, to the last digit")


def _of(kind: pa.DataType) -> pa.Array:
    """Two values of a type that use its last digit, and a null."""
    numbers: list[int | None] = [1, -1_234_567, None]
    if pa.types.is_decimal(kind):
        return pa.array([None if n is None else Decimal(n).scaleb(-kind.scale) for n in (12, -34_567, None)], kind)
    if pa.types.is_time(kind):
        return pa.array([1, 80_000, None], pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind)
    if pa.types.is_duration(kind) or pa.types.is_timestamp(kind):
        return pa.array([1_795_249_815_123_456_789, *numbers[1:]], pa.int64()).cast(kind)
    if pa.types.is_dictionary(kind):
        known = pa.array(["b", "a"] if pa.types.is_string(kind.value_type) else [2, 1], kind.value_type)
        return pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0], kind.index_type), known, ordered=kind.ordered)
    if pa.types.is_run_end_encoded(kind):
        return pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], kind.run_end_type), pa.array([5, None]))
    if kind == pa.month_day_nano_interval():
        return pa.array([(1, -2, 3), (0, 0, -1), None], kind)
    if isinstance(kind, pa.JsonType):
        return pa.array(['{"b": 1, "a": 1.0}', "[]", None], pa.string()).cast(kind)
    if isinstance(kind, pa.Bool8Type):
        return pa.ExtensionArray.from_storage(kind, pa.array([1, 0, None], pa.int8()))
    return pa.array([b"\x00" * 20, b"", None], kind)


def plainly(column: pa.Array) -> list[str]:
    """Values as texts, in which no digit of theirs is lost."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        column = column.storage
    elif pa.types.is_run_end_encoded(kind):
        column = pc.run_end_decode(column)
    elif pa.types.is_timestamp(kind) or pa.types.is_duration(kind) or pa.types.is_time64(kind):
        return [f"{value} {kind.unit}" for value in column.cast(pa.int64()).to_pylist()]
    return [repr(value) for value in column.to_pylist()]
