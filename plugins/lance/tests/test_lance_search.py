"""Searching a dataset: beside pylance itself, and beside a look at every row."""

from __future__ import annotations

import pickle
import time
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from laketier.kit.fusion import fused
from laketier.spi import (
    Boolean,
    Boost,
    ConfigError,
    FeatureNotSupported,
    Hybrid,
    IndexKind,
    IndexSpec,
    LakeStorageConfig,
    Leaf,
    Match,
    MultiMatch,
    Nearest,
    Op,
    Phrase,
    SnapshotNotFound,
    TableError,
    TableInfo,
    TablePath,
)
from laketier_lance.options import LanceOptions
from laketier_lance.plugin import LancePlugin
from laketier_lance.searcher import LanceSearcher

WORDS = ("lake", "river", "mountain", "snow", "stone", "forest", "wind", "sand")
ROWS = 2000
TAIL = 200


def _texts(count: int, seed: int) -> list[str]:
    chance = np.random.default_rng(seed)
    return [" ".join(chance.choice(WORDS, size=chance.integers(2, 9))) for _ in range(count)]


def _rows(count: int, first: int, seed: int) -> pa.Table:
    vectors = np.random.default_rng(seed).random((count, 8), dtype=np.float32)
    return pa.table(
        {
            "id": pa.array(range(first, first + count), pa.int64()),
            "doc": _texts(count, seed),
            "title": _texts(count, seed + 100),
            "score": np.random.default_rng(seed).random(count),
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 8),
        }
    )


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with an index of ``doc``, rows that it does not cover, and deleted ones."""
    folder = tmp_path_factory.mktemp("warehouse")
    uri = folder / "db" / "t.lance"
    dataset = lance.write_dataset(_rows(ROWS, 0, 1), uri, max_rows_per_file=500)
    dataset.create_scalar_index("doc", "INVERTED", name="doc_idx", with_position=True, base_tokenizer="simple")
    lance.write_dataset(_rows(TAIL, ROWS, 2), uri, mode="append")
    lance.dataset(uri).delete("id % 10 = 3")
    return folder


@pytest.fixture(scope="module")
def table(warehouse: Path) -> TableInfo:
    storage = LancePlugin().create_storage(LakeStorageConfig(str(warehouse), LanceOptions()))
    return storage.catalog().load_table(TablePath("db", "t"))


@pytest.fixture(scope="module")
def searcher(warehouse: Path, table: TableInfo) -> LanceSearcher:
    storage = LancePlugin().create_storage(LakeStorageConfig(str(warehouse), LanceOptions()))
    found = storage.searcher(table)
    assert isinstance(found, LanceSearcher)
    return pickle.loads(pickle.dumps(found))  # noqa: S301 - our own bytes


@pytest.fixture(scope="module")
def live(table: TableInfo) -> dict[int, dict[str, Any]]:
    return {row["id"]: row for row in lance.dataset(table.location).to_table().to_pylist()}


def _has(word: str, *more: str) -> Any:
    return lambda row: all(each in row["doc"].split() for each in (word, *more))


@pytest.mark.parametrize(
    ("query", "matches"),
    [
        ("snow", _has("snow")),
        (Match("snow stone", operator="and"), _has("snow", "stone")),
        (Match("snow stone"), lambda row: "snow" in row["doc"] or "stone" in row["doc"]),
        (Phrase("snow stone"), lambda row: "snow stone" in row["doc"]),
        (Boolean(must=("snow",), must_not=("stone",)), lambda row: "snow" in row["doc"] and "stone" not in row["doc"]),
        (Boolean(should=("snow", "wind")), lambda row: "snow" in row["doc"] or "wind" in row["doc"]),
        (Boost(Match("snow"), Match("stone")), _has("snow")),
    ],
)
def test_a_text_query_finds_each_row_that_matches_and_no_other(
    searcher: LanceSearcher, live: dict[int, dict[str, Any]], query: Any, matches: Any
) -> None:
    expected = {number for number, row in live.items() if matches(row)}
    found = searcher.search(query, k=10_000)
    assert set(found.rows["id"].to_pylist()) == expected
    assert found.rows["id"].to_pylist() != sorted(expected), "the rows are in the order of their scores"
    scores = found.rows["_score"].to_pylist()
    assert scores == sorted(scores, reverse=True)
    assert found.rows.schema.names == ["id", "doc", "title", "score", "vector", "_score"]
    for row in found.rows.to_pylist():
        assert row["doc"] == live[row["id"]]["doc"], "a row has the columns of its own number"


@pytest.mark.every(3)
@pytest.mark.parametrize(
    "query",
    [
        Match("snow"),
        Match("snow stone"),
        Phrase("snow stone"),
        Boolean(must=("snow",), must_not=("stone",)),
        Boolean(must=("snow", "wind"), should=("lake",)),
        Boost(Match("snow"), Match("stone")),
    ],
)
@pytest.mark.parametrize("k", [1, 3, 10, 57])
def test_the_best_k_are_the_first_of_all(searcher: LanceSearcher, query: Any, k: int) -> None:
    whole = searcher.search(query, k=10_000, columns=["id"]).rows
    assert searcher.search(query, k=k, columns=["id"]).rows.equals(whole.slice(0, k))


def test_scores_are_those_of_the_library(searcher: LanceSearcher, table: TableInfo) -> None:
    theirs = lance.dataset(table.location).to_table(columns=["id", "_score"], full_text_query="snow lake")
    expected = dict(zip(theirs["id"].to_pylist(), theirs["_score"].to_pylist(), strict=True))
    found = searcher.search("snow lake", k=10_000, columns=["id"]).rows
    assert dict(zip(found["id"].to_pylist(), found["_score"].to_pylist(), strict=True)) == expected


def test_rows_that_no_index_covers_are_found_and_counted(searcher: LanceSearcher, live: dict[int, Any]) -> None:
    found = searcher.search("snow", k=10_000, columns=["id"])
    tail = sum(number >= ROWS for number in live)
    assert any(number >= ROWS for number in found.rows["id"].to_pylist())
    assert (found.explain.rows, found.explain.rows_flat) == (len(live), tail)
    assert [(use.name, use.column, use.rows) for use in found.explain.indexes] == [("doc_idx", "doc", len(live) - tail)]
    assert found.explain.milliseconds.keys() == {"text", "rows"}


@pytest.mark.parametrize(
    "filters",
    [(Leaf("id", Op.GE, 1900),), (Leaf("id", Op.LT, 50), Leaf("title", Op.NE, "")), (Leaf("id", Op.LT, 0),)],
)
@pytest.mark.parametrize("query", ["snow", Nearest((0.5,) * 8), Hybrid(Match("snow"), Nearest((0.5,) * 8))])
def test_a_filter_chooses_the_rows_that_are_searched(searcher: LanceSearcher, filters: Any, query: Any) -> None:
    bounds = {Op.GE: lambda a, b: a >= b, Op.LT: lambda a, b: a < b, Op.NE: lambda a, b: a != b}
    wide = searcher.search(query, k=10_000, filters=filters).rows.to_pylist()
    assert all(bounds[leaf.op](row[leaf.column], leaf.value) for row in wide for leaf in filters)
    narrow = searcher.search(query, k=5, columns=["id"], filters=filters).rows["id"].to_pylist()
    assert narrow == [row["id"] for row in wide][:5]


def test_a_filter_that_the_library_may_see_otherwise_is_refused(searcher: LanceSearcher) -> None:
    with pytest.raises(FeatureNotSupported, match="search with this filter"):
        searcher.search("snow", filters=[Leaf("score", Op.GT, 0.5)])


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
def test_the_nearest_are_those_of_a_look_at_every_vector(
    searcher: LanceSearcher, live: dict[int, Any], metric: str
) -> None:
    asked = np.linspace(0.1, 0.9, 8, dtype=np.float32)
    ids = np.array(list(live))
    vectors = np.array([live[number]["vector"] for number in ids], np.float32)
    distances = {
        "l2": ((vectors - asked) ** 2).sum(1),
        "cosine": 1 - vectors @ asked / np.linalg.norm(vectors, axis=1) / np.linalg.norm(asked),
        "dot": 1 - vectors @ asked,
    }[metric]
    found = searcher.search(Nearest(tuple(asked), metric=metric), k=20)
    assert found.rows["id"].to_pylist() == ids[np.argsort(distances)][:20].tolist()
    assert np.allclose(found.rows["_distance"].to_numpy(), np.sort(distances)[:20], atol=1e-4)
    assert found.explain.rows_flat == len(live)


def test_a_hybrid_is_the_fusion_of_its_lists(searcher: LanceSearcher) -> None:
    text, near = Match("snow stone"), Nearest((0.4,) * 8)
    lists = [searcher.search(query, k=100).rows["id"].to_pylist() for query in (text, near)]
    found = searcher.search(Hybrid(text, near), k=30).rows
    # Rows are fused by Lance's numbers of them, which are in the order of ids here.
    expected = fused(lists, 60.0)[:30]
    assert list(zip(found["id"].to_pylist(), found["_score"].to_pylist(), strict=True)) == expected


def test_an_old_snapshot_answers_as_it_did(searcher: LanceSearcher, table: TableInfo) -> None:
    before = searcher.search("snow", k=10_000, snapshot_id=2)
    assert max(before.rows["id"].to_pylist()) < ROWS
    assert before.snapshot_id == 2
    with pytest.raises(SnapshotNotFound):
        searcher.search("snow", snapshot_id=9999)


def test_a_multi_match_has_the_score_of_the_best_column(tmp_path: Path) -> None:
    uri = tmp_path / "db" / "t.lance"
    dataset = lance.write_dataset(_rows(300, 0, 5), uri)
    for column in ("doc", "title"):
        dataset.create_scalar_index(column, "INVERTED", name=f"{column}_idx", base_tokenizer="simple")
    found = LanceSearcher(str(uri), "db.t", LanceOptions())
    one = {
        column: dict(zip(rows["id"].to_pylist(), rows["_score"].to_pylist(), strict=True))
        for column in ("doc", "title")
        for rows in [found.search(Match("snow", column), k=10_000).rows]
    }
    both = found.search(MultiMatch("snow", ("doc", "title")), k=10_000).rows
    expected = {n: max(one["doc"].get(n, 0), one["title"].get(n, 0)) for n in one["doc"].keys() | one["title"].keys()}
    assert dict(zip(both["id"].to_pylist(), both["_score"].to_pylist(), strict=True)) == pytest.approx(expected)
    with pytest.raises(ConfigError, match="the columns doc, title have full-text indexes"):
        found.search("snow")


@pytest.mark.parametrize(
    ("vector", "metric", "says"),
    [
        ((1e39, *[0.0] * 7), "l2", "too large"),
        ((1e20, *[0.0] * 7), "l2", "too large"),
        ([0.0] * 8, "cosine", "all zeros"),
    ],
)
def test_a_vector_that_is_near_to_nothing_is_refused(
    searcher: LanceSearcher, vector: Any, metric: str, says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        searcher.search(Nearest(tuple(vector), column="vector", metric=metric))


@pytest.mark.parametrize("factor", [2.0**-200, 2.0**-20, 2.0**20, 2.0**200])
def test_by_cosine_only_the_direction_counts(searcher: LanceSearcher, factor: float) -> None:
    """Lance squares the numbers, and found nothing where that is zero or infinite."""
    asked = (1.0, -0.5, *[0.25] * 6)
    one, other = (
        searcher.search(Nearest(tuple(by * each for each in asked), column="vector", metric="cosine"), k=20).rows
        for by in (1.0, factor)
    )
    assert one.num_rows == 20
    assert one.equals(other)


def test_lists_are_no_texts(searcher: LanceSearcher) -> None:
    for text in ("12345678", b"12345678"):
        with pytest.raises(ConfigError, match=r"a vector is a (str|bytes)"):
            Nearest(text)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="columns is the text 'id'"):
        searcher.search("lake", columns="id")
    alone: Any = ("id = 1", Leaf("id", Op.EQ, 1), 7)
    for each in alone:
        with pytest.raises(ConfigError, match=r"filters is .*Give a list of predicates"):
            searcher.search("lake", filters=each)
    wrong: Any = ("id = 1", None)
    for each in wrong:
        with pytest.raises(ConfigError, match=r"the filter .* is a (str|NoneType)"):
            searcher.search("lake", filters=[each])


@pytest.mark.parametrize("tokenizer", ["lindera/ipadic", "jieba/default"])
def test_a_dictionary_that_is_missing_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tokenizer: str
) -> None:
    monkeypatch.setenv("LANCE_LANGUAGE_MODEL_HOME", str(tmp_path / "none"))
    lance.write_dataset(_rows(50, 0, 1), tmp_path / "db" / "t.lance")
    storage = LancePlugin().create_storage(LakeStorageConfig(str(tmp_path), LanceOptions()))
    indexer = storage.indexer(storage.catalog().load_table(TablePath("db", "t")))
    plan = indexer.plan(IndexSpec("doc_idx", "doc", IndexKind.INVERTED, {"base_tokenizer": tokenizer}), 1)
    with pytest.raises(TableError, match="base_tokenizer = icu"):
        plan.builder.build(plan.parts[0])


@pytest.mark.parametrize(
    ("query", "says"),
    [
        (Match("snow", "dok"), "there is no column 'dok'.*Did you mean 'doc'"),
        (Match("snow", "title"), "column 'title' has no full-text index.*create_index"),
        (Match("snow", "id"), "column 'id' has no full-text index"),
        (Nearest((0.5,) * 7), "have 8 numbers, and the query 7"),
        (Nearest((0.5,) * 8, column="doc"), "not vectors of a fixed size"),
    ],
)
def test_a_query_that_does_not_fit_the_table_is_refused(searcher: LanceSearcher, query: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=f"(?s){says}"):
        searcher.search(query)


@pytest.mark.parametrize("text", ["'", '"', ");--", "a" * 60_000, "\u202e", "🙂", "the", "snow' OR 1=1", "\n\t;", "%_"])
def test_hostile_words_find_nothing_and_break_nothing(searcher: LanceSearcher, text: str) -> None:
    for query in (Match(text), Phrase(text), Boolean(must=("snow",), must_not=(text,))):
        rows = searcher.search(query, k=3).rows
        assert rows.num_rows <= 3


@pytest.mark.parametrize("text", ["the", "The AND of", "...", "🙂 !", "a" * 41])
def test_whoever_asks_for_words_that_are_dropped_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    uri = tmp_path / "t.lance"
    rows = pa.table({"id": range(3), "doc": ["the snow", "a stone", ""]})
    lance.write_dataset(rows, uri).create_scalar_index("doc", "INVERTED", name="i", with_position=True)
    found = LanceSearcher(str(uri), "t", LanceOptions())
    for query in (Match(text), Phrase(text), Boolean(must=("snow", text)), MultiMatch(text, ("doc",))):
        caplog.clear()
        result = found.search(query)
        if result.rows.num_rows == 0:
            (note,) = result.explain.notes
            assert note.startswith(f"index 'i' leaves no word of {text[:10]!r}"[:-1])
            assert [each.getMessage() for each in caplog.records if each.name == "laketier.spi.searcher"] == [note]
    assert found.search(Match(text)).explain.notes
    for query in (Match("zebra"), Match("the snow"), Boolean(must=("snow",), must_not=(text,))):
        assert found.search(query).explain.notes == ()


def test_words_that_one_index_drops_are_kept_by_another(tmp_path: Path) -> None:
    uri = tmp_path / "t.lance"
    options = {"base_tokenizer": "whitespace", "remove_stop_words": False, "stem": False, "max_token_length": None}
    dataset = lance.write_dataset(pa.table({"doc": ["The", "of it"]}), uri)
    dataset.create_scalar_index("doc", "INVERTED", name="i", **options)
    found = LanceSearcher(str(uri), "t", LanceOptions())
    assert found.search("the").rows.num_rows == 1
    for text in ("and", "...", "a" * 50):
        assert found.search(text).explain.notes == (), "there is no such row, and nothing else is wrong"


def test_a_phrase_needs_positions(tmp_path: Path) -> None:
    uri = tmp_path / "t.lance"
    lance.write_dataset(_rows(50, 0, 7), uri).create_scalar_index("doc", "INVERTED", with_position=False)
    found = LanceSearcher(str(uri), "t", LanceOptions())
    with pytest.raises(ConfigError, match="has no positions"):
        found.search(Phrase("snow stone"))
    assert found.search("snow", k=1).rows.num_rows == 1


def test_ties_are_in_the_order_of_the_table(tmp_path: Path) -> None:
    uri = tmp_path / "t.lance"
    rows = pa.table({"id": range(400), "doc": ["same words here"] * 400})
    lance.write_dataset(rows, uri, max_rows_per_file=50).create_scalar_index("doc", "INVERTED")
    found = LanceSearcher(str(uri), "t", LanceOptions())
    assert found.search("words", k=7).rows["id"].to_pylist() == list(range(7))


def test_words_that_are_nearly_alike_are_found_where_all_rows_are_indexed(tmp_path: Path) -> None:
    uri = tmp_path / "t.lance"
    rows = _rows(300, 0, 7)
    lance.write_dataset(rows, uri).create_scalar_index("doc", "INVERTED", base_tokenizer="simple", stem=False)
    found = LanceSearcher(str(uri), "t", LanceOptions()).search(Match("snov", fuzziness=1), k=10_000).rows
    expected = [row["id"] for row in rows.to_pylist() if "snow" in row["doc"]]
    assert sorted(found["id"].to_pylist()) == expected


@pytest.mark.parametrize("query", [Match("snov", fuzziness=1), Boolean(must=("lake", Match("snov", fuzziness=2)))])
def test_words_that_are_nearly_alike_are_refused_where_rows_would_be_left_out(
    searcher: LanceSearcher, query: Any
) -> None:
    with pytest.raises(FeatureNotSupported, match=r"rows are not in the index.*`create_index`.*`append`"):
        searcher.search(query)


def test_a_vector_index_is_used_and_refined(tmp_path: Path) -> None:
    uri = tmp_path / "t.lance"
    dataset = lance.write_dataset(_rows(1000, 0, 9), uri)
    dataset.create_index("vector", "IVF_FLAT", num_partitions=4, metric="cosine")
    found = LanceSearcher(str(uri), "t", LanceOptions())
    indexed = found.search(Nearest((0.5,) * 8, nprobes=4), k=10)
    exact = found.search(Nearest((0.5,) * 8, metric="cosine", exact=True), k=10)
    assert indexed.rows["id"].to_pylist() == exact.rows["id"].to_pylist()
    assert [use.column for use in indexed.explain.indexes] == ["vector"]
    assert (indexed.explain.rows_flat, exact.explain.rows_flat) == (0, 1000)
    assert found.search(Nearest((0.5,) * 8, metric="l2"), k=1).explain.indexes == ()


def test_a_snapshot_is_the_same_in_processes_of_other_zones(
    searcher: LanceSearcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = set()
    for zone in ("UTC", "America/New_York", "Asia/Kolkata"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        found.add(searcher.at().identity)
    monkeypatch.undo()
    time.tzset()
    assert len(found) == 1
