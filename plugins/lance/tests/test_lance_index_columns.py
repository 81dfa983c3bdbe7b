"""Which index can be built of which column: the planner says so, and what it lets through can be built."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal

import lance
import numpy as np
import pyarrow as pa
import pytest

from laketier.maintenance.index_builds import build_here, build_index
from laketier.spi import (
    ConfigError,
    FeatureNotSupported,
    IndexKind,
    IndexMode,
    IndexSpec,
    LaketierError,
    Match,
    Nearest,
)
from laketier_lance.indexer import LanceIndexer
from laketier_lance.options import LanceOptions
from laketier_lance.searcher import LanceSearcher

ROWS = 8
SCALARS = {IndexKind.BTREE, IndexKind.BITMAP, IndexKind.ZONEMAP}
HASHED = SCALARS | {IndexKind.BLOOMFILTER}
TEXT = HASHED | {IndexKind.INVERTED, IndexKind.NGRAM}
VECTORS = {each for each in IndexKind if each.value.startswith("ivf-")} - {IndexKind.IVF_RQ}
COLUMNS = {
    "integer": (pa.array(range(ROWS), pa.int32()), HASHED),
    "unsigned": (pa.array(range(ROWS), pa.uint64()), HASHED),
    "double": (pa.array(np.arange(ROWS) / 2), HASHED),
    "float": (pa.array(np.arange(ROWS), pa.float32()), HASHED),
    "half": (pa.array(np.arange(ROWS).astype(np.float16)), SCALARS),
    "boolean": (pa.array([True, False] * (ROWS // 2)), SCALARS),
    "text": (pa.array(["snow on lakes"] * ROWS), TEXT),
    "large": (pa.array(["snow on lakes"] * ROWS, pa.large_string()), TEXT),
    "binary": (pa.array([b"snow"] * ROWS), HASHED),
    "fixed": (pa.array([b"snow"] * ROWS, pa.binary(4)), SCALARS),
    "date": (pa.array([date(2026, 1, 1)] * ROWS), HASHED),
    "timestamp": (pa.array([datetime(2026, 1, 1, tzinfo=UTC)] * ROWS), HASHED),
    "time": (pa.array([time(1)] * ROWS), HASHED),
    "decimal": (pa.array([Decimal(1)] * ROWS, pa.decimal128(10, 2)), SCALARS),
    "duration": (pa.array(range(ROWS), pa.duration("us")), SCALARS),
    "texts": (pa.array([["snow", "lake"]] * ROWS), {IndexKind.INVERTED, IndexKind.LABEL_LIST}),
    "integers": (pa.array([[1, 2]] * ROWS), {IndexKind.LABEL_LIST}),
    "struct": (pa.array([{"a": 1}] * ROWS), set()),
    "structs": (pa.array([[{"a": 1}]] * ROWS), set()),
    "map": (pa.array([[("a", 1)]] * ROWS, pa.map_(pa.string(), pa.int64())), set()),
    "null": (pa.nulls(ROWS), set()),
    "dictionary": (pa.array(["a"] * ROWS).dictionary_encode(), {IndexKind.ZONEMAP}),
    "vector": (pa.array([[1.0, 2.0]] * ROWS, pa.list_(pa.float32(), 2)), VECTORS),
}
SETTINGS = {
    each: {"num_partitions": 1} | ({"num_bits": 4, "num_sub_vectors": 2} if "pq" in each.value else {})
    for each in VECTORS
}


@pytest.fixture(scope="module")
def location(tmp_path_factory: pytest.TempPathFactory) -> str:
    uri = str(tmp_path_factory.mktemp("types") / "t.lance")
    lance.write_dataset(pa.table({name: values for name, (values, _) in COLUMNS.items()}), uri, max_rows_per_file=4)
    return uri


@pytest.mark.parametrize("column", COLUMNS)
def test_each_kind_of_each_type_is_built_or_refused_by_the_planner(location: str, column: str) -> None:
    indexer = LanceIndexer(location, LanceOptions())
    built = set()
    for kind in IndexKind:
        options = SETTINGS.get(kind, {})
        if column == "vector" and "pq" in kind.value:  # a codebook wants more rows; the planner says it
            built.add(kind)
            continue
        try:
            plan = indexer.plan(IndexSpec("i", column, kind, options), 2, IndexMode.REPLACE)
        except (ConfigError, FeatureNotSupported):
            continue
        builder = plan.builder.train()
        assert [builder.build(part).rows for part in plan.parts]
        built.add(kind)
    assert built == COLUMNS[column][1]


def test_who_asks_for_the_wrong_kind_is_told_the_right_ones(location: str) -> None:
    told = r"'integer' holds int32, of which Lance builds no index of kind inverted.*are `btree`, `bitmap`, `zonemap`"
    with pytest.raises(ConfigError, match=told):
        LanceIndexer(location, LanceOptions()).plan(IndexSpec("i", "integer", IndexKind.INVERTED), 1)


@pytest.mark.parametrize("name", ["Größe", "it's", 'a "b"', "select", "a,b", "中文", "🙂", "a/b", "a\nb"])
def test_odd_names_of_columns(tmp_path, name: str) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({name: ["snow"] * 4, "id": range(4)}), uri, max_rows_per_file=2)
    indexer = LanceIndexer(uri, LanceOptions())
    spec = IndexSpec("i", name, IndexKind.INVERTED)
    assert build_index(indexer, spec, IndexMode.CREATE, max_parts=2, build=build_here).rows_indexed == 4
    lance.write_dataset(pa.table({name: ["snow"], "id": [9]}), uri, mode="append")
    assert build_index(indexer, spec, IndexMode.APPEND, max_parts=2, build=build_here).rows_not_indexed == 0
    found = LanceSearcher(uri, "t", LanceOptions())
    assert found.search(Match("snow", name)).rows.num_rows == found.search("snow").rows.num_rows == 5


@pytest.mark.parametrize(
    ("column", "error", "says"),
    [
        ("Text", ConfigError, r"no column 'Text'.*Did you mean 'text'\?"),
        ("txt", ConfigError, r"Did you mean 'text'\?"),
        ("zzz", ConfigError, "It has text, a`b, s"),
        ("", ConfigError, "no column ''"),
        ("s.x", FeatureNotSupported, "it is within a column"),
        ("a`b", FeatureNotSupported, "backtick"),
    ],
)
def test_a_column_that_is_not_there(tmp_path, column: str, error: type[Exception], says: str) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"text": ["a"], "a`b": ["a"], "s": [{"x": "a"}]}), uri)
    with pytest.raises(error, match=says):
        LanceIndexer(uri, LanceOptions()).plan(IndexSpec("i", column, IndexKind.INVERTED), 1)


@pytest.mark.parametrize("name", ["", " ", "a/b", "a\\b", ".", "..", "../../x", "a" * 10_000, "a\nb", "a\0b", " a", 7])
def test_an_odd_name_of_an_index(location: str, name: str) -> None:
    with pytest.raises(ConfigError, match="is no name of an index"):
        LanceIndexer(location, LanceOptions()).plan(IndexSpec(name, "text", IndexKind.INVERTED), 1)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"base_tokenizer": "simpel"}, r"Did you mean 'simple'\?"),
        ({"base_tokenizer": "Lindera"}, "lindera/ipadic"),
        ({"base_tokenizer": ""}, "base_tokenizer is one of simple"),
        ({"language": "Englisch"}, r"Did you mean 'English'\?"),
        ({"language": "english"}, r"Did you mean 'English'\?"),
        ({"language": "Klingon"}, "language is one of Arabic"),
        ({"base_tokenizer": "jieba/default", "language": "x"}, "language is one of"),
        ({"base_tokenizer": "ngram", "min_ngram_length": 5, "max_ngram_length": 3}, "min_gram must not be greater"),
        ({"max_token_length": -1}, "negative"),
        ({"block_size": 3}, "128 or 256"),
        ({"stemm": True}, r"Did you mean 'stem'\?"),
        ({"stem": "yes"}, "not of type bool"),
    ],
)
def test_settings_that_lance_does_not_take(location: str, options: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        LanceIndexer(location, LanceOptions()).plan(IndexSpec("i", "text", IndexKind.INVERTED, options), 1)


def test_a_second_index_for_the_same_questions_is_refused(tmp_path) -> None:
    uri = str(tmp_path / "t.lance")
    vectors = pa.array([[float(each), 1.0] for each in range(600)], pa.list_(pa.float32(), 2))
    lance.write_dataset(pa.table({"doc": ["snow"] * 600, "v": vectors}), uri)
    indexer = LanceIndexer(uri, LanceOptions())

    def create(name: str, column: str, kind: IndexKind, mode: IndexMode = IndexMode.CREATE, **options: object) -> None:
        build_index(indexer, IndexSpec(name, column, kind, options), mode, max_parts=1, build=build_here)

    create("one", "doc", IndexKind.INVERTED)
    create("ordered", "doc", IndexKind.BTREE)
    create("near", "v", IndexKind.IVF_FLAT)
    create("one", "doc", IndexKind.INVERTED, IndexMode.REPLACE, with_position=True)
    for mode in (IndexMode.CREATE, IndexMode.REPLACE):
        with pytest.raises(ConfigError, match=r"has an index of kind inverted already: 'one'.*Replace 'one' under"):
            create("two", "doc", IndexKind.INVERTED, mode)
        with pytest.raises(ConfigError, match=r"has an index of kind ivf-flat already: 'near'"):
            create("nearer", "v", IndexKind.IVF_HNSW_FLAT, mode, metric="cosine")
    plan = indexer.plan(IndexSpec("wide", "doc", IndexKind.NGRAM), 1)
    built = [plan.builder.build(part) for part in plan.parts]
    create("between", "doc", IndexKind.NGRAM)
    with pytest.raises(LaketierError, match="'between'"):
        indexer.publish(plan, built)


def test_two_indexes_of_another_tool_are_not_asked(tmp_path) -> None:
    """Lance takes one of them. With other settings it finds other rows, and phrases need positions."""
    uri = str(tmp_path / "t.lance")
    vectors = pa.array([[float(each), 1.0] for each in range(600)], pa.list_(pa.float32(), 2))
    dataset = lance.write_dataset(pa.table({"doc": ["Snow"] * 600, "v": vectors}), uri)
    for name in ("zz", "aa"):
        dataset.create_scalar_index("doc", "INVERTED", name=name, lower_case=name == "aa", replace=False)
    for name, metric in (("far", "l2"), ("near", "cosine")):
        dataset.create_index("v", "IVF_FLAT", name=name, metric=metric, num_partitions=1, replace=False)
    found = LanceSearcher(uri, "t", LanceOptions())
    with pytest.raises(ConfigError, match=r"has 2 indexes for this: '(aa|zz)', '(aa|zz)'.*laketier index drop"):
        found.search("snow")
    with pytest.raises(ConfigError, match=r"has 2 indexes for this: '(far|near)', '(far|near)'"):
        found.search(Nearest((1.0, 1.0)))
    assert found.search(Nearest((1.0, 1.0), exact=True, metric="l2"), k=1).rows.num_rows == 1
    LanceIndexer(uri, LanceOptions()).drop("zz")
    assert found.search("snow", k=1).rows.num_rows == 1
