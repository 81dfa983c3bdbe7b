"""Every Arrow type comes back as it was, or is refused when the table is created."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.types as pt
import pytest

from laketier.spi import AddColumn, Feature, FeatureNotSupported, IncompatibleData, UnsupportedType
from laketier_conformance.column_types import alike
from laketier_conformance.expect import difference, expect, goes_well, refused, told
from laketier_conformance.lake import Lake, token
from laketier_conformance.typed_values import BASIC, FLAT, NESTED, VECTORS

REFUSE = (
    "a type that the format can't hold exactly is refused when the table is created: raise UnsupportedType, with the "
    "type and advice, in `create_table`, or in `check_types` of a ManifestTable"
)


def _needed(kind: pa.DataType) -> str:
    if all(kind != FLAT[name][0] for name in BASIC):
        return f"every format has to hold {kind}, or to declare that it does not"
    return (
        f"every format has to hold {kind}, as it has to hold {', '.join(str(FLAT[name][0]) for name in BASIC)}: where "
        "files have no such type, keep its values as those of another one"
    )


def comes_back_or_is_refused(lake: Lake, kind: pa.DataType, values: list[Any], *, refusable: bool = True) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("v", kind)])
    # One between values, too: what is made anew from what lists and vectors hold has nothing in its place.
    column = pa.array([*values[:1], None, *values[1:], None], kind)
    rows = pa.record_batch([pa.array(range(len(column))), column], schema=schema)
    refusal: UnsupportedType | None = None
    advice = REFUSE if refusable else _needed(kind)
    try:
        with goes_well(f"a table with a column of {kind} is created ({advice})", but=(UnsupportedType,)):
            lake.create(schema, "db.typed")
    except UnsupportedType as error:
        refusal = error
    except FeatureNotSupported as error:
        raise AssertionError(f"a column of {kind} is refused, found {told(error)} ({advice})") from error
    if refusal is not None:
        assert refusable, f"{_needed(kind)}; the refusal is {told(refusal)}"
        assert refusal.fix, "a refused type needs advice"
        expect(
            lake.storage.catalog().list_tables(),
            [],
            "the tables of the warehouse after a type was refused: it leaves nothing behind",
        )
        return
    table = lake.create(schema, "db.typed")
    declared = table.info.schema.field("v").type
    if not alike(declared, kind):
        raise AssertionError(f"{kind} silently became {declared}: refuse it with UnsupportedType ({REFUSE})")
    with goes_well(f"a column of {kind} is written, which the catalog took ({advice})"):
        table.publish_arrow([rows], token(0))
    with goes_well(f"a column of {kind} is read, which was written ({advice})"):
        read = table.read()
    expect(read.schema.field("v").type, declared, f"the type of {kind} that is read")
    if pt.is_string_view(declared):
        read = read.set_column(1, "v", read["v"].cast(pa.string()))  # Arrow can't sort views yet
    read = read.sort_by("id")
    found = read["v"].combine_chunks()
    if not same(found, column):
        raise AssertionError(
            f"values of {kind} come back as written: {difference(shown(found), shown(column))} ({advice})"
        )


def same(read: pa.Array, written: pa.Array) -> bool:
    """Equal values and nulls; NaN equals NaN, and zeros keep their sign."""
    if pt.is_timestamp(written.type) and written.type.unit == "ns":  # Python's datetime would lose the nanoseconds
        return bool(read.cast(pa.int64()).equals(written.cast(pa.int64())))
    if pt.is_timestamp(written.type) and written.type.tz is not None:
        read, written = (column.cast(pa.timestamp(column.type.unit, "UTC")) for column in (read, written))
    return repr(read.to_pylist()) == repr(written.to_pylist())


def shown(column: pa.Array) -> list[str]:
    """Values in a message, in which NaN is NaN, and minus zero is not zero."""
    return [repr(value) for value in column.to_pylist()]


@pytest.mark.usefixtures("far_from_utc")
@pytest.mark.parametrize("name", FLAT)
def test_flat(lake: Lake, name: str) -> None:
    comes_back_or_is_refused(lake, *FLAT[name], refusable=name not in BASIC)


@pytest.mark.shows(Feature.NESTED_TYPES)
@pytest.mark.parametrize("name", NESTED)
def test_nested(lake: Lake, name: str) -> None:
    comes_back_or_is_refused_as_declared(lake, Feature.NESTED_TYPES, *NESTED[name])


INNER = {
    "struct": (pa.struct([pa.field("a", pa.int64(), nullable=False)]), {"a": 1}, {"a": None}),
    "list": (pa.list_(pa.field("item", pa.int64(), nullable=False)), [1], [None]),
    "map": (pa.map_(pa.string(), pa.field("value", pa.int64(), nullable=False)), [("k", 1)], [("k", None)]),
}
"""What is not null inside of a column that may be: its type, a value, and what it may not be."""


@pytest.mark.needs(Feature.NESTED_TYPES)
def test_not_null_inside_of_a_type(lake: Lake) -> None:
    """It is kept when a table is made, and when a column is added; or the type is refused. Rows keep to it. Where a
    value is null itself there is nothing inside, whatever Arrow has there."""
    schema = pa.schema([("id", pa.int64()), *((name, kind) for name, (kind, _, _) in INNER.items())])
    try:
        table = lake.create(schema, "db.inner")
    except UnsupportedType:
        if lake.declares(Feature.NESTED_TYPES):
            return
        raise  # the run judges the refusal of what is declared unsupported
    more = [pa.field(f"more_{name}", kind) for name, (kind, _, _) in INNER.items()]
    if lake.declares(Feature.ADD_COLUMN):
        lake.storage.catalog().alter_table(table.path, [AddColumn(field) for field in more])
    for field in table.info.schema:
        if field.name != "id":
            kind = INNER[field.name.removeprefix("more_")][0]
            expect(inner(field.type), inner(kind), f"whether nulls may be inside of {field.name}: {kind}")
    good = {name: [value] for name, (_, value, _) in INNER.items()}
    some = {name: pa.array([value], kind) for name, (kind, value, _) in INNER.items()}
    # Arrow's own nulls have nulls inside, too.
    nulls = {name: pa.concat_arrays([pa.nulls(1, kind), some[name]]) for name, (kind, _, _) in INNER.items()}
    for epoch, (ids, rows) in enumerate((([0], some), ([2, 3], nulls))):
        with goes_well("values with no null inside are written, and then nulls beside them"):
            table.publish_arrow([pa.RecordBatch.from_pydict({"id": ids, **rows}, schema=schema)], token(epoch))
    for name, (kind, _, bad) in INNER.items():
        free = pa.schema(
            [("id", pa.int64()), *((n, nullable(k) if n == name else k) for n, (k, _, _) in INNER.items())]
        )
        rows = pa.RecordBatch.from_pydict({"id": [1], **good, name: [bad]}, schema=free)
        with refused(IncompatibleData, f"a null inside of {kind}, which is not null, is written"):
            table.stage_arrow([rows])
    read = table.read(columns=("id", *INNER)).sort_by("id").to_pylist()
    whole, none = ({name: value if there else None for name, (_, value, _) in INNER.items()} for there in (1, 0))
    expect(read, [{"id": 0, **whole}, {"id": 2, **none}, {"id": 3, **whole}], "rows of such types")


def inner(kind: pa.DataType) -> list[bool]:
    """Whether what is inside of a type may be null; a map's keys never are."""
    if pt.is_map(kind):
        return [kind.item_field.nullable]
    return [kind.field(i).nullable for i in range(kind.num_fields)]


