"""Filters on each type: what a plan skips, takes or leaves to the reader never changes which rows are read."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from laketier.spi import (
    AddColumn,
    And,
    ConfigError,
    Feature,
    IncompatibleData,
    IncompatibleTable,
    LaketierError,
    Leaf,
    Not,
    Op,
    Or,
    PartitionField,
    Predicate,
    ScanRequest,
    Transform,
    UnsupportedType,
    to_arrow,
)
from laketier_conformance.expect import expect, refused, told
from laketier_conformance.lake import Lake, Table, finished, read_plan, token
from laketier_conformance.option_values import ending_early
from laketier_conformance.oracle import compare

MOMENT = datetime(2026, 11, 21, 8, 30, 15, 123456)
LONG = "a" * 40
HIGHEST = "\U0010ffff"
WITH_NUL = "b\x00"

# In order, so that files of neighbours hold ranges apart. Minima and maxima that a format cuts, rounds or leaves out
# are where rows get lost.
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "bool": (pa.bool_(), [False, False, True, True]),
    "int8": (pa.int8(), [-128, -1, 0, 1, 127]),
    "int16": (pa.int16(), [-(2**15), -1, 0, 2**15 - 1]),
    "int32": (pa.int32(), [-(2**31), -1, 0, 1, 2**31 - 1]),
    "int64": (pa.int64(), [-(2**63), -(2**53) - 1, 0, 2**53, 2**53 + 1, 2**63 - 1]),
    "uint8": (pa.uint8(), [0, 127, 128, 255]),
    "uint32": (pa.uint32(), [0, 2**31 - 1, 2**31, 2**32 - 1]),
    "uint64": (pa.uint64(), [0, 2**32, 2**63 - 1, 2**63, 2**64 - 1]),
    "float32": (pa.float32(), [-1.5, -0.0, 0.0, 0.5, 16777216.0]),
    "float64": (pa.float64(), [-1e300, -5e-324, 0.1, 0.30000000000000004, 1e300]),
    "decimal-9-2": (pa.decimal128(9, 2), [Decimal(text) for text in ("-1234567.89", "-0.01", "0.00", "9999999.99")]),
    "decimal-38-10": (
        pa.decimal128(38, 10),
        [
            Decimal("-1" + "0" * 27),
            Decimal("1E-10"),
            # The last of a file and the first of the next one: of 15 digits, the one is less and the other more.
            *(Decimal(text) for text in ("12345678901234512.5", "12345678901234567.5")),
            Decimal("9" * 27 + "8"),
            Decimal("9" * 28),
        ],
    ),
    "text": (
        pa.string(),
        [
            "",
            " ",
            "A",
            LONG[:16],
            LONG,
            LONG + "b",
            "a" * 15 + "\U0010ffff",
            "a" * 5000,
            WITH_NUL,
            "z",
            "é",
            "\U0001f986",
        ],
    ),
    # The last of a file is long, and ends before the surrogates: what is next above its beginning is behind them.
    "large-text": (
        pa.large_string(),
        ["", LONG, LONG + "b", "\ud7ff" * 20, "\ue000", "\uffff" * 20, "\U0010ffff" * 20],
    ),
    **{
        f"text-around-{n}": (
            pa.string(),
            ["a" * n, "a" * n + "b", "b" * (n - 1) + HIGHEST + "c", "é" * n + "z", "é" * n + HIGHEST],
        )
        for n in (16, 32, 64)
    },
    "binary-around-16": (pa.binary(), [b"a" * 16, b"a" * 17, b"\xff" * 16, b"\xff" * 16 + b"\x00", b"\xff" * 17]),
    "binary": (pa.binary(), [b"", b"\x00", b"\x7f" * 20, b"\x80", b"\xff" * 16, b"\xff" * 40]),
    "date32": (
        pa.date32(),
        [date(1, 1, 1), date(1582, 10, 10), date(1969, 12, 31), date(1970, 1, 1), date(9999, 12, 31)],
    ),
    "time64": (pa.time64("us"), [time(0, 0), time(0, 0, 0, 1), time(23, 59, 59, 999999)]),
    "timestamp-s": (
        pa.timestamp("s"),
        [datetime(1, 1, 1), datetime(1969, 12, 31, 23, 59, 59), datetime(1970, 1, 1), MOMENT.replace(microsecond=0)],
    ),
    "timestamp-ns": (
        pa.timestamp("ns"),
        [datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(1970, 1, 1), MOMENT, datetime(2261, 1, 1)],
    ),
    "timestamp-ms": (pa.timestamp("ms"), [MOMENT.replace(microsecond=us) for us in (0, 122000, 123000, 999000)]),
    "timestamp-us": (
        pa.timestamp("us"),
        [
            datetime(1, 1, 1),
            MOMENT,
            datetime(9999, 12, 31, 8, 30, 15, 123459),
            # A file begins with the second before 1970.
            *(datetime(1969, 12, 31, 23, 59, 59, 999998 + us) for us in (0, 1)),
            datetime(9999, 12, 31, 8, 30, 15, 123460),
        ],
    ),
    "timestamp-us-utc": (
        pa.timestamp("us", "UTC"),
        [
            datetime(1899, 12, 31, 23, 59, 59, 999999, UTC),
            MOMENT.replace(tzinfo=UTC),
            datetime(9999, 12, 31, 23, tzinfo=UTC),
        ],
    ),
    "timestamp-us-new-york": (
        pa.timestamp("us", "America/New_York"),
        [
            datetime(2026, 11, 1, 5, 30, tzinfo=UTC),
            datetime(2026, 11, 1, 6, 30, tzinfo=UTC),
            MOMENT.replace(tzinfo=UTC),
        ],
    ),
}
FAR = (0, -9_200 * 10**15, -62_135_596_801 * 10**6, 253_402_300_800 * 10**6, 8_200 * 10**15, 9_200 * 10**15)
"""Microseconds since 1970 of moments in 1970 and in the years -289567, 0, 10000, 261817 and 293506."""
ELSEWHERE = timezone(-timedelta(hours=5, minutes=45))
COMPARED = (Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE)
NAN = float("nan")
LONG_LISTS: dict[str, tuple[pa.DataType, Callable[[int], Any]]] = {
    "numbers": (pa.int64(), int),
    "text": (pa.string(), "key-{:05}".format),
}


@pytest.mark.usefixtures("far_from_utc")
@pytest.mark.parametrize("name", VALUES)
def test_filters_on_each_type(lake: Lake, name: str) -> None:
    """By each value and its neighbours, on files whose ranges are apart, on one that has them all, and on one of
    nulls."""
    kind, values = VALUES[name]
    schema = pa.schema([("id", pa.int64()), ("v", kind)])
    try:
        table = lake.create(schema, "db.filtered")
    except UnsupportedType:
        return
    with_nul = pa.record_batch([[0], [WITH_NUL]], schema=schema) if WITH_NUL in values else None
    if with_nul is not None and not table.takes(with_nul):
        values = [value for value in values if value != WITH_NUL]
    half = (len(values) + 1) // 2
    everything = []
    for epoch, part in enumerate((values[:half], values[half:], [*values, None], [None, None])):
        ids = [epoch * 100 + i for i in range(len(part))]
        rows = pa.record_batch([pa.array(ids, pa.int64()), pa.array(part, kind)], schema=schema)
        table.publish_arrow([rows], token(epoch))
        everything.append(rows)
    plain = table.read()
    expect(
        sorted(plain["id"].to_pylist()),
        sorted(pa.Table.from_batches(everything)["id"].to_pylist()),
        "rows of the plain scan",
    )
    source = table.source
    for predicate in _predicates(values):
        plan = source.plan(ScanRequest(filters=(predicate,)))
        found = sorted(finished(read_plan(source, plan), plan, None)["id"].to_pylist())
        expected = sorted(plain.filter(to_arrow(predicate, schema))["id"].to_pylist())
        expect(found, expected, f"rows of {predicate} on {kind}, as the plain scan has them")


@pytest.mark.needs(Feature.ADD_COLUMN)
def test_filters_on_a_column_that_came_later(lake: Lake) -> None:
    """Files of before do not have it, and their rows are null there."""
    old = pa.schema([("id", pa.int64()), ("v", pa.string())])
    table = lake.create(old, "db.grown")
    before = pa.record_batch([pa.array([0, 1], pa.int64()), pa.array(["a", "b"])], schema=old)
    table.publish_arrow([before], token(0))
    lake.storage.catalog().alter_table(table.path, [AddColumn(pa.field("more", pa.int64()))])
    new = old.append(pa.field("more", pa.int64()))
    everything = [before.append_column("more", pa.nulls(2, pa.int64()))]
    for epoch, (start, more) in enumerate([(2, [5, 6]), (4, [None, None]), (6, [7, None])], start=1):
        columns = [pa.array([start, start + 1], pa.int64()), pa.array(["a", None]), pa.array(more, pa.int64())]
        everything.append(pa.record_batch(columns, schema=new))
        table.publish_arrow([everything[-1]], token(epoch))
    null, five, none = Leaf("more", Op.IS_NULL), Leaf("more", Op.EQ, 5), Leaf("more", Op.EQ, 99)
    a: Predicate = Leaf("v", Op.EQ, "a")
    predicates: list[Predicate] = [
        null,
        five,
        Not(null),
        Not(five),
        Leaf("more", Op.NE, 5),
        Leaf("more", Op.LT, 6),
        And((null, a)),
    ]
    predicates += [Leaf("more", Op.NOT_NULL), Leaf("more", Op.GE, 6), Or((five, a)), Not(Or((five, a)))]
    # Each file decides these for all of its rows: also the one that has no such column, where they are null.
    predicates += [And((Not(none), Leaf("id", Op.LT, 4))), And((Leaf("more", Op.NE, 99), Leaf("id", Op.LT, 4)))]
    # Null and false is false, null or true is true.
    never, always = Leaf("id", Op.LT, 0), Leaf("id", Op.GE, 0)
    predicates += [Not(And((five, never))), Not(And((never, five))), Or((five, always)), Or((always, five))]
    predicates += [Not(And((five, null))), Not(Or((five, null)))]
    compare(table, pa.Table.from_batches(everything), [*predicates, Leaf("more", Op.IN, (5, 7)), And((Not(five), a))])


def test_filters_on_rows_of_several_batches(lake: Lake) -> None:
    """What is kept of a file is of all its rows: those of the first batch, of the last, and of those between."""
    schema = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("t", pa.string())])
    table = lake.create(schema, "db.batches")
    numbers: list[list[Any]] = [[5, None], [-9, 90], [6, 7]]
    texts: list[list[Any]] = [["m", None], ["a", "z"], ["n", "o"]]
    batches = []
    for start, (some, said) in enumerate(zip(numbers, texts, strict=True)):
        columns = [pa.array([2 * start, 2 * start + 1]), pa.array(some, pa.int64()), pa.array(said, pa.string())]
        batches.append(pa.record_batch(columns, schema=schema))
    table.publish_arrow(batches, token(0))
    predicates: list[Predicate] = [
        *(Leaf("n", op, value) for value in (-9, 5, 7, 90) for op in (Op.EQ, Op.LE, Op.GE)),
        *(Leaf("t", op, value) for value in ("a", "m", "o", "z") for op in (Op.EQ, Op.STARTS_WITH)),
        # Of a file whose least or greatest text begins so, and no other one does.
        *(Not(Leaf("t", Op.STARTS_WITH, value)) for value in ("a", "m", "z")),
        *(Leaf(name, op) for name in ("n", "t") for op in (Op.IS_NULL, Op.NOT_NULL)),
        Leaf("n", Op.IN, (90, 1000)),
        Not(Leaf("n", Op.EQ, 5)),
        # Of no row: with null in the list, nobody knows what is in none of it.
        *(Not(Leaf(name, Op.IN, (value, None))) for name, value in (("n", 5), ("n", 1000), ("t", "zz"), ("id", 1000))),
    ]
    compare(table, pa.Table.from_batches(batches), predicates)


def test_filters_on_a_file_of_several_groups(lake: Lake) -> None:
    """What is kept of a file is of all its groups: one of nulls, one of NaN, one with a text that is too long for the
    bounds of a group, and the least and the greatest value in the last ones."""
    schema = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("f", pa.float64()), ("t", pa.string())])
    try:
        options = {**lake.options, **ending_early(lake.plugin, files=False)}
        table = dataclasses.replace(lake, options=options).create(schema, "db.groups")
    except ConfigError:  # some numbers go with others only
        table = lake.create(schema, "db.groups")
    groups: list[tuple[Any, Any, Any]] = [
        (5, 5.0, "m"),
        (None, None, None),
        (6, NAN, "y" * 9000),
        (-9, -9.0, "a"),
        (90, 90.0, "n"),
    ]
    batches = []
    for number, (n, f, t) in enumerate(groups):
        ids = pa.array(range(100 * number, 100 * number + 60), pa.int64())
        columns = [pa.array([each] * 60, kind) for each, kind in zip((n, f, t), schema.types[1:], strict=True)]
        batches.append(pa.record_batch([ids, *columns], schema=schema))
    table.publish_arrow(batches, token(0))
    predicates: list[Predicate] = [
        *(Leaf("n", Op.EQ, value) for value in (-9, 5, 6, 90)),
        *(Leaf("f", Op.EQ, value) for value in (-9.0, 5.0, 90.0)),
        *(Leaf("t", Op.EQ, value) for value in ("a", "m", "n", "y" * 9000)),
        *(Leaf("t", Op.STARTS_WITH, value) for value in ("a", "n", "y")),
        *(Leaf(name, op, value) for name, op, value in (("n", Op.LT, 0), ("n", Op.GT, 6), ("t", Op.GT, "x"))),
        *(Leaf(name, op) for name in ("n", "f") for op in (Op.IS_NULL, Op.NOT_NULL)),
        Leaf("f", Op.NE, 5.0),
        Not(Leaf("n", Op.EQ, 5)),
        Not(Leaf("f", Op.LT, 90.0)),
    ]
    compare(table, pa.Table.from_batches(batches), predicates)


def test_filters_on_files_of_one_value(lake: Lake) -> None:
    """The least and the greatest value are the same, and a row with another one is there: NaN, which bounds leave out,
    or null."""
    schema = pa.schema([("id", pa.int64()), ("v", pa.float64()), ("t", pa.string())])
    table = lake.create(schema, "db.constants")
    nan = float("nan")
    everything = []
    for epoch, (numbers, texts) in enumerate(
        [([5.0, nan], ["a", "a"]), ([5.0, None], ["a", None]), ([5.0] * 2, ["b"] * 2)]
    ):
        ids = pa.array([2 * epoch, 2 * epoch + 1], pa.int64())
        rows = pa.record_batch([ids, pa.array(numbers, pa.float64()), pa.array(texts, pa.string())], schema=schema)
        table.publish_arrow([rows], token(epoch))
        everything.append(rows)
    leaves = [Leaf("v", op, 5.0) for op in (Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE)]
    leaves += [Leaf("t", op, "a") for op in (Op.EQ, Op.NE, Op.STARTS_WITH)]
    leaves += [Leaf("v", Op.IN, (5.0,)), Leaf("t", Op.IN, ("a", "c"))]
    nulls = [Leaf(name, op) for name in ("v", "t") for op in (Op.IS_NULL, Op.NOT_NULL)]
    compare(table, pa.Table.from_batches(everything), [*leaves, *map(Not, leaves), *nulls])


def test_filters_on_the_last_of_many_columns(lake: Lake) -> None:
    """Some formats keep statistics of the first columns alone (Delta: of 32), which says nothing about the others."""
    names = [f"c{number}" for number in range(40)]
    schema = pa.schema([("id", pa.int64()), *((name, pa.int64()) for name in names)])
    table = lake.create(schema, "db.wide")
    everything = []
    for epoch, values in enumerate([[1, 2], [2, 3], [None, None], [None, 9]]):
        ids = pa.array([2 * epoch, 2 * epoch + 1], pa.int64())
        rows = pa.record_batch([ids, *(pa.array(values, pa.int64()) for _ in names)], schema=schema)
        everything.append(rows)
        table.publish_arrow([rows], token(epoch))
    whole = pa.Table.from_batches(everything)
    for name in ("c31", "c39"):
        predicates: list[Predicate] = [Leaf(name, op, 2) for op in COMPARED]
        compare(table, whole, [*predicates, Leaf(name, Op.IS_NULL), Leaf(name, Op.NOT_NULL), Leaf(name, Op.IN, (3, 9))])


@pytest.mark.parametrize(
    "layout",
    [
        "plain",
        pytest.param("value", marks=pytest.mark.needs(Feature.PARTITIONING)),
        *(
            pytest.param(unit, marks=pytest.mark.needs(Feature.PARTITIONING, Feature.PARTITION_TRANSFORMS))
            for unit in ("year", "month", "day", "hour")
        ),
    ],
)
def test_moments_that_calendars_do_not_reach(lake: Lake, layout: str) -> None:
    """A column holds 290,000 years, and a calendar ends earlier: Python's with 9999, others with 262143. What has no
    year, day or partition for that is refused by the task; what is staged is published, and found."""
    schema = pa.schema([("id", pa.int64()), ("v", pa.timestamp("us"))])
    unit = Transform.IDENTITY if layout == "value" else layout
    by = () if layout == "plain" else (PartitionField("v", Transform(unit)),)
    try:
        table = lake.create(schema, "db.far", partition_by=by)
    except UnsupportedType:
        return
    kept: list[pa.RecordBatch] = []
    for number, micros in enumerate(FAR):
        rows = pa.record_batch([pa.array([number]), pa.array([micros]).cast(pa.timestamp("us"))], schema=schema)
        try:
            staged = table.stage_arrow([rows])
        except IncompatibleData:
            continue
        try:
            # What was refused before is no epoch.
            table.commit([staged], token(len(kept)))
        except LaketierError as error:
            pytest.fail(
                f"a task staged a moment {micros} microseconds after 1970, and the driver publishes it: expected no "
                f"error, found {told(error)}. What can't be stored is refused by the task, as IncompatibleData: an "
                "error of the commit ends every replay"
            )
        kept.append(rows)
    assert kept, "a moment of the year 1970 is staged"
    predicates: list[Predicate] = [
        Leaf("v", op, moment) for op in COMPARED for moment in (datetime(1970, 1, 1), MOMENT)
    ]
    compare(table, pa.Table.from_batches(kept), [*predicates, Leaf("v", Op.IS_NULL), Leaf("v", Op.NOT_NULL)])


def test_text_that_some_orders_take_for_the_same(lake: Lake) -> None:
    """Case, accents, blanks at the end and how a letter is composed: a database's collation may know none of these."""
    files: list[list[Any]] = [["A", "Z", "a"], ["a ", "b", "\u00e1", "a\u0301"], [None]]
    table, everything = _filled(lake, pa.string(), files)
    predicates: list[Predicate] = [
        Leaf("v", op, literal)
        for literal in ("a", "A", "a ", "\u00e1", "Z", "z")
        for op in (Op.EQ, Op.LT, Op.GT, Op.STARTS_WITH)
    ]
    compare(table, everything, [*predicates, Leaf("v", Op.IN, ("a", "z")), Not(Leaf("v", Op.IN, ("a", "z")))])


