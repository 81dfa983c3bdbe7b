"""Whatever others did to a table since its indexes were built, a question is answered as a plain scan would."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads
import pytest

from laketier.spi import (
    AddColumn,
    And,
    Boolean,
    ConfigError,
    FeatureNotSupported,
    IndexKind,
    IndexMode,
    IndexSpec,
    Leaf,
    Match,
    Nearest,
    Not,
    Op,
    Or,
    Phrase,
    RenameColumn,
    ScanRequest,
    TableChanged,
    TableError,
    WidenColumn,
    WriteMode,
    to_arrow,
)
from laketier_lance.filters import to_sql

NUMBERS = [None, -5, 0, 1, 2, 2**31 - 1, -(2**31), None, 3]
TEXTS = [
    None,
    "",
    "a",
    "ab",
    "a%b",
    "a_b",
    "A",
    "é",
    "\U0010ffff",
    "a\U0010ffffz",
    "\uffff",
    "a'",
    "  ",
    "a\\b",
    "snow lake",
]
DOCS = ["snow lake", "", None, "snow", "stone snow stone", "SNOW", "!!", "lake"]
KINDS = {
    "n_btree": IndexKind.BTREE,
    "n_bitmap": IndexKind.BITMAP,
    "n_zones": IndexKind.ZONEMAP,
    "n_bloom": IndexKind.BLOOMFILTER,
    "s_btree": IndexKind.BTREE,
    "s_bitmap": IndexKind.BITMAP,
    "s_zones": IndexKind.ZONEMAP,
    "s_bloom": IndexKind.BLOOMFILTER,
    "s_ngram": IndexKind.NGRAM,
    "doc": IndexKind.INVERTED,
    "v": IndexKind.IVF_FLAT,
}
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        *((name, pa.int32() if name.startswith("n_") else pa.string()) for name in KINDS if name != "v"),
        ("v", pa.list_(pa.float32(), 2)),
        ("plain", pa.int32()),
    ]
)
OPTIONS = {"doc": {"with_position": True, "stem": False, "remove_stop_words": False}, "v": {"num_partitions": 3}}


def rows(first: int, count: int) -> pa.Table:
    ids = range(first, first + count)
    vectors = [
        None if i % 11 == 3 else [float("nan"), 1.0] if i % 11 == 7 else [float(i % 5), float(i % 7)] for i in ids
    ]

    def values(name: str) -> list[Any]:
        pool = DOCS if name == "doc" else NUMBERS if name.startswith("n_") else TEXTS
        return [pool[(i * 7 + i // 3) % len(pool)] for i in ids]

    found = {name: vectors if name == "v" else values(name) for name in KINDS}
    return pa.table({"id": list(ids), **found, "plain": [i % 4 for i in ids]}, schema=SCHEMA)


def append(table: Any) -> None:
    lance.write_dataset(rows(40, 20), table.location, mode="append")


def delete(table: Any) -> None:
    table.open().delete("id % 3 = 1")


def update(table: Any) -> None:
    """The rows move to fragments that no index has."""
    changed = {"n_btree": "plain", "n_bitmap": "NULL", "n_zones": "3", "s_btree": "'ab'", "s_ngram": "NULL"}
    table.open().update(changed | {"doc": "'snow again'"}, where="id % 4 = 1")


def merge(table: Any) -> None:
    new = rows(30, 20)
    table.open().merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(new)


def compact(table: Any) -> None:
    table.open().optimize.compact_files(materialize_deletions_threshold=0.0)


def compact_later(table: Any) -> None:
    """Lance tells the indexes afterwards what moved, by an index of its own."""
    delete(table)
    table.open().optimize.compact_files(defer_index_remap=True, materialize_deletions_threshold=0.0)


def clean(table: Any) -> None:
    table.open().cleanup_old_versions(timedelta(0))


def rename(table: Any) -> None:
    table.storage.catalog().alter_table(table.path, [RenameColumn("plain", "other")])


def restore(table: Any) -> None:
    version = table.open().version
    delete(table)
    append(table)
    lance.dataset(table.location, version=version).restore()


def empty(table: Any) -> None:
    table.open().delete("true")
    append(table)


HISTORIES: dict[str, tuple[Callable[[Any], None], ...]] = {
    "appended": (append,),
    "updated": (delete, update),
    "merged": (merge,),
    "compacted": (append, update, compact, clean),
    "compacted later": (append, compact_later),
    "restored": (restore, rename),
    "emptied": (empty,),
}


def predicates(column: str) -> list[Any]:
    if column.startswith("n_"):
        found = [Leaf(column, op, value) for op in (Op.EQ, Op.NE, Op.LT, Op.GE) for value in (0, 3, 2**31 - 1)]
        found += [Leaf(column, Op.IN, (0, None)), Leaf(column, Op.IN, (None,)), Leaf(column, Op.IN, (1, -5))]
    else:
        found = [Leaf(column, op, value) for op in (Op.EQ, Op.NE, Op.GT) for value in ("", "ab", "a\U0010ffffz")]
        found += [Leaf(column, Op.IN, ("ab", None)), Leaf(column, Op.LE, "\uffff")]
        found += [
            Leaf(column, Op.STARTS_WITH, prefix) for prefix in ("", "a", "a%", "a_", "a\U0010ffff", "\uffff", "a\\")
        ]
    found += [Leaf(column, Op.IS_NULL), Leaf(column, Op.NOT_NULL)]
    other = Leaf("id", Op.GT, 12)
    return [*found, *map(Not, found), *(Or((leaf, other)) for leaf in found[::3])]


def typed(predicate: Any, schema: pa.Schema) -> Any:
    """With literals of its columns' types, as Arrow compares no others."""
    match predicate:
        case And(children=children) | Or(children=children):
            return type(predicate)(tuple(typed(each, schema) for each in children))
        case Not(child=child):
            return Not(typed(child, schema))
        case Leaf(op=Op.IS_NULL | Op.NOT_NULL | Op.STARTS_WITH):
            return predicate
    kind = schema.field(predicate.column).type
    if predicate.op is Op.IN:
        return replace(
            predicate, value=tuple(None if each is None else pa.scalar(each, kind) for each in predicate.value)
        )
    return replace(predicate, value=pa.scalar(predicate.value, kind))


