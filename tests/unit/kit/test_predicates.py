"""The serialised form of predicates: each literal comes back with its type, and nothing else is read."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laketier.kit import predicate_from_json, predicate_to_json
from laketier.kit.predicates import MOST_DEPTH
from laketier.spi import And, Leaf, Not, Op, Or, Predicate, ScanPlan, ScanRequest, SerializationError
from laketier.tables import plan_content

NULL_TESTS = (Op.IS_NULL, Op.NOT_NULL)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
ZONES = st.sampled_from([UTC, timezone(timedelta(hours=-11)), ZoneInfo("Europe/Berlin")])
LITERALS = (
    st.booleans()
    | st.integers(-(2**64), 2**64)
    | st.floats()
    | TEXTS
    | st.binary()
    | st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**30), max_value=10**30, places=8)
    | st.dates()
    | st.datetimes()
    | st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=ZONES)
    | st.times()
    | st.timedeltas()
)
LEAVES = (
    st.builds(Leaf, TEXTS, st.sampled_from([op for op in Op if op is not Op.IN and op not in NULL_TESTS]), LITERALS)
    | st.builds(Leaf, TEXTS, st.sampled_from(NULL_TESTS))
    | st.builds(Leaf, TEXTS, st.just(Op.IN), st.lists(LITERALS | st.none()).map(tuple))
)
PREDICATES = st.recursive(
    LEAVES,
    lambda inner: (
        st.builds(Not, inner)
        | st.builds(And, st.lists(inner, min_size=1).map(tuple))
        | st.builds(Or, st.lists(inner, min_size=1).map(tuple))
    ),
    max_leaves=8,
)


def told(value: Any) -> Any:
    """What tells two literals apart: also 1 from True and 1.0, -0.0 from 0.0, and NaN from nothing."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return ("moment", value.astimezone(UTC))
    if isinstance(value, datetime | time):
        value = value.replace(fold=0)  # says something of moments in a zone alone
    return (type(value), repr(value))


def shape(predicate: Predicate) -> Any:
    match predicate:
        case Leaf(column=column, op=Op.IN as op, value=values):
            return (column, op, [told(value) for value in values])
        case Leaf(column=column, op=op, value=value):
            return (column, op, told(value))
        case Not(child=child):
            return ("not", shape(child))
        case And(children=children) | Or(children=children):
            return (type(predicate), [shape(child) for child in children])


@given(PREDICATES)
def test_each_predicate_comes_back_with_its_types(predicate: Predicate) -> None:
    text = predicate_to_json(predicate)
    again = predicate_from_json(text)
    assert shape(again) == shape(predicate)
    assert predicate_to_json(again) == text, "the text is canonical"
    assert json.loads(text)["version"] == 1


@pytest.mark.parametrize(
    "scalar",
    [
        pa.scalar(True),
        *(pa.scalar(value, kind) for kind in (pa.int8(), pa.int64()) for value in (-128, 127)),
        pa.scalar(2**64 - 1, pa.uint64()),
        pa.scalar(1.5, pa.float16()),
        pa.scalar(0.1, pa.float32()),
        pa.scalar(-0.0, pa.float64()),
        pa.scalar("ü"),
        pa.scalar("large", pa.large_string()),
        pa.scalar(b"\x00\xff"),
        pa.scalar(b"four", pa.binary(4)),
        pa.scalar(Decimal("1.50"), pa.decimal128(38, 2)),
        pa.scalar(Decimal("-" + "9" * 76), pa.decimal256(76, 0)),
        pa.scalar(date(1, 1, 1), pa.date32()),
        pa.scalar(date(9999, 12, 31), pa.date64()),
        pa.scalar(time(1, 2, 3), pa.time32("s")),
        pa.scalar(time(23, 59, 59, 999_999), pa.time64("us")),
        pa.scalar(datetime(1, 1, 1), pa.timestamp("s")),
        pa.scalar(datetime(9999, 12, 31, 23, 59, 59, 999_999), pa.timestamp("us")),
        pa.scalar(datetime(2026, 11, 22, tzinfo=UTC), pa.timestamp("ms", "Europe/Berlin")),
        pa.scalar(1_234_567_890_123_456_789, pa.timestamp("ns")),
        pa.scalar(-1, pa.timestamp("ns", "UTC")),
        pa.scalar(timedelta(days=-1, microseconds=1), pa.duration("us")),
        pa.scalar(1_000_000_001, pa.duration("ns")),
    ],
    ids=lambda scalar: str(scalar.type),
)
def test_a_literal_of_each_arrow_type(scalar: pa.Scalar) -> None:
    """As `--where` makes them, from a scalar of the column's type."""
    value = scalar.as_py()
    again = predicate_from_json(predicate_to_json(Leaf("x", Op.EQ, value)))
    assert isinstance(again, Leaf)
    assert told(again.value) == told(value)


@pytest.mark.parametrize(
    "value",
    [
        np.datetime64(1, "ns"),
        [1],
        {"a": 1},
        10**80,
        Decimal("NaN"),
        Decimal("Infinity"),
        Decimal("1e999999"),
        time(1, tzinfo=UTC),
        "\ud800",
        pd.NaT,
        datetime.min.replace(tzinfo=timezone(timedelta(hours=1))),
        pytest.param(object(), id="object"),
    ],
    ids=repr,
)
def test_a_literal_that_no_column_holds_is_refused(value: Any) -> None:
    for leaf in (Leaf("x", Op.EQ, value), Leaf("x", Op.IN, (1, value))):
        with pytest.raises(SerializationError):
            predicate_to_json(leaf)


