from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laketier.codecs.arrow_types import parse_columns, parse_type
from laketier.spi import ConfigError

UNITS = st.sampled_from(["s", "ms", "us", "ns"])
PLAIN = [make() for make in (pa.int8, pa.int16, pa.int32, pa.int64, pa.uint8, pa.uint16, pa.uint32, pa.uint64)]
PLAIN += [make() for make in (pa.float16, pa.float32, pa.float64, pa.bool_, pa.string, pa.large_string, pa.binary)]
PLAIN += [pa.large_binary(), pa.date32(), pa.date64(), pa.null(), pa.binary(16)]
PLAIN += [pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")]
LEAVES = st.one_of(
    st.sampled_from(PLAIN),
    st.builds(pa.timestamp, UNITS, st.sampled_from([None, "UTC", "Europe/Zurich", "+02:00"])),
    st.builds(pa.duration, UNITS),
    st.integers(1, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: pa.decimal128(p, s))),
    st.integers(1, 76).flatmap(lambda p: st.integers(0, p).map(lambda s: pa.decimal256(p, s))),
)
NAMES = st.from_regex(r"[a-zA-Z_][a-zA-Z_0-9]{0,6}", fullmatch=True)


def nested(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    fields = st.lists(st.tuples(NAMES, inner, st.booleans()), min_size=1, max_size=3, unique_by=lambda f: f[0])
    return st.one_of(
        inner.map(pa.list_),
        inner.map(pa.large_list),
        # Arrow has no null type that is not nullable.
        fields.map(lambda found: pa.struct([pa.field(n, t, nullable=o or pa.types.is_null(t)) for n, t, o in found])),
        st.tuples(st.sampled_from([pa.string(), pa.int64()]), inner).map(lambda pair: pa.map_(*pair)),
    )


@given(st.recursive(LEAVES, nested, max_leaves=6))
def test_what_arrow_prints_is_read_back(kind: pa.DataType) -> None:
    assert parse_type(str(kind), key="columns.a", origin="test") == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (" INT64 ", pa.int64()),
        ("double", pa.float64()),
        ("float", pa.float32()),
        ("timestamp", pa.timestamp("us")),
        ("timestamp[ms]", pa.timestamp("ms")),
        ("timestamp[ns, America/New_York]", pa.timestamp("ns", tz="America/New_York")),
        ("time", pa.time64("us")),
        ("time[ms]", pa.time32("ms")),
        ("time32", pa.time32("s")),
        ("decimal(10,2)", pa.decimal128(10, 2)),
        ("list<string>", pa.list_(pa.string())),
        ("struct<a: int32, b: struct<c:list<double>>>", None),
        ('struct<"a b": int8>', pa.struct([("a b", pa.int8())])),
        ("map<string, int64>", pa.map_(pa.string(), pa.int64())),
    ],
)
def test_as_people_write_them(text: str, kind: pa.DataType | None) -> None:
    if kind is None:
        kind = pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.list_(pa.float64()))]))])
    assert parse_type(text, key="columns.a", origin="test") == kind


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "a name is missing"),
        ("itn64", "Did you mean 'int64'?"),
        ("timestmap[us]", "Did you mean 'timestamp'?"),
        ("int64 int64", "left over"),
        ("timestamp[h]", "not 'h'"),
        ("timestamp[us, Mars/Base]", "no time zone"),
        ("timestamp[us, ../../etc/passwd]", "no time zone"),
        ("timestamp[us", "the ] of"),
        ("decimal128(39, 2)", "not within 1 and 38"),
        ("decimal128(5, 6)", "above its precision"),
        ("decimal128(5)", "two numbers"),
        ("decimal128", "two numbers"),
        ("fixed_size_binary", "a number"),
        ("list", "in < >"),
        ("list<int64", "the > of list is missing"),
        ("struct<int64>", "name and colon"),
        ("struct<>", "name and colon"),
        ("struct<a: int8, a: int8>", "two fields of one name"),
        ("map<string>", "a value's type"),
        ("date32[ms]", "no unit"),
        ("list<" * 500 + "int8" + ">" * 500, "nested deeper"),
    ],
)
def test_a_wrong_name_is_refused_with_key_place_and_advice(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_type(text, key="read.columns.a", origin="service.yaml:7")
    assert said in str(caught.value)
    assert caught.value.where == "service.yaml:7"
    assert "read.columns.a" in caught.value.what
    assert caught.value.fix


@given(st.text(alphabet="list<>struct:,()[] int8", max_size=30))
def test_nothing_but_a_type_or_a_config_error(text: str) -> None:
    try:
        kind = parse_type(text, key="k", origin="o")
    except ConfigError:
        return
    assert isinstance(kind, pa.DataType)


def test_columns_keep_their_order() -> None:
    schema = parse_columns({"b": "int64", "a": "string"}, prefix="columns.", origin="o")
    assert schema == pa.schema([("b", pa.int64()), ("a", pa.string())])
    assert parse_columns({}, prefix="columns.", origin="o") is None
