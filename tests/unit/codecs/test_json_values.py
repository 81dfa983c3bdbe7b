"""JSON values become rows as `json.loads` reads them, one row for each good value, or are bad."""

from __future__ import annotations

import datetime
import decimal
import json
import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from laketier.codecs.json_values import JsonDecoder
from laketier.spi import ConfigError

SCHEMA = pa.schema(
    [
        ("i", pa.int64()),
        ("u", pa.uint64()),
        ("f", pa.float64()),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("l", pa.list_(pa.int64())),
        ("n", pa.struct([("x", pa.int32()), ("y", pa.string()), ("z", pa.list_(pa.float64()))])),
    ]
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
FLOATS = st.one_of(st.floats(allow_nan=False), st.integers(-(2**70), 2**70))
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
ROW = st.fixed_dictionaries(
    {},
    optional={
        "i": st.none() | st.integers(-(2**63), 2**63 - 1),
        "u": st.none() | st.integers(0, 2**64 - 1),
        "f": st.none() | FLOATS,
        "s": st.none() | TEXT,
        "b": st.none() | st.booleans(),
        "l": st.none() | st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=3),
        "n": st.none()
        | st.fixed_dictionaries(
            {}, optional={"x": st.integers(-(2**31), 2**31 - 1), "y": TEXT, "z": st.lists(FLOATS, max_size=2)}
        ),
        "more": ANYTHING,
    },
)
LAYOUT = st.sampled_from([{}, {"indent": 2}, {"separators": (",", ":")}, {"ensure_ascii": False}])
GOOD = st.builds(
    lambda row, layout, pad: (pad + json.dumps(row, **layout) + pad).encode(),
    ROW,
    LAYOUT,
    st.sampled_from(["", "\n", " \t"]),
)
HALVES = [
    b'{"i":1',
    b'"l":[1}',
    b'{"i":1,',
    b'"u":2}',
    b'{"more":[{}',
    b'{"more":"}',
    b'{"}',
    b'{"more":{"a":1}',
    b"}",
    b"{",
]
BAD = st.one_of(
    st.binary(max_size=8),
    ANYTHING.map(lambda value: json.dumps(value).encode()),
    st.sampled_from(HALVES),
    st.tuples(GOOD, GOOD).map(lambda two: two[0] + two[1]),
    GOOD.map(lambda value: value[:-1]),
    GOOD.map(lambda value: value + b"\x00"),
    st.sampled_from(
        [b'{"i":1.5}', b'{"i":9223372036854775808}', b'{"u":-1}', b'{"s":1}', b'{"b":0}', b'{"l":{}}', b'{"n":[]}']
    ),
    st.sampled_from(
        [b'{"s":"\xff"}', b'{"more":"\xff"}', b'{"s":"\\ud800"}', b'{"i":1,"i":2}', b'{"f":9007199254740993}']
    ),
)


def expected(value: bytes) -> dict[str, Any] | None:
    """The row, or None where there is none: the same by the standard library, value by value."""
    try:
        document = json.loads(value.decode("utf-8"))
        if not isinstance(document, dict):
            return None
        return {field.name: plain(document.get(field.name), field.type) for field in SCHEMA}
    except (ValueError, OverflowError):
        return None