WRITTEN_OUT = (
    "it's", "it''s", 'a "b"', "a\\b", "ab", "a\\\\b", "a\\nb", "a\nb", "a\\'b", "a%b", "a_b", "a\\%b", "`a`",
    "a;b -- c", "{a}", "${a}", ":a", "?", "a\tb", "/* a */",
)  # fmt: skip


def test_text_that_queries_spell_otherwise(lake: Lake) -> None:
    """Who writes a literal into a text of a query has to know what the query's language takes for something else:
    quotes, backslashes, wildcards, parameters."""
    table, everything = _filled(lake, pa.string(), [WRITTEN_OUT[::2], WRITTEN_OUT[1::2], [None]])
    ops = (Op.EQ, Op.STARTS_WITH, Op.GE)
    predicates: list[Predicate] = [Leaf("v", op, literal) for literal in WRITTEN_OUT for op in ops]
    compare(table, everything, [*predicates, Leaf("v", Op.IN, WRITTEN_OUT[:9]), Not(Leaf("v", Op.IN, WRITTEN_OUT[:9]))])


def test_filters_by_integers_beyond_a_column(lake: Lake) -> None:
    """No row of 32 bits is one of them, and each is less than all that are above, and greater than all below. A reader
    that makes them fit takes them for the least and the greatest."""
    least, greatest = -(2**31), 2**31 - 1
    table, everything = _filled(lake, pa.int32(), [[least, -1], [0, greatest], [None], [least, greatest]])
    _filter_beyond(table, everything, [least - 1, greatest + 1], "a column of 32 bits")


