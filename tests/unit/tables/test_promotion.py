"""The rule of types: no order and no grouping of files changes what comes out."""

from __future__ import annotations

from itertools import product

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laketier.spi import IncompatibleData, widens
from laketier.tables.inference import SchemaSet
from laketier.tables.promotion import Spelling, promoted

SCALARS = [
    pa.null(), pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(),
    pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
    pa.float16(), pa.float32(), pa.float64(),
    pa.decimal32(5, 2), pa.decimal64(10, 2), pa.decimal128(5, 2), pa.decimal128(3, 0), pa.decimal128(20, 10),
    pa.decimal128(38, 0), pa.decimal128(38, 38), pa.decimal256(40, 2), pa.decimal256(76, 0),
    pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.binary(4), pa.binary(8),
    pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"),
    pa.timestamp("s"), pa.timestamp("us"), pa.timestamp("ns"),
    pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC"), pa.timestamp("us", "Europe/Berlin"),
    pa.duration("s"), pa.duration("ms"),
]  # fmt: skip
TEXT = [
    pa.null(), pa.bool_(), pa.int64(), pa.float64(), pa.string(), pa.date32(), pa.time32("s"), pa.time64("us"),
    pa.timestamp("s"), pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("s", "UTC"), pa.timestamp("us", "UTC"),
]  # fmt: skip
"""What lines are found to hold."""
KINDS = {Spelling.TYPED: SCALARS, Spelling.JSON: TEXT, Spelling.CSV: TEXT}