def plain(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_list(kind):
        return [plain(item, kind.value_type) for item in listed(value)]
    if pa.types.is_struct(kind):
        if not isinstance(value, dict):
            raise ValueError
        return {
            kind.field(i).name: plain(value.get(kind.field(i).name), kind.field(i).type) for i in range(kind.num_fields)
        }
    if pa.types.is_floating(kind):
        if isinstance(value, bool) or not isinstance(value, int | float) or int_changes(value):
            raise ValueError
        return float(value)
    wanted = {"int64": int, "int32": int, "uint64": int, "string": str, "bool": bool}[str(kind)]
    if type(value) is not wanted:
        raise ValueError
    if wanted is str:
        value.encode()
    pa.scalar(value, kind)
    return value


def listed(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(value)  # noqa: TRY004
    return value


def int_changes(value: float) -> bool:
    return isinstance(value, int) and int(float(value)) != value


@settings(deadline=None)  # a loaded machine is no failure
@given(st.lists(st.one_of(GOOD, BAD), max_size=12))
@example([b'{"i":1,', b'"i":2}', b'{"i":3}{"i":4}'])
@example([b'{"more":[1,', b"2]}", b'{"i":3}{"i":4}'])
@example([b'{"more":"}', b'{"}', b'{"i":3}{"i":4}'])
@example([b'{"more":[{}', b"{}]}", b'{"i":3}{"i":4}'])
@example([b'{"i":1}\x00{"i":2}'])
def test_rows_are_what_json_loads_reads(values: list[bytes]) -> None:
    decoded = JsonDecoder(SCHEMA).decode(values)
    rows = [expected(value) for value in values]
    # A key given twice is bad to pyarrow where it is a column; the standard library takes the last.
    twice = {index for index, value in enumerate(values) if b'"i":1,"i"' in value}
    good = [index for index, row in enumerate(rows) if row is not None and index not in twice]
    assert list(decoded.index) == good
    assert [one.index for one in decoded.bad] == [index for index in range(len(values)) if index not in good]
    assert repr(decoded.rows.to_pylist()) == repr([rows[index] for index in good])
    assert decoded.rows.schema == SCHEMA
    assert all(one.error for one in decoded.bad)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (
            pa.timestamp("us", "UTC"),
            '"2024-05-01T10:00:00.123456+02:00"',
            datetime.datetime(2024, 5, 1, 8, 0, 0, 123456, datetime.UTC),
        ),
        (pa.timestamp("us"), '"2024-05-01 10:00:00"', datetime.datetime(2024, 5, 1, 10)),
        (pa.date32(), '"2024-05-01"', datetime.date(2024, 5, 1)),
        (pa.decimal128(30, 2), "1234567890123456789012345678.25", decimal.Decimal("1234567890123456789012345678.25")),
        (pa.decimal128(30, 2), '"1.25"', decimal.Decimal("1.25")),
        (pa.float32(), "0.5", 0.5),
        (
            pa.list_(pa.timestamp("s", "UTC")),
            '["2024-05-01T10:00:00Z", null]',
            [datetime.datetime(2024, 5, 1, 10, tzinfo=datetime.UTC), None],
        ),
        (pa.struct([("d", pa.date32())]), '{"d": "2024-05-01"}', {"d": datetime.date(2024, 5, 1)}),
        (pa.float64(), "123456789012345680.0", 123456789012345680.0),
    ],
)
def test_types_beyond_json(kind: pa.DataType, text: str, value: Any) -> None:
    decoded = JsonDecoder(pa.schema([("a", kind)])).decode([f'{{"a": {text}}}'.encode()])
    assert decoded.rows.to_pylist() == [{"a": value}]
    assert not decoded.bad


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (pa.timestamp("us", "UTC"), '"2024-05-01T10:00:00"'),  # no zone: which moment is not known
        (pa.timestamp("us"), '"2024-05-01T10:00:00Z"'),
        (pa.timestamp("s", "UTC"), '"2024-05-01T10:00:00.5Z"'),
        (pa.timestamp("us", "UTC"), "1700000000"),
        (pa.date32(), '"2024-05-32"'),
        (pa.decimal128(5, 2), "1.255"),
        (pa.decimal128(5, 2), "1000.00"),
        (pa.float32(), "1e300"),
        (pa.float32(), "16777217"),
        (pa.float64(), "1e400"),
        (pa.list_(pa.float64()), "[9007199254740993]"),
        (pa.int8(), "128"),
    ],
)
def test_a_value_that_its_column_cannot_hold_is_bad(kind: pa.DataType, text: str) -> None:
    good, bad = b'{"a": null}', f'{{"a": {text}}}'.encode()
    decoded = JsonDecoder(pa.schema([("a", kind)])).decode([good, bad, good])
    assert [one.index for one in decoded.bad] == [1]
    assert decoded.rows.to_pylist() == [{"a": None}, {"a": None}]