def test_filters_by_numbers_beyond_decimals(lake: Lake) -> None:
    """Of more digits than a column has, infinite ones, and none: Python's own comparisons of decimals raise an error
    for NaN, and most libraries do where they write out an infinite one."""
    one, nine = Decimal("0.01"), Decimal("9999999.99")
    table, everything = _filled(lake, pa.decimal128(9, 2), [[-nine, -one], [Decimal(0), nine], [None], [-nine, nine]])
    beyond = [Decimal("10000000.00"), Decimal("Infinity"), Decimal("-Infinity"), Decimal("NaN"), float("inf")]
    _filter_beyond(table, everything, beyond, "a column of nine digits", turns=True)


@pytest.mark.parametrize(
    ("kind", "literals"), [(pa.float64(), [10**400]), (pa.float32(), [10**39, -1e300])], ids=["double", "float"]
)
def test_filters_by_numbers_beyond_floats(lake: Lake, kind: pa.DataType, literals: list[Any]) -> None:
    """Python's whole numbers have any size, and most libraries fail where they make one a float. A double may be
    infinite as a float."""
    table, everything = _filled(lake, kind, [[-1e30, -1.0], [0.0, 1e30], [None], [-1e30, 1e30]])
    _filter_beyond(table, everything, literals, f"a column of type {kind}")