def indexed(table: Any, *columns: str) -> None:
    indexer = table.storage.indexer(table.info)
    for column in columns:
        plan = indexer.plan(IndexSpec(f"{column}_idx", column, KINDS[column], OPTIONS.get(column, {})), 2)
        builder = plan.builder.train()
        indexer.publish(plan, [builder.build(part) for part in plan.parts])


@pytest.fixture
def table(make_table: Callable[..., Any]) -> Any:
    made = make_table(SCHEMA)
    for first, count in ((0, 25), (25, 15)):
        lance.write_dataset(rows(first, count), made.location, mode="append")
    indexed(made, *KINDS)
    return made


def found_in(dataset: Any, predicate: Any) -> list[int]:
    sql = to_sql(predicate, dataset.schema)
    assert sql is not None, predicate
    return sorted(dataset.to_table(["id"], filter=sql)["id"].to_pylist())


def found_by_filter(table: Any, predicate: Any) -> list[int]:
    source = table.storage.source(table.info)
    plan = source.plan(ScanRequest(columns=("id",), filters=(predicate,)))
    assert plan.remaining == (), predicate
    return sorted(i for split in plan.splits for b in source.read(split, plan.schema) for i in b["id"].to_pylist())


def words_of(text: str | None) -> list[str]:
    return [] if text is None else text.lower().split()