def test_unknown_fields_are_bad_when_the_user_says_so() -> None:
    decoder = JsonDecoder(pa.schema([("a", pa.int64())]), unknown_fields=False)
    decoded = decoder.decode([b'{"a":1}', b'{"a":1,"b":2}', b"{}"])
    assert [(one.index, one.error) for one in decoded.bad] == [(1, "JSON parse error: unexpected field")]
    assert decoded.rows.to_pylist() == [{"a": 1}, {"a": None}]


DEBEZIUM = b'{"before":null,"after":{"a":1,"b":"x"},"source":{"table":"t"},"op":"c","ts_ms":1,"transaction":null}'
OF_ANOTHER_TABLE = "none of its fields is a column: "


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (DEBEZIUM, "'before', 'after', 'source', 'op', 'ts_ms', …"),
        (b'{"A":1}', "'A'"),
        (b'{"x":{"a":1}}', "'x'"),
        (b'{"x":["a",{"a":[]}]}', "'x'"),
        (b'{"\\u0062":1}', None),  # the column b, as others may write it
        (b'{"":null}', "''"),
        (b'{"x":' + b"[" * 5_000 + b"]" * 5_000 + b"}", "'x'"),
        (b'{"a":null,"x":1}', None),
        (b"{}", None),
    ],
    ids=["debezium", "in-capitals", "inside", "in-a-list", "escaped", "nameless", "deep", "one-of-them", "empty"],
)
def test_an_object_without_any_of_the_columns_is_bad_where_one_is_needed(value: bytes, told: str | None) -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    good = b'{"b":1}'
    decoded = JsonDecoder(schema, needs_a_column=True).decode([good, value, good, b"{}", b"no"])
    assert [(one.index, one.error) for one in decoded.bad[:-1]] == (
        [(1, OF_ANOTHER_TABLE + told)] if told is not None else []
    )
    assert not JsonDecoder(schema).decode([good, value, good]).bad


def test_all_objects_of_another_table_are_told_without_a_search_by_halves() -> None:
    decoder = JsonDecoder(pa.schema([("a", pa.int64())]), framed=True, needs_a_column=True)
    decoded = decoder.decode([b"\0\0\0\0\x07" + DEBEZIUM] * 300)
    assert [one.index for one in decoded.bad] == list(range(300))
    assert {one.error for one in decoded.bad} == {OF_ANOTHER_TABLE + "'before', 'after', 'source', 'op', 'ts_ms', …"}


def test_a_frame_is_taken_off_and_asked_for() -> None:
    decoder = JsonDecoder(pa.schema([("a", pa.int64())]), framed=True)
    decoded = decoder.decode([b'\x00\x00\x00\x00\x07{"a":1}', b'{"a":2}'])
    assert decoded.rows.to_pylist() == [{"a": 1}]
    assert [one.error for one in decoded.bad] == ["the value does not begin with the id of a schema"]


def test_a_deeply_nested_value_does_no_harm() -> None:
    decoded = JsonDecoder(pa.schema([("a", pa.int64())])).decode(
        [b'{"x":' + b"[" * 500_000 + b"]" * 500_000 + b',"a":1}']
    )
    assert decoded.rows.to_pylist() == [{"a": 1}]


def test_few_bad_values_among_many_are_found() -> None:
    values = [b'{"a":%d}' % number for number in range(20_000)]
    for position in (0, 777, 19_999):
        values[position] = b"{"
    decoded = JsonDecoder(pa.schema([("a", pa.int64())])).decode(values)
    assert [one.index for one in decoded.bad] == [0, 777, 19_999]
    assert decoded.rows.column(0).to_pylist() == list(decoded.index)


@pytest.mark.parametrize(
    "kind", [pa.binary(), pa.map_(pa.string(), pa.int64()), pa.duration("s"), pa.list_(pa.binary())]
)
def test_types_that_json_has_no_value_for_are_refused(kind: pa.DataType) -> None:
    with pytest.raises(ConfigError, match=r"columns\.a: JSON can't be read as"):
        JsonDecoder(pa.schema([("a", kind)])).check()


def test_infinity_stays_what_it_is() -> None:
    decoded = JsonDecoder(pa.schema([("a", pa.float64())])).decode([b'{"a":Infinity}', b'{"a":NaN}'])
    first, second = decoded.rows.column(0).to_pylist()
    assert math.isinf(first)
    assert math.isnan(second)