@pytest.mark.parametrize("value", [np.int64(7), np.float32(0.5), pa.scalar(7), pa.scalar(b"x")], ids=repr)
def test_scalars_of_numpy_and_arrow_come_back_as_pythons(value: Any) -> None:
    again = predicate_from_json(predicate_to_json(Leaf("x", Op.EQ, value)))
    assert isinstance(again, Leaf)
    assert again.value == (value.as_py() if isinstance(value, pa.Scalar) else value.item())
    assert type(again.value) in (int, float, bytes)


@pytest.mark.parametrize("odd", [And(()), Or(()), "x = 1", None, Leaf(1, Op.EQ, 2), Leaf("x", "=", 2)], ids=repr)
def test_what_is_no_predicate_is_refused(odd: Any) -> None:
    with pytest.raises(SerializationError):
        predicate_to_json(odd)


def leaf(**changes: Any) -> str:
    return json.dumps({"version": 1, "predicate": {"op": "=", "column": "x", "value": {"int": "1"}} | changes})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        b"\xff",
        "[" * 200_000,
        '{"version":1,"version":1,"predicate":{"op":"is null","column":"x"}}',
        '{"version":2,"predicate":{"op":"is null","column":"x"}}',
        '{"version":true,"predicate":{"op":"is null","column":"x"}}',
        f'{{"version":{"9" * 5000},"predicate":{{"op":"is null","column":"x"}}}}',
        '{"version":1,"predicate":{"op":"is null","column":"x"},"more":1}',
        '{"version":1,"predicate":{"op":"is null","column":"x","value":{"int":"1"}}}',
        '{"version":1,"predicate":{"op":"and","children":[]}}',
        '{"version":1,"predicate":{"op":"and","children":[{"op":"is null","column":"x"}],"more":1}}',
        '{"version":1,"predicate":{"op":"not"}}',
        '{"version":1,"predicate":{"op":"in","column":"x","value":{"int":"1"}}}',
        leaf(op="in"),
        leaf(op="eq"),
        leaf(op=["="]),
        leaf(column=1),
        leaf(column="\ud800"),
        leaf(values=[]),
        leaf(value=1),
        leaf(value="1"),
        leaf(value={"int": 1}),
        leaf(value={"int": "1", "string": "1"}),
        leaf(value={"int": "01"}),
        leaf(value={"int": " 1"}),
        leaf(value={"int": "9" * 100_000}),
        leaf(value={"int": "9" * 77}),
        leaf(value={"bool": "true"}),
        leaf(value={"float": "1.5"}),
        leaf(value={"float": "0x1p999999"}),
        leaf(value={"decimal": "NaN"}),
        leaf(value={"decimal": "1E+999999"}),
        leaf(value={"decimal": "1" * 100}),
        leaf(value={"binary": "!"}),
        leaf(value={"binary": "QQ"}),
        leaf(value={"date": "2026-02-30"}),
        leaf(value={"date": "20260101"}),
        leaf(value={"timestamp": "1" + "0" * 30}),
        leaf(value={"timestamp": "2026-01-01"}),
        leaf(value={"time": "25:00:00"}),
        leaf(value={"duration": "9" * 60}),
        leaf(value={"pickle": "gASVAAAA"}),
        '{"version":1,"predicate":{"op":"=","column":"x","value":{"float":NaN}}}',
    ],
    ids=lambda text: repr(text)[:60],
)
def test_anything_else_is_refused(text: str | bytes) -> None:
    with pytest.raises(SerializationError):
        predicate_from_json(text)


def test_a_predicate_may_be_so_deep_and_no_deeper() -> None:
    predicate: Predicate = Leaf("x", Op.IS_NULL)
    for _ in range(MOST_DEPTH - 1):
        predicate = Not(predicate)
    assert predicate_from_json(predicate_to_json(predicate)) == predicate
    with pytest.raises(SerializationError, match="deep"):
        predicate_to_json(Not(predicate))
    inner = '{"op":"is null","column":"x"}'
    for _ in range(MOST_DEPTH):
        inner = f'{{"op":"not","child":{inner}}}'
    with pytest.raises(SerializationError, match="deep"):
        predicate_from_json(f'{{"version":1,"predicate":{inner}}}')


def test_the_content_of_a_plan_goes_by_what_its_filters_mean() -> None:
    """A replay of a batch that wrote one moment in another zone was refused, as of another content."""
    plan = ScanPlan(snapshot_id=1, schema=pa.schema([]), splits=())
    moments = [datetime(2026, 11, 22, 12, tzinfo=UTC), datetime(2026, 11, 22, 13, tzinfo=ZoneInfo("Europe/Berlin"))]
    same = {plan_content(ScanRequest(filters=(Leaf("at", Op.GE, moment),)), plan) for moment in moments}
    assert len(same) == 1
    others = (Leaf("at", Op.GT, moments[0]), Leaf("at", Op.GE, 1), Leaf("at", Op.GE, True), Leaf("at", Op.GE, 1.0))
    assert len({plan_content(ScanRequest(filters=(each,)), plan) for each in others} | same) == 5