@pytest.mark.every(3)
@pytest.mark.parametrize("history", HISTORIES)
def test_answers_are_those_of_a_plain_scan(table: Any, history: str) -> None:
    for step in HISTORIES[history]:
        step(table)
    table.reload()
    assert [each.name for each in table.storage.indexer(table.info).indexes()] == sorted(
        f"{each}_idx" for each in KINDS
    )
    everything = table.scan()
    now, dataset, used = table.open(), pads.dataset(everything), 0
    for column in (each for each in KINDS if each[1:2] == "_"):
        for predicate in predicates(column):
            expected = dataset.to_table(filter=to_arrow(typed(predicate, everything.schema)), columns=["id"])
            assert found_in(now, predicate) == sorted(expected["id"].to_pylist()), predicate
        asked = f"{column} = {0 if column.startswith('n_') else chr(39) + 'ab' + chr(39)}"
        used += "ScalarIndexQuery" in now.scanner(filter=asked).explain_plan()
    assert used > 3 or history == "emptied", "else nothing was asked of an index"
    search = table.storage.searcher(table.info).search
    docs = dict(zip(everything["id"].to_pylist(), everything["doc"].to_pylist(), strict=True))
    for word in ("snow", "again", "nowhere"):
        expected_rows = sorted(number for number, doc in docs.items() if word in words_of(doc))
        for query in (Match(word), Phrase(word), Boolean(must=(Match(word),))):
            assert sorted(search(query, k=100, columns=["id"]).rows["id"].to_pylist()) == expected_rows, query
    vectors = {row["id"]: row["v"] for row in everything.select(["id", "v"]).to_pylist() if row["v"] is not None}
    asked = np.array([1.2, 3.4], np.float32)
    far = {number: float(((np.array(v, np.float32) - asked) ** 2).sum()) for number, v in vectors.items()}
    near = sorted(each for each in far.values() if np.isfinite(each))
    for query in (Nearest((1.2, 3.4), nprobes=3), Nearest((1.2, 3.4), exact=True)):
        got = search(query, k=100, columns=["id"]).rows
        assert np.allclose(got["_distance"].to_numpy(), near, atol=1e-4)
        assert all(np.isclose(far[number], at, atol=1e-4) for number, at in zip(*got.to_pydict().values(), strict=True))
    few = search(Nearest((1.2, 3.4), nprobes=3), k=5, filters=[Leaf("n_bitmap", Op.IS_NULL)]).rows
    assert few["n_bitmap"].null_count == len(few) > 0


def test_words_are_found_whatever_was_indexed(make_table: Callable[..., Any]) -> None:
    """Of empty texts and nulls an index has no mean length of a text, by which scores are divided."""
    for first in ([""] * 3, [None] * 2, ["!!", "??"], ["the"]):
        table = make_table(pa.schema([("id", pa.int64()), ("doc", pa.string())]))
        lance.write_dataset(
            pa.table({"id": range(len(first)), "doc": first}, schema=table.schema), table.location, mode="append"
        )
        indexed(table, "doc")
        more = pa.table({"id": [10, 11, 12], "doc": ["snow lake", None, "lake"]}, schema=table.schema)
        lance.write_dataset(more, table.location, mode="append")
        search = table.storage.searcher(table.info).search
        for _ in range(2):
            assert search("lake").rows["id"].to_pylist() == [12, 10], "the shorter one first"
            assert search("snow", filters=[Leaf("id", Op.GT, 3)]).rows["id"].to_pylist() == [10]
            indexer = table.storage.indexer(table.info)
            plan = indexer.plan(IndexSpec("doc_idx", "doc", IndexKind.INVERTED), 2, IndexMode.APPEND)
            indexer.publish(plan, [plan.builder.build(part) for part in plan.parts])


TOKENIZERS = (
    {},
    {"base_tokenizer": "whitespace"},
    {"base_tokenizer": "raw"},
    {"base_tokenizer": "ngram"},
    {"stem": False},
)
TRICKY = [
    "snow lake",
    "the snow",
    "",
    None,
    "Snöw läke",
    "running runs",
    "snow the lake",
    "lake-snow",
    "x" * 50,
    "foo_bar",
    "日本語",
]