def test_filters_by_numbers_between_floats(lake: Lake) -> None:
    """Whole numbers from 2**24 on and most fractions are none of a column of 32 bits, and lie between two that are. A
    reader that rounds them finds another row, and passes over a file whose rows are just below."""
    table, everything = _filled(lake, pa.float32(), [[2.0**24], [0.1], [None], [2.0**24 + 2, -0.1]])
    rows = [(row["id"], row["v"]) for row in everything.to_pylist() if row["v"] is not None]
    for literal in (2**24 + 1, 0.1, -0.1):
        wanted = {
            Leaf("v", Op.EQ, literal): set[int](),
            Leaf("v", Op.IN, (literal, 99.0)): set[int](),
            Leaf("v", Op.LT, literal): {each for each, value in rows if value < literal},
            Leaf("v", Op.GE, literal): {each for each, value in rows if value >= literal},
        }
        for leaf, ids in wanted.items():
            found = table.read(filters=(leaf,))["id"].to_pylist()
            expect(sorted(found), sorted(ids), f"rows of {leaf} on a column of 32 bits")


def test_filters_by_numbers_between_integers(lake: Lake) -> None:
    """A number with a fraction is none of a column of integers, and lies between two that are. A reader that cuts it to
    one of them passes over a file whose rows are that one."""
    table, everything = _filled(lake, pa.int64(), [[-2, -1], [0, 0], [1], [None], [2**53 + 1]])
    rows = [(row["id"], row["v"]) for row in everything.to_pylist() if row["v"] is not None]
    source = table.source
    for literal in (Decimal("0.5"), Decimal("-0.5"), Decimal(f"{2**53}.5"), 0.5, -1.5):
        below = {each for each, value in rows if value < literal}
        above = {each for each, _ in rows} - below
        less, greater = Leaf("v", Op.LT, literal), Leaf("v", Op.GT, literal)
        wanted: list[tuple[Predicate, set[int]]] = [(less, below), (Not(less), above), (greater, above)]
        for predicate, ids in [*wanted, (Not(greater), below), (Leaf("v", Op.EQ, literal), set[int]())]:
            plan = source.plan(ScanRequest(filters=(predicate,)))
            found = finished(read_plan(source, plan), plan, None)["id"].to_pylist()
            expect(sorted(found), sorted(ids), f"rows of {predicate} on integers")


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_filters_by_moments_between_moments(lake: Lake, unit: str) -> None:
    """A moment that is finer than a column's unit is none of the column, and lies between two that are. A reader that
    cuts it to one of them finds another row, and passes over a file whose rows are just below."""
    step = timedelta(seconds=1) if unit == "s" else timedelta(milliseconds=1)
    early, late = datetime(1969, 12, 31, 23, 59, 59), MOMENT.replace(microsecond=0)
    files: list[list[datetime | None]] = [[early], [early + step], [late], [None], [late + step, early]]
    try:
        table, everything = _filled(lake, pa.timestamp(unit), files)
    except UnsupportedType:
        return
    rows = [(row["id"], row["v"]) for row in everything.to_pylist() if row["v"] is not None]
    for literal in (early + step / 4, late + step / 4, late + step * 3 / 4):
        below = {each for each, value in rows if value < literal}
        above = {each for each, _ in rows} - below
        less, greater, none = Leaf("v", Op.LT, literal), Leaf("v", Op.GT, literal), Leaf("v", Op.IN, (literal,))
        wanted: list[tuple[Predicate, set[int]]] = [(less, below), (Not(less), above), (greater, above)]
        wanted += [(Not(greater), below), (none, set()), (Leaf("v", Op.NE, literal), below | above)]
        for predicate, ids in wanted:
            found = table.read(filters=(predicate,))["id"].to_pylist()
            expect(sorted(found), sorted(ids), f"rows of {predicate} on moments of {unit}")


