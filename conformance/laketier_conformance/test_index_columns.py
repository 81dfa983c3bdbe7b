"""Of which columns an index can be built: the plan says so, and what is built of any answers right."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
import pytest

from laketier.spi import (
    ConfigError,
    Feature,
    FeatureNotSupported,
    IndexKind,
    IndexMode,
    IndexSpec,
    LaketierError,
    Leaf,
    Op,
    TableError,
    UnsupportedType,
    to_arrow,
)
from laketier_conformance.documents import kind_of_numbers
from laketier_conformance.expect import expect, goes_well, refused
from laketier_conformance.lake import Lake, Table, token
from laketier_conformance.test_types import FLAT, NESTED

INDEXED = pytest.mark.needs(Feature.INDEXING)
KINDS = (
    *(IndexKind.BTREE, IndexKind.BITMAP, IndexKind.ZONEMAP, IndexKind.BLOOMFILTER),
    *(IndexKind.LABEL_LIST, IndexKind.NGRAM, IndexKind.INVERTED, IndexKind.IVF_FLAT),
)
_FLAT = (
    *(
        "bool",
        "int8",
        "uint64",
        "float16",
        "float64",
        "decimal-18-6",
        "string",
        "large_string",
        "binary",
        "fixed_binary",
    ),
    *("date32", "time64-us", "timestamp-us-utc", "duration", "dictionary", "null"),
)
_TYPES = {
    **{name: FLAT[name] for name in _FLAT},
    **{name: NESTED[name] for name in ("list-of-int", "list-of-string", "struct", "list-of-list")},
}
_ASKED = 3
"""All are built, and one of so many is published, and asked."""


def _taken(lake: Lake) -> dict[str, tuple[pa.DataType, list[Any]]]:
    """Those of the types that the format's tables take."""
    found = {}
    for number, (name, (kind, values)) in enumerate(_TYPES.items()):
        try:
            lake.create(pa.schema([("id", pa.int64()), ("v", kind)]), f"db.of_{number}")
        except (UnsupportedType, FeatureNotSupported):
            continue
        found[name] = (kind, values)
    return found


@INDEXED
def test_an_index_of_each_type(lake: Lake) -> None:
    """A plan refuses a type that its kind can't have, or tasks build it; then filters find what they find without."""
    lake.storage.indexer(lake.create(name="db.plain").info)  # a format without it refuses here
    types = _taken(lake)
    schema = pa.schema(
        [pa.field("id", pa.int64(), nullable=False), *((name, kind) for name, (kind, _) in types.items())]
    )
    table = lake.create(schema)
    rows = [_batch(schema, types, start) for start in (0, 6)]
    for epoch, batch in enumerate(rows):
        table.publish_arrow([batch], token(epoch))
    whole = table.read()
    for number, (kind, name) in enumerate(itertools.product(KINDS, types)):
        _builds_or_refuses(table, whole, kind, name, asked=number % _ASKED == 0)


def _batch(schema: pa.Schema, types: dict[str, tuple[pa.DataType, list[Any]]], start: int) -> pa.RecordBatch:
    columns = [pa.array(range(start, start + 6), pa.int64())]
    for kind, values in types.values():
        columns.append(pa.array([(*values, None)[(start + at) % (len(values) + 1)] for at in range(6)], kind))
    return pa.record_batch(columns, schema=schema)


def _builds_or_refuses(table: Table, whole: pa.Table, kind: IndexKind, column: str, *, asked: bool) -> None:
    indexer = table.lake.storage.indexer(table.info)
    about = f"an index of kind {kind.value} of a column of {whole.schema.field(column).type}"
    with goes_well(f"{about} is planned", but=(ConfigError,)):
        try:
            plan = indexer.plan(IndexSpec("of_it", column, kind), 1, IndexMode.REPLACE)
        except (ConfigError, FeatureNotSupported):
            return
    with goes_well(f"{about} is built, as its plan was not refused"):
        builder = plan.builder.train()
        built = [builder.build(part) for part in plan.parts]
    if not asked:
        return
    with goes_well(f"{about} is published"):
        indexer.publish(plan, built)
    value = whole[column][0].as_py()
    for leaf in (Leaf(column, Op.EQ, value), Leaf(column, Op.IS_NULL)):
        try:
            expected = whole.filter(to_arrow(leaf, whole.schema))["id"].to_pylist()
        except (LaketierError, pa.ArrowException, TypeError):
            continue  # such values are not compared
        with goes_well(f"{about}: rows are read where {leaf}"):
            found = sorted(table.read(columns=("id", column), filters=(leaf,))["id"].to_pylist())
        expect(found, sorted(expected), f"{about}: the rows where {leaf}")
    indexer.drop("of_it")


NAMES = ("Größe", "a b", "a.b", "UPPER", "it's", '"quoted"', "`tick`", "%41", "id ")


@INDEXED
def test_an_index_of_a_column_with_an_odd_name(lake: Lake) -> None:
    """It is refused when it is planned, or built of that column, and told under its name."""
    lake.storage.indexer(lake.create(name="db.plain").info)  # a format without it refuses here
    for number, name in enumerate(NAMES):
        schema = pa.schema([pa.field("id", pa.int64(), nullable=False), (name, pa.int64()), ("other", pa.int64())])
        try:
            table = lake.create(schema, f"db.named_{number}")
        except (ConfigError, UnsupportedType, FeatureNotSupported, TableError):
            continue  # other tests ask which names a table takes
        rows = [pa.array(values, pa.int64()) for values in (range(10), range(0, 30, 3), range(100, 110))]
        table.publish_arrow([pa.record_batch(rows, schema=schema)], token(0))
        indexer = table.lake.storage.indexer(table.info)
        about = f"an index of a column that is called {name!r}"
        try:
            plan = indexer.plan(IndexSpec("of_it", name, kind_of_numbers(indexer, "id")), 1)
        except (ConfigError, FeatureNotSupported):
            continue
        with goes_well(about):
            info = indexer.publish(plan, [plan.builder.build(part) for part in plan.parts])
            expect((info.column, info.rows_indexed), (name, 10), f"{about}: its column, and the rows that it has")
            found = table.read(columns=("id", name), filters=(Leaf("id", Op.GE, 0), Leaf(name, Op.EQ, 12)))
        expect(found["id"].to_pylist(), [4], f"{about}: the rows where it is 12")


@INDEXED
def test_an_index_has_a_name_of_its_own(table: Table) -> None:
    """A name that is none, or that leads to another place, is refused before a task runs: see `check_index_name`. A
    column that differs by case is another one."""
    indexer = table.lake.storage.indexer(table.info)
    table.append(0)
    kind = kind_of_numbers(indexer, "id")
    for name in ("", " ", "..", "../of_id", "a/b", "a\\b", " of_id", "of_id\n", "x" * 1000):
        with refused((ConfigError, FeatureNotSupported), f"an index is planned that is called {name[:20]!r}"):
            indexer.plan(IndexSpec(name, "id", kind), 1)
    with refused((ConfigError, FeatureNotSupported), "an index of column 'ID' is planned, and there is 'id'"):
        indexer.plan(IndexSpec("of_id", "ID", kind), 1)