@pytest.mark.every(2)
@pytest.mark.parametrize("options", TOKENIZERS, ids=str)
@pytest.mark.parametrize("kind", [pa.string(), pa.list_(pa.large_string())], ids=str)
def test_rows_that_no_index_covers_are_found_as_those_in_it(
    make_table: Callable[..., Any], options: dict[str, Any], kind: pa.DataType
) -> None:
    texts = TRICKY if kind == pa.string() else [text and text.split("-") for text in TRICKY]
    schema = pa.schema([("id", pa.int64()), ("doc", kind)])
    first = pa.table({"id": [-1], "doc": pa.array([texts[0]], kind)}, schema=schema)
    more = pa.table({"id": range(len(texts)), "doc": pa.array(texts, kind)}, schema=schema)
    searches = []
    for before, after in (([first, more], []), ([first], [more])):
        table = make_table(schema)
        for each in before:
            lance.write_dataset(each, table.location, mode="append")
        indexer = table.storage.indexer(table.info)
        plan = indexer.plan(IndexSpec("x", "doc", IndexKind.INVERTED, {"with_position": True, **options}), 1)
        indexer.publish(plan, [plan.builder.build(part) for part in plan.parts])
        for each in after:
            lance.write_dataset(each, table.location, mode="append")
        searches.append(table.storage.searcher(table.info).search)
    for text in ("snow", "the", "lake snow", "runs", "lake-snow", "foo", "x" * 50):
        for query in (
            Match(text),
            Match(text, operator="and"),
            Phrase(text),
            Boolean(must=(Match(text),), must_not=(Match("the"),)),
        ):
            if isinstance(query, Phrase) and options.get("base_tokenizer") == "ngram":
                with pytest.raises(FeatureNotSupported, match="phrase"):
                    searches[0](query)
                continue
            indexed, flat = (sorted(search(query, k=50).rows["id"].to_pylist()) for search in searches)
            assert indexed == flat, query


def test_an_index_goes_with_its_column_and_not_with_its_name(make_table: Callable[..., Any]) -> None:
    table = make_table(pa.schema([("id", pa.int64()), ("doc", pa.string()), ("n_btree", pa.int32())]))
    lance.write_dataset(
        pa.table({"id": [1, 2], "doc": ["snow", "lake"], "n_btree": [5, 6]}, schema=table.schema),
        table.location,
        mode="append",
    )
    indexed(table, "doc", "n_btree")
    catalog = table.storage.catalog()
    catalog.alter_table(table.path, [RenameColumn("doc", "was"), RenameColumn("n_btree", "m")])
    catalog.alter_table(
        table.path, [AddColumn(pa.field("doc", pa.string())), AddColumn(pa.field("n_btree", pa.int32()))]
    )
    table.reload()
    rows = {"id": [3], "was": ["stone"], "m": [7], "doc": ["snow"], "n_btree": [5]}
    lance.write_dataset(pa.table(rows, schema=table.open().schema.remove_metadata()), table.location, mode="append")
    search = table.storage.searcher(table.info).search
    assert search("snow").rows["id"].to_pylist() == [1]
    with pytest.raises(ConfigError, match="column 'doc' has no full-text index"):
        search(Match("snow", "doc"))
    assert found_by_filter(table, Leaf("n_btree", Op.EQ, 5)) == [3]
    assert found_by_filter(table, Leaf("m", Op.EQ, 5)) == [1]
    assert [each.column for each in table.storage.indexer(table.info).indexes()] == ["was", "m"]


def test_a_column_with_an_index_is_not_widened(make_table: Callable[..., Any]) -> None:
    """The index would be of a column that is not there any more."""
    table = make_table(pa.schema([("id", pa.int64()), ("n_btree", pa.int32())]))
    lance.write_dataset(pa.table({"id": [1], "n_btree": [5]}, schema=table.schema), table.location, mode="append")
    indexed(table, "n_btree")
    with pytest.raises(TableError, match="index"):
        table.storage.catalog().alter_table(table.path, [WidenColumn("n_btree", pa.int64())])
    assert found_by_filter(table, Leaf("n_btree", Op.EQ, 5)) == [1]