def types_of(scalars: list[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    return st.recursive(
        st.sampled_from(scalars),
        lambda inner: st.one_of(
            st.builds(lambda t, n: pa.list_(pa.field(n, t)), inner, st.sampled_from(["item", "element"])),
            st.builds(pa.large_list, inner),
            st.builds(pa.list_, inner, st.sampled_from([2, 3])),
            st.builds(
                lambda fields: pa.struct(
                    [pa.field(n, t, nullable=null or pa.types.is_null(t)) for n, (t, null) in fields.items()]
                ),
                st.dictionaries(st.sampled_from("abc"), st.tuples(inner, st.booleans()), min_size=1, max_size=3),
            ),
            st.builds(lambda t, s: pa.map_(pa.string(), t, keys_sorted=s), inner, st.booleans()),
        ),
        max_leaves=4,
    )


TRIPLES = st.one_of([st.tuples(st.just(spelling), *[types_of(scalars)] * 3) for spelling, scalars in KINDS.items()])
SPELLINGS = st.sampled_from(list(Spelling))


def in_order(kind: pa.DataType | None) -> object:
    """A type without the order of its structs' fields."""
    if kind is None:
        return None
    if pa.types.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        return ("struct", tuple(sorted((f.name, f.nullable, repr(in_order(f.type))) for f in fields)))
    if pa.types.is_nested(kind):
        parts = [kind.field(i) for i in range(kind.num_fields)]
        size = kind.list_size if pa.types.is_fixed_size_list(kind) else None
        ordered = kind.keys_sorted if pa.types.is_map(kind) else None
        return (type(kind).__name__, size, ordered, tuple((f.name, f.nullable, repr(in_order(f.type))) for f in parts))
    return str(kind), type(kind).__name__


def join(one: pa.DataType | None, two: pa.DataType | None, spelling: Spelling) -> pa.DataType | None:
    return None if one is None or two is None else promoted(one, two, spelling)


@pytest.mark.parametrize("spelling", list(Spelling))
def test_scalars_join_in_any_order_and_grouping(spelling: Spelling) -> None:
    kinds = KINDS[spelling]
    pairs = {(a, b): promoted(kinds[a], kinds[b], spelling) for a, b in product(range(len(kinds)), repeat=2)}
    for (a, b), found in pairs.items():
        assert in_order(found) == in_order(pairs[b, a]), (kinds[a], kinds[b])
    for (a, b), c in product(pairs, range(len(kinds))):
        left = join(pairs[a, b], kinds[c], spelling)
        right = join(kinds[a], pairs[b, c], spelling)
        assert in_order(left) == in_order(right), (kinds[a], kinds[b], kinds[c])


@given(TRIPLES)
@settings(max_examples=400)
def test_nested_types_join_in_any_order_and_grouping(
    drawn: tuple[Spelling, pa.DataType, pa.DataType, pa.DataType],
) -> None:
    spelling, a, b, c = drawn
    assert in_order(join(a, b, spelling)) == in_order(join(b, a, spelling))
    assert join(a, a, spelling) == a
    left, right = join(join(a, b, spelling), c, spelling), join(a, join(b, c, spelling), spelling)
    assert in_order(left) == in_order(right)


def test_the_name_of_an_element_is_decided_by_no_order() -> None:
    """Arrow's own comparison takes them for equal."""
    spellings = [pa.list_(pa.field(name, pa.int32())) for name in ("item", "element", "array")]
    for one, other in product(spellings, repeat=2):
        found = promoted(one, other)
        assert isinstance(found, pa.ListType)
        assert found.value_field.name == (one.value_field.name if one is other else "element")


def test_a_column_that_may_widen_is_promoted_to_the_wider_type() -> None:
    for old, new in product(SCALARS, repeat=2):
        if widens(old, new) and not pa.types.is_decimal(old):
            assert promoted(old, new) == promoted(new, old) == new
    assert widens(pa.decimal128(5, 2), pa.decimal128(7, 2))
    assert promoted(pa.decimal128(5, 2), pa.decimal128(7, 2)) == pa.decimal128(7, 2)


@pytest.mark.parametrize(
    ("one", "other", "typed", "json", "csv"),
    [
        (pa.int32(), pa.int64(), pa.int64(), pa.int64(), pa.int64()),
        (pa.int32(), pa.float32(), pa.float64(), pa.float64(), pa.float64()),
        (pa.int64(), pa.float64(), None, pa.float64(), pa.float64()),
        (pa.float64(), pa.string(), None, None, pa.string()),
        (pa.bool_(), pa.int64(), None, None, pa.string()),
        (pa.timestamp("s"), pa.string(), None, pa.string(), pa.string()),
        (pa.date32(), pa.timestamp("us"), pa.timestamp("us"), pa.timestamp("us"), pa.timestamp("us")),
        (pa.timestamp("s"), pa.timestamp("s", "UTC"), None, pa.string(), pa.string()),
        (pa.timestamp("s", "Asia/Tokyo"), pa.timestamp("s", "UTC"), *[pa.timestamp("s", "UTC")] * 3),
        (pa.uint8(), pa.int8(), *[pa.int16()] * 3),
        (pa.uint64(), pa.int64(), *[pa.decimal128(20, 0)] * 3),
        (pa.decimal128(5, 2), pa.decimal128(5, 4), *[pa.decimal128(7, 4)] * 3),
        (pa.decimal128(5, 2), pa.int64(), *[pa.decimal128(21, 2)] * 3),
        (pa.list_(pa.int32()), pa.int32(), None, None, None),
        (pa.struct([("a", pa.int32())]), pa.string(), None, None, None),
    ],
)  # fmt: skip
def test_the_table_of_promotions(one, other, typed, json, csv) -> None:  # type: ignore[no-untyped-def]
    for spelling, wanted in zip(Spelling, (typed, json, csv), strict=True):
        assert promoted(one, other, spelling) == wanted


def test_what_is_joined_holds_the_values_of_both() -> None:
    """No type of a join changes a value: Arrow casts the extremes of each, safely."""
    extremes = {
        **{
            t: [2 ** (t.bit_width - 1) - 1, -(2 ** (t.bit_width - 1))] for t in SCALARS if pa.types.is_signed_integer(t)
        },
        **{t: [2**t.bit_width - 1, 0] for t in SCALARS if pa.types.is_unsigned_integer(t)},
    }
    for (one, values), other in product(extremes.items(), SCALARS):
        kind = promoted(one, other)
        if kind is not None:
            assert [int(v) for v in pa.array(values, one).cast(kind).to_pylist()] == values, (one, other)


SCHEMAS = st.lists(
    st.dictionaries(st.sampled_from("abcd"), st.sampled_from(SCALARS), min_size=1, max_size=3).map(pa.schema),
    min_size=1,
    max_size=6,
)


def outcome(schemas: SchemaSet) -> str:
    try:
        return schemas.schema().to_string()
    except IncompatibleData as error:
        return str(error)


@given(SCHEMAS, SPELLINGS, st.data())
@settings(max_examples=300)
def test_any_order_and_grouping_of_files_gives_the_same_schema_or_error(schemas, spelling, data) -> None:  # type: ignore[no-untyped-def]
    files = [(f"f{at}", schema) for at, schema in enumerate(schemas)]
    alone = SchemaSet(spelling)
    for name, schema in files:
        alone.add(schema, name)
    shuffled = data.draw(st.permutations(files))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(files)), max_size=3)))
    parts = [shuffled[a:b] for a, b in zip([0, *cuts], [*cuts, len(files)], strict=True)]
    groups = []
    for part in parts:
        groups.append(SchemaSet(spelling))
        for name, schema in part:
            groups[-1].add(schema, name)
    both = SchemaSet(spelling)
    both.update(groups)
    assert outcome(both) == outcome(alone)
    assert both.files == len(files)