def _filter_beyond(table: Table, everything: pa.Table, literals: list[Any], what: str, *, turns: bool = False) -> None:
    """``turns``: with each literal two of the operators, which take their turns."""
    rows = [(row["id"], row["v"]) for row in everything.to_pylist() if row["v"] is not None]
    for number, literal in enumerate(literals):
        true_of_all: tuple[Op, ...] = (Op.LT, Op.LE, Op.NE) if str(literal)[0] != "-" else (Op.GT, Op.GE, Op.NE)
        if literal != literal:  # NaN, which equals nothing
            true_of_all = (Op.NE,)
        wanted: list[tuple[Leaf, set[int]]] = [
            (Leaf("v", op, literal), {each for each, _ in rows if op in true_of_all})
            for op in (COMPARED[number % 3 :: 3] if turns else COMPARED)
        ]
        wanted.append((Leaf("v", Op.IN, (literal, 0)), {each for each, value in rows if value == 0}))
        wanted += [] if turns else [(Leaf("v", Op.IN, (literal,)), set())]
        for leaf, found in wanted:
            for predicate, ids in ((leaf, found), (Not(leaf), {each for each, _ in rows} - found)):
                try:
                    read = table.read(filters=(predicate,))["id"].to_pylist()
                except Exception as error:  # noqa: BLE001 - of any library
                    op = f"{type(predicate).__name__} {leaf.op.value}"
                    pytest.fail(f"{what} is filtered by a number beyond it ({op}): expected rows, found {told(error)}")
                expect(sorted(read), sorted(ids), f"rows of {predicate} on {what}")


