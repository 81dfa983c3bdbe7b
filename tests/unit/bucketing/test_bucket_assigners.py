"""Every bucket function against the slow reference, on whatever columns hypothesis thinks of."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg import types as iceberg_types
from pyiceberg.transforms import BucketTransform

from bucket_reference import fluss_bucket, hudi_bucket, iceberg_bucket, java_hash, paimon_bucket
from laketier.bucketing import BUCKET_FUNCTIONS, IcebergAssigner, IcebergAssignerFactory, assigner_for
from laketier.bucketing.assigner import PIECE_ROWS
from laketier.spi import BucketAssigner, BucketSpec, ConfigError, IncompatibleData, TableDescriptor

REFERENCE: dict[str, Callable[[Sequence[Any], Sequence[pa.DataType], int], int]] = {
    "fluss": fluss_bucket,
    "paimon": paimon_bucket,
    "iceberg": iceberg_bucket,
    "hudi": hudi_bucket,
}


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    limit = 10**precision - 1
    return st.integers(-limit, limit).map(
        lambda n: Decimal((int(n < 0), tuple(int(digit) for digit in str(abs(n))), -scale))
    )


def integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def timestamps(unit: str) -> st.SearchStrategy[datetime]:
    step = {"s": 1_000_000, "ms": 1_000}.get(unit, 1)
    return st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1)).map(
        lambda at: at.replace(microsecond=at.microsecond // step * step)
    )


TEXT = st.one_of(st.text(max_size=12), st.text("abc", max_size=70), st.text("aé語🜁", max_size=20))
BINARY = st.binary(max_size=40)
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    pa.int8(): integers(8),
    pa.int16(): integers(16),
    pa.int32(): integers(32),
    pa.int64(): st.one_of(integers(64), st.integers(-300, 300)),
    pa.float32(): st.floats(width=32, allow_nan=False),
    pa.float64(): st.floats(allow_nan=False),
    pa.date32(): st.dates(),
    pa.time32("s"): st.times().map(lambda at: at.replace(microsecond=0)),
    pa.time64("us"): st.times(),
    pa.timestamp("s"): timestamps("s"),
    pa.timestamp("ms"): timestamps("ms"),
    pa.timestamp("us"): timestamps("us"),
    pa.timestamp("ns"): timestamps("ns"),
    pa.decimal128(9, 2): decimals(9, 2),
    pa.decimal128(18, 0): decimals(18, 0),
    pa.decimal128(19, 19): decimals(19, 19),
    pa.decimal128(38, 10): decimals(38, 10),
    pa.string(): TEXT,
    pa.large_string(): TEXT,
    pa.binary(): BINARY,
    pa.large_binary(): BINARY,
    pa.binary(5): st.binary(min_size=5, max_size=5),
}

NOT_TAKEN = {
    "fluss": set(),
    "paimon": set(),
    "iceberg": {pa.bool_(), pa.float32(), pa.float64()},
    "hudi": {
        pa.float32(), pa.float64(), pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("ns"),
        pa.binary(), pa.large_binary(), pa.binary(5),
    },
}  # fmt: skip
NULLS = {"fluss": False, "paimon": True, "iceberg": False, "hudi": True}


@st.composite
def key_columns(draw: st.DrawFn, function: str, most: int) -> pa.RecordBatch:
    """A slice of key columns, so that offsets are in play, with nulls where the function hashes them."""
    kinds = draw(
        st.lists(st.sampled_from([k for k in VALUES if k not in NOT_TAKEN[function]]), min_size=1, max_size=most)
    )
    rows = draw(st.integers(0, 12))
    columns = []
    for kind in kinds:
        values = VALUES[kind]
        if function == "hudi" and len(kinds) > 1 and kind in (pa.string(), pa.large_string()):
            values = values.map(lambda text: text.replace(",", ";"))
        values = st.one_of(st.none(), values) if NULLS[function] else values
        columns.append(pa.array(draw(st.lists(values, min_size=rows, max_size=rows)), kind))
    batch = pa.RecordBatch.from_arrays(columns, names=[f"k{i}" for i in range(len(kinds))])
    return batch.slice(draw(st.integers(0, rows)))


def assigner(batch: pa.RecordBatch, function: str, count: int) -> BucketAssigner:
    return assigner_for(TableDescriptor(batch.schema, buckets=BucketSpec(count, tuple(batch.schema.names), function)))


def reference(batch: pa.RecordBatch, function: str, count: int) -> list[int]:
    rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
    return [REFERENCE[function](row, batch.schema.types, count) for row in rows]


@pytest.mark.parametrize("function", BUCKET_FUNCTIONS)
def test_agrees_with_the_reference(function: str) -> None:
    @settings(max_examples=150, deadline=None, database=None)
    @given(key_columns(function, 1 if function == "iceberg" else 4), st.integers(1, 2**31 - 1))
    def check(batch: pa.RecordBatch, count: int) -> None:
        crossed = pickle.loads(pickle.dumps(assigner(batch, function, count)))  # noqa: S301 - as Spark sends it
        buckets = crossed.assign(batch)
        assert buckets.type == pa.int32()
        assert buckets.null_count == 0
        assert buckets.to_pylist() == reference(batch, function, count)

    check()


def test_the_reference_tells_all_functions_and_types_apart() -> None:
    """So that agreement with it says something: no two functions, and few types, give the same buckets."""
    results = set()
    for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64()):
        batch = pa.RecordBatch.from_pydict({"k": pa.array(range(-100, 100), kind)})
        results |= {tuple(reference(batch, function, 1000)) for function in ("fluss", "paimon")}
    assert len(results) == 8


@pytest.mark.parametrize("function", BUCKET_FUNCTIONS)
@pytest.mark.parametrize("kind", [pa.string(), pa.int64()], ids=str)
def test_many_pieces(function: str, kind: pa.DataType) -> None:
    rows = 2 * PIECE_ROWS + 17
    values = pa.array(range(rows)).cast(kind)
    batch = pa.RecordBatch.from_arrays([values], names=["k"])
    whole = assigner(batch, function, 97).assign(batch)
    tail = batch.slice(PIECE_ROWS - 5)
    assert whole.slice(PIECE_ROWS - 5).equals(assigner(batch, function, 97).assign(tail))
    assert whole.slice(rows - 20).to_pylist() == reference(batch.slice(rows - 20), function, 97)
    assert set(whole.unique().to_pylist()) == set(range(97))


@pytest.mark.parametrize("function", BUCKET_FUNCTIONS)
def test_huge_values_among_small_ones(function: str) -> None:
    batch = pa.RecordBatch.from_pydict({"k": ["a" * 100_001, "b", "", "c" * 9, "é" * 5_000]})
    assert assigner(batch, function, 1000).assign(batch).to_pylist() == reference(batch, function, 1000)


@pytest.mark.parametrize("function", BUCKET_FUNCTIONS)
def test_no_rows(function: str) -> None:
    batch = pa.RecordBatch.from_pydict({"k": pa.array([], pa.string())})
    buckets = assigner(batch, function, 4).assign(batch)
    assert (buckets.type, len(buckets)) == (pa.int32(), 0)


@pytest.mark.parametrize("function", BUCKET_FUNCTIONS)
@pytest.mark.parametrize("kind", [pa.string(), pa.int32(), pa.decimal128(30, 2)], ids=str)
def test_only_nulls(function: str, kind: pa.DataType) -> None:
    batch = pa.RecordBatch.from_arrays([pa.nulls(3, kind)], names=["k"])
    made = assigner(batch, function, 7)
    if NULLS[function]:
        assert made.assign(batch).to_pylist() == reference(batch, function, 7)
    else:
        with pytest.raises(IncompatibleData, match="the bucket key 'k' has 3 nulls"):
            made.assign(batch)


@pytest.mark.parametrize("function", BUCKET_FUNCTIONS)
def test_one_encoding_is_as_good_as_another(function: str) -> None:
    plain = pa.array(["x", "a long enough text", "", "x", "🜁"])
    expected = reference(pa.RecordBatch.from_arrays([plain], names=["k"]), function, 100)
    encodings = [plain.dictionary_encode(), plain.cast(pa.large_string()), plain.cast(pa.string_view())]
    for declared in [plain, *encodings]:
        made = assigner(pa.RecordBatch.from_arrays([declared], names=["k"]), function, 100)
        for given_ in [plain, *encodings]:
            batch = pa.RecordBatch.from_arrays([given_, pa.nulls(5)], names=["k", "other"])
            assert made.assign(batch).to_pylist() == expected


def test_the_declared_type_decides() -> None:
    narrow = pa.RecordBatch.from_pydict({"k": pa.array([-1, 5], pa.int32())})
    wide = pa.RecordBatch.from_pydict({"k": pa.array([-1, 5], pa.int64())})
    made = assigner(wide, "fluss", 1000)
    assert made.assign(narrow).equals(made.assign(wide))
    assert not assigner(narrow, "fluss", 1000).assign(narrow).equals(made.assign(wide))
    with pytest.raises(IncompatibleData, match="column 'k' is string"):
        made.assign(pa.RecordBatch.from_pydict({"k": ["-1"]}))
    with pytest.raises(IncompatibleData, match="the bucket key 'k' is missing"):
        made.assign(pa.RecordBatch.from_pydict({"j": [1]}))


@pytest.mark.parametrize(
    ("function", "kind", "why"),
    [
        ("iceberg", pa.float64(), "has no hash for it"),
        ("iceberg", pa.bool_(), "has no hash for it"),
        ("hudi", pa.float32(), "not built yet"),
        ("hudi", pa.binary(), "bytes have none"),
        ("fluss", pa.list_(pa.int32()), "not a scalar type"),
        ("paimon", pa.uint32(), "not a scalar type"),
        ("paimon", pa.null(), "not a scalar type"),
        ("fluss", pa.decimal256(40, 2), "not a scalar type"),
        ("hudi", pa.decimal128(4, -2), "scale is negative"),
    ],
    ids=str,
)
def test_refused_key_types(function: str, kind: pa.DataType, why: str) -> None:
    schema = pa.schema([("k", kind)])
    with pytest.raises(
        ConfigError, match=f"(?s)'k' of type .* function '{function}', because .*{why}.*Choose a column"
    ):
        assigner_for(TableDescriptor(schema, buckets=BucketSpec(4, ("k",), function)))


def test_refused_descriptors() -> None:
    schema = pa.schema([("a", pa.int32()), ("b", pa.int32())])
    with pytest.raises(ConfigError, match="Did you mean 'iceberg'"):
        assigner_for(TableDescriptor(schema, buckets=BucketSpec(4, ("a",), "Iceburg")))
    with pytest.raises(ConfigError, match="They are fluss, iceberg, paimon, hudi"):
        assigner_for(TableDescriptor(schema, buckets=BucketSpec(4, ("a",), "xyz")))
    with pytest.raises(ConfigError, match="the table has no buckets"):
        assigner_for(TableDescriptor(schema))
    with pytest.raises(ConfigError, match=r"2 bucket keys \(a, b\)"):
        assigner_for(TableDescriptor(schema, buckets=BucketSpec(4, ("a", "b"), "iceberg")))


@pytest.mark.parametrize("value", ["a,b", "__null__", "__empty__"])
def test_hudi_refuses_what_its_composite_keys_reserve(value: str) -> None:
    batch = pa.RecordBatch.from_pydict({"a": ["x", value], "b": [1, None]})
    with pytest.raises(IncompatibleData, match="the bucket key 'a' has a value with"):
        assigner(batch, "hudi", 8).assign(batch)
    single = batch.select(["a"])
    expected = [(31 + java_hash(text)) % 2**32 % 2**31 % 8 for text in ("x", value)]
    assert assigner(single, "hudi", 8).assign(single).to_pylist() == expected


ICEBERG_TYPES = [
    (pa.int32(), iceberg_types.IntegerType(), [0, -1, 2**31 - 1, None]),
    (pa.int64(), iceberg_types.LongType(), [0, -(2**63), 34, None]),
    (pa.string(), iceberg_types.StringType(), ["", "iceberg", "🜁é", None]),
    (pa.binary(), iceberg_types.BinaryType(), [b"", b"\xff\x80\x01", None]),
    (pa.binary(3), iceberg_types.FixedType(3), [b"abc", b"\xff\x80\x01", None]),
    (pa.decimal128(20, 3), iceberg_types.DecimalType(20, 3), [Decimal("-0.128"), Decimal("14.200"), None]),
    (pa.date32(), iceberg_types.DateType(), [date(1960, 2, 3), date(2026, 11, 21), None]),
    (pa.time64("us"), iceberg_types.TimeType(), [time(22, 31, 8, 1), None]),
    (pa.timestamp("us"), iceberg_types.TimestampType(), [datetime(1955, 1, 1, 0, 0, 0, 7), None]),
]


@pytest.mark.parametrize(("kind", "iceberg_type", "values"), ICEBERG_TYPES, ids=[str(t[0]) for t in ICEBERG_TYPES])
def test_iceberg_transform_is_that_of_pyiceberg(kind: pa.DataType, iceberg_type: Any, values: list[Any]) -> None:
    batch = pa.RecordBatch.from_pydict({"k": pa.array(values, kind)})
    descriptor = TableDescriptor(batch.schema, buckets=BucketSpec(1000, ("k",), "iceberg"))
    made = IcebergAssignerFactory().create(descriptor)
    assert isinstance(made, IcebergAssigner)
    theirs = BucketTransform(1000).transform(iceberg_type, bucket=True)
    assert made.transform(batch).to_pylist() == [theirs(value) for value in values]
    assert made.transform(batch.slice(1)).to_pylist() == [theirs(value) for value in values[1:]]