def test_rows_are_merged_beside_the_books_of_a_compaction(make_table: Callable[..., Any]) -> None:
    """Lance's own index, of what a compaction moved, is none that anybody made, and stands in nobody's way."""
    table = make_table()
    table.append(0, 1, 2)
    table.append(1, 3, 4)
    table.foreign("index")
    table.open().delete("id = 1")
    table.open().optimize.compact_files(defer_index_remap=True, materialize_deletions_threshold=0.0)
    assert "__lance_frag_reuse" in {each.name for each in table.open().describe_indices()}
    indexer = table.storage.indexer(table.info)
    assert [each.name for each in indexer.indexes()] == ["id_idx"]
    with pytest.raises(ConfigError, match="there is no index"):
        indexer.drop("__lance_frag_reuse")
    indexer.drop("id_idx")
    merged = replace(table.stage(table.rows(2, 3, 4, 9)), replaced=tuple(table.fragments(2)))
    table.land(2, merged, mode=WriteMode.UPSERT)
    assert table.ids() == [2, 3, 4, 9]


TINY, HUGE = [1e-30, 0.0], [float("inf"), 0.0]


@pytest.mark.parametrize(
    "odd", [[0.0, 0.0], [float("nan"), 1.0], HUGE, [float("-inf"), float("inf")], TINY, None], ids=str
)
@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
def test_many_rows_without_a_distance_hide_no_other(make_table: Callable[..., Any], odd: Any, metric: str) -> None:
    """Lance gives some of them the first places: those of a product that is infinite, or of a length that is none."""
    table = make_table(pa.schema([("id", pa.int64()), ("v", pa.list_(pa.float32(), 2))]))
    near = [[1.0 + number, 2.0] for number in range(30)]
    rows = {"id": range(130), "v": [*[odd] * 100, *near]}
    lance.write_dataset(pa.table(rows, schema=table.schema), table.location, mode="append")
    found = table.storage.searcher(table.info).search(Nearest((1.0, 2.0), metric=metric, exact=True), k=130).rows
    far = found["id"].to_pylist()
    assert [number for number in far if number >= 100] == sorted(
        range(100, 130), key=lambda number: -number if metric == "dot" else number
    )
    few = table.storage.searcher(table.info).search(Nearest((1.0, 2.0), metric=metric, exact=True), k=3).rows
    assert few["id"].to_pylist() == far[:3]


@pytest.mark.parametrize("column", ["n_btree", "n_bitmap", "s_ngram", "doc", "v"])
def test_segments_are_merged_where_a_compaction_has_moved_their_rows(
    make_table: Callable[..., Any], column: str
) -> None:
    """Lance merges files of such segments to one that finds nothing, or rows that are not there."""
    table = make_table(SCHEMA)
    for first, count in ((0, 25), (25, 15)):
        lance.write_dataset(rows(first, count), table.location, mode="append")
    indexed(table, column)
    append(table)
    spec = IndexSpec(f"{column}_idx", column, KINDS[column])
    indexer = table.storage.indexer(table.info)
    plan = indexer.plan(spec, 1, IndexMode.APPEND)
    indexer.publish(plan, [plan.builder.build(part) for part in plan.parts])
    late = indexer.plan(spec, 1, IndexMode.MERGE)
    built = [late.builder.build(part) for part in late.parts]
    compact_later(table)
    with pytest.raises(TableChanged):
        indexer.publish(late, built)
    plan = indexer.plan(spec, 1, IndexMode.MERGE)
    info = indexer.publish(plan, [plan.builder.build(part) for part in plan.parts])
    everything = table.scan()
    assert (len(info.segments), info.rows_indexed, info.rows_not_indexed) == (1, everything.num_rows, 0)
    search = table.storage.searcher(table.info).search
    if column == "doc":
        expected = {row["id"] for row in everything.to_pylist() if "snow" in words_of(row["doc"])}
        assert set(search("snow", k=100).rows["id"].to_pylist()) == expected
    elif column == "v":
        near = [row["v"] for row in everything.to_pylist() if row["v"] is not None]
        finite = [each for each in near if np.isfinite(each).all()]
        assert search(Nearest((1.2, 3.4), nprobes=3), k=100).rows.num_rows == len(finite)
    else:
        found = table.open().to_table(
            ["id"], filter=f"{column} = {3 if column[0] == 'n' else chr(39) + 'ab' + chr(39)}"
        )
        expected = {row["id"] for row in everything.to_pylist() if row[column] == (3 if column[0] == "n" else "ab")}
        assert set(found["id"].to_pylist()) == expected