def test_filters_by_nan_and_by_lists_with_nothing(lake: Lake) -> None:
    """NaN equals nothing, in a list neither. A null in a list makes its negation true for no row."""
    table, everything = _filled(lake, pa.float64(), [[NAN, 1.0], [1.0, 1.0], [None], [NAN], [2.0, 3.0]])
    lists = [(NAN,), (1.0, NAN), (1.0, None), (None,), ()]
    leaves = [*(Leaf("v", op, NAN) for op in COMPARED), *(Leaf("v", Op.IN, values) for values in lists)]
    # Whole numbers are literals of floats, too; of NaN, which no bounds have, `v > 0` and `v <= 0` are both false.
    leaves += [Leaf("v", Op.GT, 0), Leaf("v", Op.GE, 0), Leaf("v", Op.LT, 9), Leaf("v", Op.LE, 9)]
    compare(table, everything, [*leaves, *(Not(leaf) for leaf in leaves)])


def test_filters_within_filters(lake: Lake) -> None:
    """What no row of a file has of each part is had by some of both, and what is negated twice is asked for."""
    table, everything = _filled(lake, pa.int64(), [[1, 1], [2, 2], [None, None], [1, 2, None]])
    one, two, null = Leaf("v", Op.EQ, 1), Leaf("v", Op.EQ, 2), Leaf("v", Op.IS_NULL)
    first, below = Leaf("id", Op.EQ, 0), Leaf("v", Op.LT, 2)
    inner: list[Predicate] = [one, null, Leaf("v", Op.NOT_NULL), And((one, first)), And((one, two)), Or((one, first))]
    inner += [Or((one, two)), Or((null, two)), And((below, Or((first, null)))), Or((And((one, first)), null))]
    once = [Not(each) for each in inner]
    compare(table, everything, [*inner, *once, *(Not(each) for each in once), And((Not(one), Not(null))), Not(below)])