def nullable(kind: pa.DataType) -> pa.DataType:
    """A type that has nulls inside."""
    if pt.is_struct(kind):
        return pa.struct([field.with_nullable(True) for field in kind.fields])
    if pt.is_map(kind):
        return pa.map_(kind.key_type, kind.item_field.with_nullable(True))
    return pa.list_(kind.value_field.with_nullable(True))


@pytest.mark.shows(Feature.VECTORS)
@pytest.mark.parametrize("name", VECTORS)
def test_vectors(lake: Lake, name: str) -> None:
    comes_back_or_is_refused_as_declared(lake, Feature.VECTORS, *VECTORS[name])


WITHOUT_NUMBERS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "vector": (pa.list_(pa.float32(), 0), [[], []]),
    "vector-of-vectors": (pa.list_(pa.list_(pa.float32(), 0), 2), [[[], []]]),
}


@pytest.mark.parametrize("name", WITHOUT_NUMBERS)
def test_vectors_without_numbers(lake: Lake, name: str) -> None:
    """Each is there or is null, and comes back so; or the type is refused, as nobody needs it."""
    kind, values = WITHOUT_NUMBERS[name]
    if lake.declares(Feature.VECTORS):
        comes_back_or_is_refused(lake, kind, values)
    else:
        comes_back_or_is_refused_as_declared(lake, Feature.VECTORS, kind, values)


def test_a_vector_in_a_struct_that_is_null(lake: Lake) -> None:
    """The vector itself may not be null, and is not where there is a struct. The row comes back; or the type is
    refused, as some files of it can't be read."""
    kind = pa.struct([pa.field("v", pa.list_(pa.float32(), 2), nullable=False)])
    values = [{"v": [1.0, 2.0]}, None, {"v": [3.0, 4.0]}]
    missing = [feature for feature in (Feature.VECTORS, Feature.NESTED_TYPES) if not lake.declares(feature)]
    if missing:
        comes_back_or_is_refused_as_declared(lake, missing[0], kind, values)
    else:
        comes_back_or_is_refused(lake, kind, values)


def comes_back_or_is_refused_as_declared(lake: Lake, feature: Feature, kind: pa.DataType, values: list[Any]) -> None:
    """A feature about types is refused as such, or as the type that it is."""
    if lake.declares(feature):
        comes_back_or_is_refused(lake, kind, values, refusable=False)
    else:
        with refused(
            (FeatureNotSupported, UnsupportedType),
            f"a table with a column of {kind} is created where {feature.value} is declared unsupported",
        ):
            lake.create(pa.schema([("v", kind)]), "db.typed")
        expect(lake.storage.catalog().list_tables(), [], "the tables of the warehouse after a type was refused")