def test_columns_come_in_the_order_of_the_first_files_that_have_them() -> None:
    schemas = SchemaSet()
    schemas.add(pa.schema([("late", pa.int8()), ("id", pa.int64())]), "b.parquet")
    schemas.add(pa.schema([pa.field("id", pa.int32(), nullable=False), ("name", pa.null())]), "a.parquet")
    assert schemas.schema() == pa.schema([("id", pa.int64()), ("name", pa.string()), ("late", pa.int8())])


def test_a_column_that_each_file_has_stays_not_null() -> None:
    schemas = SchemaSet()
    for name in ("a", "b"):
        schemas.add(pa.schema([pa.field("id", pa.int32(), nullable=False)]), name)
    assert schemas.schema() == pa.schema([pa.field("id", pa.int32(), nullable=False)])


def test_a_conflict_names_the_column_both_types_and_both_files() -> None:
    schemas = SchemaSet()
    inner = [pa.struct([("c", kind)]) for kind in (pa.int8(), pa.int16(), pa.string())]
    for name, kind in zip("xyz", inner, strict=True):
        schemas.add(pa.schema([("a", pa.list_(kind))]), name)
    with pytest.raises(IncompatibleData) as caught:
        schemas.schema()
    assert caught.value.what == "column 'a.element.c' is int8 in 'x' and string in 'z'"
    assert schemas.schema({"a": pa.string()}) == pa.schema([("a", pa.string())])


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (pa.schema([("a", pa.int8()), ("a", pa.int8())]), "is there twice"),
        (pa.schema([("a", pa.struct([("b", pa.int8()), ("b", pa.int8())]))]), "is there twice"),
        (pa.schema([("", pa.int8())]), "has no name"),
        (pa.schema([(f"c{i}", pa.int8()) for i in range(10_001)]), "is one of more than 10,000"),
    ],
)
def test_columns_that_no_table_can_have_are_refused_by_the_file(schema: pa.Schema, why: str) -> None:
    with pytest.raises(IncompatibleData, match=why) as caught:
        SchemaSet().add(schema, "odd.parquet")
    assert caught.value.where == "odd.parquet"


def test_ten_thousand_columns_are_taken() -> None:
    schemas = SchemaSet()
    wide = pa.schema([(f"c{i}", pa.int8()) for i in range(10_000)])
    schemas.add(wide, "a")
    schemas.add(pa.schema(list(reversed(wide))), "b")
    assert schemas.schema() == wide


def test_types_that_are_nested_too_deeply_are_refused() -> None:
    kind: pa.DataType = pa.int8()
    for _ in range(70):
        kind = pa.list_(kind)
    with pytest.raises(IncompatibleData, match="nested too deeply"):
        SchemaSet().add(pa.schema([("deep", kind)]), "deep.parquet")


def test_columns_that_differ_by_case_are_refused_with_both_files() -> None:
    schemas = SchemaSet()
    schemas.add(pa.schema([("Id", pa.int8())]), "b")
    schemas.add(pa.schema([("id", pa.int8())]), "a")
    with pytest.raises(IncompatibleData, match="'id' in 'a' and 'Id' in 'b' differ by case only"):
        schemas.schema()