@pytest.mark.parametrize("name", LONG_LISTS)
def test_filters_by_lists_of_thousands(lake: Lake, name: str) -> None:
    """As a join by key makes them. What some library or database takes at once is no limit of a filter."""
    kind, of = LONG_LISTS[name]
    ids: list[list[Any]] = [[0, 2, 1], [6999, 7000, 3], [7001, None, 8000]]
    table, _ = _filled(lake, kind, [[None if i is None else of(i) for i in part] for part in ids])
    long = Leaf("v", Op.IN, tuple(of(i) for i in range(1, 7001, 2)))
    for predicate, said, expected in (
        (long, "3500 values", [2, 10, 12]),
        (Not(long), "none of 3500 values", [0, 1, 11, 20, 22]),
        (Leaf("v", Op.IN, (*long.value, of(8000), None)), "3501 values and null", [2, 10, 12, 22]),
    ):
        found = sorted(table.read(filters=(predicate,))["id"].to_pylist())
        expect(found, sorted(expected), f"rows of a filter by {said}")


@pytest.mark.needs(Feature.NESTED_TYPES)
def test_whether_a_nested_value_is_null(lake: Lake) -> None:
    """A value of nulls is none. Neither is an empty one. What files tell of a column behind nested ones is its own, and
    not of a field or an element."""
    inner = pa.struct([("a", pa.int64()), ("b", pa.string())])
    schema = pa.schema([("id", pa.int64()), ("s", inner), ("l", pa.list_(pa.int64())), ("v", pa.int64())])
    table = lake.create(schema, "db.nested")
    files: list[list[Any]] = [[{"a": None, "b": None}] * 2, [None, None], [{"a": 1, "b": None}, None]]
    lists: list[list[Any]] = [[[], [None]], [None, None], [[1], None]]
    behind: list[list[int | None]] = [[10, 11], [20, None], [30, 31]]
    everything = []
    for epoch, (values, several, single) in enumerate(zip(files, lists, behind, strict=True)):
        ids = pa.array([2 * epoch, 2 * epoch + 1], pa.int64())
        columns = [ids, pa.array(values, inner), pa.array(several, pa.list_(pa.int64())), pa.array(single, pa.int64())]
        everything.append(pa.record_batch(columns, schema=schema))
        table.publish_arrow([everything[-1]], token(epoch))
    tests: list[Predicate] = [Leaf(name, op) for name in ("s", "l", "v") for op in (Op.IS_NULL, Op.NOT_NULL)]
    tests += [Leaf("v", op, value) for op in (Op.EQ, Op.LT, Op.GE) for value in (11, 30)]
    compare(table, pa.Table.from_batches(everything), [*tests, *(Not(test) for test in tests)])


