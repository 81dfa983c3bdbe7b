"""Of which columns an index can be built: the plan says so, and what is built of any answers right."""

from __future__ import annotations

import itertools
from dataclasses import replace
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
    Match,
    Nearest,
    Op,
    TableError,
    UnsupportedType,
    to_arrow,
)
from laketier_conformance.documents import ALL, Documents, kind_of_numbers
from laketier_conformance.expect import expect, goes_well, refused
from laketier_conformance.harness import Harness
from laketier_conformance.lake import Lake, Table, token
from laketier_conformance.points import ASKED, ODD, VECTORS, Pointed, vector_of
from laketier_conformance.typed_values import FLAT, NESTED

INDEXED = pytest.mark.needs(Feature.INDEXING)
VECTORED = pytest.mark.needs(Feature.SEARCH, Feature.INDEXING, Feature.VECTORS)
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
    "bytes": (pa.list_(pa.uint8(), 4), [[0, 1, 2, 255]]),
    "several-vectors": (pa.list_(pa.list_(pa.float32(), 2)), [[[0.5, 1.0], [1.0, 2.0]], []]),
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
    for number, (kind, name) in enumerate(itertools.product(IndexKind, types)):
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


@INDEXED
def test_settings_of_an_index_that_do_not_fit(lake: Lake, harness: Harness) -> None:
    """A setting of another type, or beyond what a kind can be told, is refused when the index is planned; or the index
    is built with it. A task that finds out has cost a job."""
    points = _pointed(lake, harness, 40)
    indexer = points.texts.indexer
    kinds = {kind.value: kind for kind in IndexKind}
    for name, given in {**harness.vector_options, "inverted": dict(harness.text_options)}.items():
        column = "doc" if name == "inverted" else "v"
        for key, value in {**_told(points, IndexSpec("told", column, kinds[name], given)), **given}.items():
            for odd in (*_ODD_TYPES, *(_ODD_NUMBERS if type(value) is int else ())):
                about = f"an index of kind {name} is planned with {key} = {odd!r}"
                if type(odd) is not type(value) and key in given:
                    with refused((ConfigError, FeatureNotSupported), about):
                        indexer.plan(IndexSpec("of_it", column, kinds[name], {**given, key: odd}), 1)
                    continue
                with goes_well(about, but=(ConfigError,)):
                    try:
                        plan = indexer.plan(IndexSpec("of_it", column, kinds[name], {**given, key: odd}), 1)
                    except (ConfigError, FeatureNotSupported):
                        continue
                with goes_well(f"{about}, and built, as the plan was not refused"):
                    builder = plan.builder.train()
                    [builder.build(part) for part in plan.parts]


def _told(points: Pointed, spec: IndexSpec) -> dict[str, Any]:
    """The settings that an index tells of itself, which are those that it may be given."""
    try:
        info = points.texts.index(1, spec=spec)
    except (ConfigError, FeatureNotSupported):
        return {}
    points.texts.indexer.drop(spec.name)
    return {key: value for key, value in info.options.items() if type(value) in (str, int, bool)}


_ODD_TYPES: tuple[Any, ...] = ("two", 2, 1.5, [1])
_ODD_NUMBERS = (-1, 0, 3, 6, 31, 1 << 40)


def _pointed(lake: Lake, harness: Harness, rows: int) -> Pointed:
    """A table of texts and vectors; of a format that builds no index it is never made."""
    lake.storage.indexer(lake.create(name="db.plain").info)  # a format without it refuses here
    try:
        return Pointed.of(lake, harness, rounds=1, rows=rows)
    except FeatureNotSupported:
        made = Pointed(Documents(lake.create(VECTORS), harness.text_options))
        made.append(0, range(rows))
        return made


