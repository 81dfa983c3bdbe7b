"""Which files may hold a row, by what the log says of them. Unknown means "may"."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from laketier.spi import And, IncompatibleTable, Leaf, Not, Op, Or, Predicate
from laketier_delta.pruning import FilePruner, partition_rows, partition_table

AT = datetime(2026, 11, 26, tzinfo=UTC)
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("f", pa.float64()),
        ("at", pa.timestamp("us", "UTC")),
        ("flag", pa.bool_()),
        ("nest", pa.struct([("x", pa.int64())])),
        ("day", pa.date32()),
        ("part", pa.string()),
    ]
)
LOW = {"id": 1, "name": "b", "f": 1.0, "at": AT, "flag": True, "nest": {"x": 1}, "day": AT.date()}
HIGH = {"id": 5, "name": "d", "f": 5.0, "at": AT, "flag": True, "nest": {"x": 5}, "day": AT.date()}
NULLS = {"id": 0, "name": 2, "f": 0, "at": 0, "flag": 0, "nest": {"x": 0}}
COUNTS = pa.struct(
    [*((field.name, pa.int64()) for field in list(SCHEMA)[:5]), ("nest", pa.struct([("x", pa.int64())]))]
)
BOUNDS = pa.struct(list(SCHEMA)[:7])


def files(*known: tuple[Any, Any, Any, str | None]) -> pa.Table:
    """(min, max, null count, partition) of each."""
    low, high, nulls, part = zip(*known, strict=True)
    columns = {
        "num_records": pa.array([2] * len(known), pa.int64()),
        "min": pa.array(low, BOUNDS),
        "max": pa.array(high, BOUNDS),
        "null_count": pa.array(nulls, COUNTS),
        "partition": pa.array([{"part": text} for text in part], pa.struct([("part", pa.string())])),
    }
    return pa.table(columns)


KNOWN = (LOW, HIGH, NULLS, "p")
UNKNOWN = (None, None, None, "q")


def keep(*predicates: Predicate) -> list[bool]:
    """Of a file of which all is known, and of one of which nothing is but its partition."""
    found: list[bool] = FilePruner(files(KNOWN, UNKNOWN), SCHEMA, ["part"]).keep(predicates).to_pylist()
    return found


@pytest.mark.parametrize(
    ("leaf", "may"),
    [
        (Leaf("id", Op.EQ, 0), False),
        (Leaf("id", Op.EQ, 1), True),
        (Leaf("id", Op.EQ, 5), True),
        (Leaf("id", Op.EQ, 6), False),
        (Leaf("id", Op.NE, 9), True),
        (Leaf("id", Op.LT, 1), False),
        (Leaf("id", Op.LT, 2), True),
        (Leaf("id", Op.LE, 0), False),
        (Leaf("id", Op.LE, 1), True),
        (Leaf("id", Op.GT, 5), False),
        (Leaf("id", Op.GT, 4), True),
        (Leaf("id", Op.GE, 6), False),
        (Leaf("id", Op.GE, 5), True),
        (Leaf("id", Op.IN, (0, 6)), False),
        (Leaf("id", Op.IN, (0, 3)), True),
        (Leaf("id", Op.IN, (0, None)), False),
        (Leaf("id", Op.IN, ()), True),
        (Leaf("id", Op.IN, (None,)), True),
        (Leaf("id", Op.EQ, 2**70), True),
        (Leaf("id", Op.LT, Decimal("1.5")), True),
        (Leaf("id", Op.LT, Decimal(1)), False),
        (Leaf("day", Op.LT, datetime(2026, 11, 26, 12)), True),
        (Leaf("day", Op.LT, date(2026, 11, 26)), False),
        (Leaf("at", Op.LT, date(2026, 11, 26)), False),
        (Leaf("at", Op.GE, date(2026, 11, 26)), True),
        (Leaf("at", Op.GE, date(2026, 11, 27)), False),
        (Leaf("id", Op.EQ, "0"), True),
        (Leaf("id", Op.EQ, True), True),
        (Leaf("id", Op.EQ, float("nan")), True),
        (Leaf("id", Op.IS_NULL), False),
        (Leaf("id", Op.NOT_NULL), True),
        (Leaf("name", Op.IS_NULL), True),
        (Leaf("name", Op.NOT_NULL), False),
        (Leaf("name", Op.STARTS_WITH, "a"), False),
        (Leaf("name", Op.STARTS_WITH, "b"), True),
        (Leaf("name", Op.STARTS_WITH, "d"), True),
        (Leaf("name", Op.STARTS_WITH, "da"), False),
        (Leaf("name", Op.STARTS_WITH, "e"), False),
        (Leaf("f", Op.LT, 1.0), False),
        (Leaf("f", Op.LE, 0.5), False),
        (Leaf("f", Op.GT, 5.0), True),
        (Leaf("f", Op.GE, 5.5), True),
        (Leaf("f", Op.EQ, 6.0), False),
        (Leaf("at", Op.GT, AT), True),
        (Leaf("at", Op.GT, AT.replace(microsecond=999)), True),
        (Leaf("at", Op.GT, AT.replace(microsecond=1000)), False),
        (Leaf("at", Op.LT, AT), False),
        (Leaf("flag", Op.EQ, False), True),
        (Leaf("flag", Op.LT, True), True),
        (Leaf("nest", Op.IS_NULL), True),
        (Leaf("nest", Op.NOT_NULL), True),
        (Leaf("part", Op.EQ, "p"), True),
        (Not(Leaf("id", Op.GE, 0)), True),
        (And((Leaf("id", Op.GT, 4), Leaf("id", Op.GT, 5))), False),
        (And((Leaf("id", Op.GT, 3), Leaf("id", Op.GT, 4))), True),
        (Or((Leaf("id", Op.GT, 5), Leaf("id", Op.LT, 1))), False),
        (Or((Leaf("id", Op.GT, 5), Leaf("id", Op.LT, 2))), True),
        (Or((Leaf("id", Op.GT, 5), Leaf("part", Op.EQ, "x"))), False),
    ],
    ids=str,
)
def test_what_bounds_tell(leaf: Predicate, may: bool) -> None:
    assert keep(leaf)[0] is may


@pytest.mark.parametrize(
    "predicate",
    [Leaf("id", Op.EQ, 9), Leaf("id", Op.LT, 0), Leaf("id", Op.IS_NULL), Leaf("name", Op.NOT_NULL),
     Leaf("name", Op.STARTS_WITH, "x"), Leaf("at", Op.GT, AT), And((Leaf("id", Op.EQ, 9), Leaf("part", Op.EQ, "q"))),
     Or((Leaf("id", Op.EQ, 9), Leaf("id", Op.EQ, 8)))],
    ids=str,
)  # fmt: skip
def test_what_nobody_knows_may_be(predicate: Predicate) -> None:
    assert keep(predicate)[1] is True


@pytest.mark.parametrize(("low", "high"), [(1.0, float("nan")), (float("nan"), float("nan"))], ids=repr)
@pytest.mark.parametrize("leaf", [Leaf("f", Op.EQ, 1.0), Leaf("f", Op.IN, (1.0,)), Leaf("f", Op.LE, 1.0)], ids=str)
def test_a_bound_that_is_nan_bounds_nothing(leaf: Leaf, low: float, high: float) -> None:
    """Spark writes one, as NaN is its greatest number; the file has other numbers as well."""
    known = (LOW | {"f": low}, HIGH | {"f": high}, NULLS, "p")
    assert FilePruner(files(known), SCHEMA, ["part"]).keep([leaf]).to_pylist() == [True]


def test_a_text_may_begin_with_any_character_behind_a_prefix() -> None:
    low = {"name": "b" + 2 * "\U0010ffff"}
    pruner = FilePruner(files((LOW | low, HIGH | {"name": "c"}, NULLS, "p")), SCHEMA, ["part"])
    assert pruner.keep([Leaf("name", Op.STARTS_WITH, "b")]).to_pylist() == [True]
    assert pruner.keep([Leaf("name", Op.STARTS_WITH, "ba")]).to_pylist() == [False]


def test_partitions_decide_whole_files() -> None:
    pruner = FilePruner(files(KNOWN, UNKNOWN, (LOW, HIGH, NULLS, None)), SCHEMA, ["part"])
    part, mixed = Leaf("part", Op.NE, "p"), And((Leaf("part", Op.EQ, "q"), Leaf("id", Op.EQ, 1)))
    assert (pruner.exact(part), pruner.exact(mixed), pruner.exact(Leaf("id", Op.EQ, 1))) == (True, False, False)
    assert pruner.keep([part]).to_pylist() == [False, True, False]
    assert pruner.keep([Leaf("part", Op.IS_NULL)]).to_pylist() == [False, False, True]
    assert pruner.keep([mixed]).to_pylist() == [False, True, False]
    assert pruner.keep([part, Leaf("id", Op.EQ, 9)]).to_pylist() == [False, True, False]
    assert pruner.keep([]).to_pylist() == [True, True, True]


def test_files_without_any_statistics() -> None:
    pruner = FilePruner(files(KNOWN).select(["num_records", "partition"]), SCHEMA, ["part"])
    assert pruner.keep([Leaf("id", Op.EQ, 9), Leaf("name", Op.IS_NULL)]).to_pylist() == [True]
    assert pruner.keep([Leaf("part", Op.EQ, "x")]).to_pylist() == [False]


@pytest.mark.parametrize(
    "array",
    [pa.array([2**62], pa.timestamp("us")), pa.array([-(2**62)], pa.timestamp("us", "UTC")),
     pa.array([2**30], pa.date32()), pa.array([-(2**30)], pa.date32())],
    ids=str,
)  # fmt: skip
def test_times_that_python_has_not_are_refused(array: pa.Array) -> None:
    schema = pa.schema([("day", array.type)])
    table = pa.table({"partition": pa.StructArray.from_arrays([array], ["day"])})
    assert partition_table(table, schema, ["day"]).num_rows == 1
    with pytest.raises(IncompatibleTable, match="a partition of day lies outside the years 1 to 9999"):
        partition_rows(table, schema, ["day"])


@pytest.mark.parametrize("op", [Op.LT, Op.LE])
@pytest.mark.parametrize("literal", [0.7, -0.1, 2**24 + 1], ids=str)
def test_a_number_between_two_floats_is_above_the_one_below(op: Op, literal: float) -> None:
    """As a float of 32 bits it is the bound itself, or the next one, and the file would be passed over."""
    kind, below = pa.struct([("v", pa.float32())]), {0.7: 0.7, -0.1: -0.1, 2**24 + 1: 2.0**24}[literal]
    bounds = pa.array([{"v": below}], kind)
    nulls = pa.array([{"v": 0}], pa.struct([("v", pa.int64())]))
    rows = pa.table({"num_records": pa.array([1], pa.int64()), "min": bounds, "max": bounds, "null_count": nulls})
    pruner = FilePruner(rows, pa.schema([("v", pa.float32())]), [])
    assert pruner.keep([Leaf("v", op, literal)]).to_pylist() == [True]
    assert pruner.keep([Leaf("v", Op.EQ, literal)]).to_pylist() == [False]