@pytest.mark.needs(Feature.NESTED_TYPES)
def test_a_name_with_a_dot_is_no_path(lake: Lake) -> None:
    """A filter names columns, and a dot in a name is a letter like any other."""
    inner = pa.struct([("a", pa.int64())])
    schema = pa.schema([("id", pa.int64()), ("s", inner), ("s.a", pa.int64())])
    nested = lake.create(pa.schema(list(schema)[:2]), "db.nested")
    with refused(ConfigError, "a filter names s.a, and the table has no such column but a struct s with a field a"):
        nested.source.plan(ScanRequest(filters=(Leaf("s.a", Op.EQ, 1),)))
    try:
        table = lake.create(schema, "db.dotted")
    except (UnsupportedType, IncompatibleTable, ConfigError):
        return
    everything = []
    for epoch, (inside, beside) in enumerate([(1, 2), (2, 1), (1, None)]):
        columns = [pa.array([epoch], pa.int64()), pa.array([{"a": inside}], inner), pa.array([beside], pa.int64())]
        everything.append(pa.record_batch(columns, schema=schema))
        table.publish_arrow([everything[-1]], token(epoch))
    predicates: list[Predicate] = [Leaf("s.a", Op.EQ, 1), Leaf("s.a", Op.LT, 2), Leaf("s.a", Op.IS_NULL)]
    compare(table, pa.Table.from_batches(everything), [*predicates, Not(predicates[0])])


def _filled(lake: Lake, kind: pa.DataType, files: Sequence[Sequence[Any]]) -> tuple[Table, pa.Table]:
    """A table with a file for each list of values ``v``, and all its rows. The ids of file 2 are 20, 21, 22..."""
    schema = pa.schema([("id", pa.int64()), ("v", kind)])
    table = lake.create(schema, "db.filled")
    batches = []
    for epoch, values in enumerate(files):
        ids = range(10 * epoch, 10 * epoch + len(values))
        batches.append(pa.record_batch([pa.array(ids, pa.int64()), pa.array(values, kind)], schema=schema))
        table.publish_arrow(batches[-1:], token(epoch))
    return table, pa.Table.from_batches(batches)


def _predicates(values: Sequence[Any]) -> Iterator[Predicate]:
    literals = list(dict.fromkeys([*values, *_neighbours(values)]))
    own = len(dict.fromkeys(values))
    for number, literal in enumerate(literals):
        # With a neighbour two of the operators: each takes its turn.
        yield from (Leaf("v", op, literal) for op in (COMPARED if number < own else COMPARED[number % 3 :: 3]))
        if isinstance(literal, str):
            yield Leaf("v", Op.STARTS_WITH, literal)
    yield Leaf("v", Op.IN, (values[0], values[-1]))
    yield Leaf("v", Op.IN, (values[0], None))
    if type(values[0]) is int:
        yield Leaf("v", Op.IN, (values[1] + 0.5, values[0], Decimal(values[-1]), 10**30))
    for value in (values[0], values[-1]):
        for same in _spelled_otherwise(value):
            yield from (Leaf("v", Op.EQ, same), Leaf("v", Op.IN, (same,)), Leaf("v", Op.GE, same))
    if isinstance(values[0], str):
        yield Leaf("v", Op.STARTS_WITH, "")
    yield Not(Leaf("v", Op.IN, (values[0], values[-1])))
    yield Not(Leaf("v", Op.LT, values[-1]))
    yield Leaf("v", Op.IS_NULL)
    yield Leaf("v", Op.NOT_NULL)


def _spelled_otherwise(value: Any) -> Iterator[Any]:
    """The same value as a literal that has another text: a digest of the text, or of other bytes, is another one."""
    if isinstance(value, Decimal) and value:
        yield from (value.normalize(), value * Decimal("1.00"))
    elif isinstance(value, datetime) and value.tzinfo is not None:
        yield value.astimezone(ELSEWHERE)
    elif isinstance(value, float) and value.is_integer():
        yield int(value)


def _neighbours(values: Sequence[Any]) -> Iterator[Any]:
    """Literals that no row has, close to those that some have."""
    for value in values:
        if isinstance(value, str) and len(value) > 10:
            yield value[:20] + "!"
        elif isinstance(value, bytes) and len(value) > 10:
            yield value + b"\x00"
        elif type(value) is int:
            yield from (value - 1, value + 1)  # beyond the least and the greatest: no value of the column's type
        elif isinstance(value, Decimal):
            yield from (value + Decimal("1E-15"), value - Decimal("1E-15"))  # of a scale that no column here has
        elif isinstance(value, datetime) and value.tzinfo is not None:
            yield value.astimezone(ELSEWHERE) + timedelta(microseconds=1)