@VECTORED
@pytest.mark.parametrize("rows", [0, 1, 2, 4, 9, 33])
def test_an_index_of_few_vectors(lake: Lake, harness: Harness, rows: int) -> None:
    """With the settings of the harness and with those of the format, also where no row has a vector: it is refused when
    it is planned, or a task says that there are too few; or it finds what there is."""
    points = _pointed(lake, harness, rows)
    texts = points.texts
    if rows == 4:
        texts = _without_vectors(points)
    for kind in (each for each in IndexKind if each.value.startswith("ivf-")):
        for options in ({}, harness.vector_options.get(kind.value, {})):
            about = f"an index of kind {kind.value} with {dict(options) or 'no settings'}, of {rows} rows"
            with goes_well(f"{about} is planned", but=(ConfigError,)):
                try:
                    plan = texts.indexer.plan(IndexSpec("of_v", "v", kind, options), 2, IndexMode.REPLACE)
                except (ConfigError, FeatureNotSupported):
                    continue
            with goes_well(f"{about} is built", but=(TableError,)):
                try:
                    builder = plan.builder.train()
                    built = [builder.build(part) for part in plan.parts]
                except TableError:
                    continue
            with goes_well(f"{about} is published and asked"):
                texts.indexer.publish(plan, built)
                found = texts.searcher.search(Nearest(ASKED[0], nprobes=1000, refine=10), k=ALL, columns=["id"]).rows
            there = [i for i in texts.ids if vector_of(i)]
            expect(sorted(found["id"].to_pylist()), there, f"{about}: the rows that it finds")


def _without_vectors(points: Pointed) -> Documents:
    """Another table, no row of which has a vector to compare."""
    made = Pointed(Documents(points.texts.table.lake.create(VECTORS, "db.none"), points.texts.options))
    made.append(0, range(ODD, ODD + 20))
    return made.texts


@INDEXED
def test_an_index_of_a_table_without_rows(table: Table, harness: Harness) -> None:
    """It is refused, or it is there and knows of none; and once there are rows, it is built."""
    indexer = table.lake.storage.indexer(table.info)
    spec = IndexSpec("of_id", "id", kind_of_numbers(indexer, "id"))
    with goes_well("an index of a table without rows", but=(ConfigError,)):
        try:
            plan = indexer.plan(spec, 2)
            info = indexer.publish(plan, [plan.builder.build(part) for part in plan.parts])
            expect((info.rows_indexed, info.rows_not_indexed), (0, 0), "the rows that it has, and has not")
            indexer.drop("of_id")
        except ConfigError:
            pass
    table.append(0)
    plan = indexer.plan(spec, 2)
    with goes_well("an index of a table that had no rows"):
        info = indexer.publish(plan, [plan.builder.build(part) for part in plan.parts])
    expect(info.rows_indexed, 5, "the rows in it")
    if harness.delete_rows is None:
        return
    harness.delete_rows(table.lake.storage, table.info, table.ids)
    for leaf in (Leaf("id", Op.GE, 0), Leaf("id", Op.EQ, 1)):
        with goes_well(f"rows are read where {leaf}, when others deleted all of them"):
            expect(table.read(filters=(leaf,)).num_rows, 0, f"the rows where {leaf}, when others deleted all of them")
    left = [each.rows_indexed - each.rows_deleted + each.rows_not_indexed for each in indexer.indexes()]
    expect(sum(left), 0, "the rows that an index has, and has not, when others deleted all of them")


@pytest.mark.needs(Feature.SEARCH, Feature.INDEXING)
def test_a_second_index_of_a_column(lake: Lake, harness: Harness) -> None:
    """It is refused, or each question finds its rows while both are there, and when one of them is gone."""
    texts = Documents.of(lake, harness)
    texts.indexer  # noqa: B018 - a format without it refuses here
    texts.filled(rounds=2)
    texts.index(2)
    spec = replace(texts.spec, name="second")
    try:
        plan, built = texts.built(1, spec=spec)
    except (ConfigError, FeatureNotSupported):
        return
    texts.append(2, range(1000, 1020))
    with goes_well("a second index of a column is published, as its plan was not refused"):
        texts.indexer.publish(plan, built)
    for told in ("two full-text indexes of a column", "one of two indexes of a column, the other one of which is gone"):
        with goes_well(told):
            found = sorted(texts.found(Match("kolt", column="doc")))
        expect(found, texts.expected("kolt"), f"the rows that 'kolt' finds, with {told}")
        if len(texts.indexer.indexes()) == 2:
            texts.indexer.drop("second")
