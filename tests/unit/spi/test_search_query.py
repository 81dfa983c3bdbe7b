"""Queries check themselves, and travel as JSON."""

from __future__ import annotations

import json
import math
import pickle
from contextlib import suppress
from dataclasses import fields
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laketier.spi import (
    Boolean,
    Boost,
    ConfigError,
    Hybrid,
    LaketierError,
    Match,
    MultiMatch,
    Nearest,
    Phrase,
    SearchQuery,
    SearchRequest,
    SerializationError,
    as_query,
    query_from_json,
    query_of_text,
    query_to_json,
    search_json,
)
from laketier.spi.asked import as_columns
from laketier.spi.search_query import with_ef

TEXTS = st.text(min_size=1).filter(lambda text: text.strip() and "\0" not in text)
NAMES = st.none() | st.sampled_from(["doc", "größe", "a b"])
FACTORS = st.floats(0, 1e6)
LEAVES: st.SearchStrategy[SearchQuery] = st.one_of(
    st.builds(Match, TEXTS, NAMES, st.sampled_from(["or", "and"]), st.integers(0, 2), FACTORS),
    st.builds(Phrase, TEXTS, NAMES, st.integers(0, 9)),
    st.builds(MultiMatch, TEXTS, st.just(("a", "b")), st.none() | st.tuples(FACTORS, FACTORS)),
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(Boolean, st.tuples(inner), st.tuples(inner), st.tuples(inner)),
        st.builds(Boost, inner, inner, FACTORS),
    ),
    max_leaves=8,
)
VECTORS = st.builds(
    Nearest, st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=4).map(tuple), ef=st.none() | st.integers(1, 999)
)


@given(st.one_of(TREES, VECTORS, st.builds(Hybrid, TREES, VECTORS)))
def test_a_query_comes_back_from_json_and_pickles_as_it_was(query: SearchQuery) -> None:
    text = query_to_json(query)
    assert query_from_json(text) == query
    assert query_to_json(query_from_json(text)) == text
    assert pickle.loads(pickle.dumps(query)) == query  # noqa: S301 - our own bytes


def test_queries_are_nested_as_deep_in_json() -> None:
    deepest: Any = Match("a")
    with suppress(ConfigError):
        for _ in range(100):
            deepest = Boolean(must=(deepest,))
    for query in (deepest, Hybrid(deepest, Nearest((1.0,)))):
        assert query_from_json(query_to_json(query)) == query
    with pytest.raises(ConfigError, match="nested more than 32 deep"):
        Boost(deepest, "b")  # type: ignore[arg-type]
    deeper = f'{{"type": "boolean", "must": [{json.dumps(json.loads(query_to_json(deepest))["query"])}]}}'
    with pytest.raises(ConfigError, match="nested more than 32 deep"):
        query_from_json(deeper)


@pytest.mark.parametrize(
    ("make", "least", "most"),
    [
        (lambda number: Match("a", fuzziness=number), 0, 2),
        (lambda number: Match("a" * number), 1, 65_536),
        (lambda number: Phrase("a b", slop=number), 0, 1000),
        (lambda number: Phrase("a" * number), 1, 65_536),
        (lambda number: MultiMatch("a" * number, ("a",)), 1, 65_536),
        (lambda number: Boolean(must=("a",) * number), 1, 1024),
        (lambda number: Boolean(should=("a",) * bool(number), must_not=("a",) * (number - 1)), 1, 1024),
        (lambda number: Boolean(must=(Boolean(must=("a",) * number), Boolean(must=("a",) * 24))), 1, 1000),
        (lambda number: Nearest((1.0,) * number), 1, 65_536),
        (lambda number: Nearest((1.0,), nprobes=number), 1, 1_000_000),
        (lambda number: Nearest((1.0,), refine=number), 1, 1000),
        (lambda number: Nearest((1.0,), ef=number), 1, 100_000),
        (lambda number: Hybrid("a", Nearest((1.0,)), depth=number), 1, 10_000),
        (lambda number: SearchRequest(query="a", k=number), 1, 10_000),
    ],
)
def test_the_bounds_of_numbers(make: Any, least: int, most: int) -> None:
    for number in (least, least + 1, most):
        assert make(number)
    for number in (least - 1, most + 1):
        with pytest.raises(ConfigError):
            make(number)


@pytest.mark.parametrize("factor", [-0.1, math.nan, math.inf, True, "1", None])
def test_factors_are_finite_numbers(factor: Any) -> None:
    makes: list[Any] = [
        lambda value: Match("a", boost=value),
        lambda value: MultiMatch("a", ("a", "b"), (1.0, value)),
        lambda value: Boost("a", "b", value),  # type: ignore[arg-type]
        lambda value: Hybrid("a", Nearest((1.0,)), constant=value),  # type: ignore[arg-type]
    ]
    for make in makes:
        assert make(0)
        assert make(2.5)
        with pytest.raises(ConfigError, match=r"(boost|factor|constant) is "):
            make(factor)


def test_texts_and_choices_of_each_query() -> None:
    for make in (Match, Phrase, lambda text: MultiMatch(text, ("a",))):
        for text in ("", "  ", "a\0", "\ud800", 7, None):
            with pytest.raises(ConfigError, match=r"the (text of a )?query"):
                make(text)  # type: ignore[arg-type]
    for choose in (lambda operator: Match("a", operator=operator), lambda o: MultiMatch("a", ("a",), operator=o)):
        assert [choose(each).operator for each in ("or", "and")] == ["or", "and"]
        with pytest.raises(ConfigError, match="operator is 'AND'"):
            choose("AND")
    assert [Nearest((1.0,), metric=each).metric for each in (None, "l2", "cosine", "dot")] == [
        None,
        "l2",
        "cosine",
        "dot",
    ]
    with pytest.raises(ConfigError, match="metric is 'L2'"):
        Nearest((1.0,), metric="L2")


def test_lists_of_any_kind_are_tuples() -> None:
    """Queries are compared, and keys of what is remembered."""
    for one, other in (
        (Nearest([1, 2]), Nearest((1.0, 2.0))),  # type: ignore[arg-type]
        (Nearest(pa.array([1.0, 2.0]).to_numpy()), Nearest((1.0, 2.0))),  # type: ignore[arg-type]
        (MultiMatch("a", ["a", "b"], [1, 2]), MultiMatch("a", ("a", "b"), (1, 2))),  # type: ignore[arg-type]
        (Boolean(["a"], ["b"], ["c"]), Boolean((Match("a"),), (Match("b"),), (Match("c"),))),  # type: ignore[list-item]
        (Boost("a", "b"), Boost(Match("a"), Match("b"))),  # type: ignore[arg-type]
    ):
        assert one == other
        assert hash(one) == hash(other)
    assert Nearest([1]).vector == (1.0,)  # type: ignore[arg-type]
    assert type(Nearest([1]).vector[0]) is float  # type: ignore[arg-type]
    for vector in ("12", b"12", bytearray(b"12"), 7, None, [[1.0]], [1, "2"], [10**400]):
        with pytest.raises(ConfigError, match="a vector"):
            Nearest(vector)  # type: ignore[arg-type]


def test_ef_of_the_vector_within_a_query() -> None:
    near = Nearest((1.0,), nprobes=3)
    assert with_ef(near, 9) == Nearest((1.0,), nprobes=3, ef=9)
    assert with_ef(Hybrid("snow", near), 9) == Hybrid("snow", with_ef(near, 9))  # type: ignore[arg-type]
    assert query_from_json('{"type": "nearest", "vector": [1], "ef": 9}') == Nearest((1.0,), ef=9)


@given(st.text() | st.recursive(st.none() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)).map(repr))
def test_any_text_is_a_query_or_an_error_of_ours(text: str) -> None:
    with suppress(LaketierError):
        assert query_from_json(text)


FIELDS = sorted({each.name for kind in search_json._KINDS.values() for each in fields(kind)})


def objects(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """What has the shape of queries, with any values."""
    kinds = st.fixed_dictionaries({"type": st.sampled_from(sorted(search_json._KINDS))})
    return st.builds(lambda kind, more: more | kind, kinds, st.dictionaries(st.sampled_from(FIELDS), values))


ODD: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.just(10**400), st.just(-1)),
    lambda inner: st.lists(inner, max_size=3) | objects(inner),
    max_leaves=6,
)
NEEDED = ("text", "columns", "vector", "query", "against", "nearest")


def test_lists_as_deep_as_json_reads_them() -> None:
    for start, end in (("", ""), ('{"type": "match", "text": ', "}"), ('{"type": "boolean", "must": [', "]}")):
        for depth in range(1, 1100, 3):
            with pytest.raises(LaketierError):
                query_from_json(start + "[" * depth + "]" * depth + end)


@pytest.mark.parametrize("kind", search_json._KINDS)
@given(data=st.data())
def test_any_values_of_a_query_are_taken_or_refused_by_us(kind: str, data: st.DataObject) -> None:
    """With all fields that a query needs, so that each is looked at."""
    names = [each.name for each in fields(search_json._KINDS[kind])]
    plain = {"type": kind} | {name: data.draw(ODD) for name in names if data.draw(st.booleans()) or name in NEEDED}
    with suppress(LaketierError):
        query = query_from_json(json.dumps(plain))
        assert query_from_json(query_to_json(query)) == query


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"type": "boolean", "must": ' * 60 + '"x"' + "}" * 60,
        '{"type": "match", "text": "a", "colour": "red"}',
        '{"type": "match", "text": 7}',
        '{"type": "match", "text": "a", "column": 7}',
        '{"type": "match", "text": "a", "boost": 1' + "0" * 400 + "}",
        '{"type": "match", "text": ' + "[" * 400 + "]" * 400 + "}",
        '{"type": "boolean", "must": [' + "[" * 400 + "]" * 400 + "]}",
        '{"type": "nearest", "vector": [1], "exact": 1}',
        '{"type": "multi_match", "text": "a", "columns": [[{"type": "match", "text": "a"}]]}',
        '{"type": "nearest", "vector": [1, NaN]}',
        '{"type": "hybrid", "text": {"type": "nearest", "vector": [1]}, "nearest": {"type": "nearest", "vector": [1]}}',
        '{"version": 2, "query": {"type": "match", "text": "a"}}',
        "7",
        "null",
    ],
)
def test_json_that_is_no_query_is_refused(text: str) -> None:
    with pytest.raises(LaketierError):
        query_from_json(text)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Match(""), "empty"),
        (lambda: Match(" \t"), "empty"),
        (lambda: Match("a\0b"), "NUL"),
        (lambda: Match("\ud800"), "no Unicode"),
        (lambda: Match("a" * 70_000), "70,000 characters"),
        (lambda: Match("a", operator="xor"), "operator is 'xor'"),
        (lambda: Match("a", fuzziness=3), "fuzziness is 3"),
        (lambda: Match("a", boost=math.inf), "boost is inf"),
        (lambda: Boolean(must_not=("a",)), "neither must nor should"),
        (lambda: MultiMatch("a", ()), "needs columns"),
        (lambda: MultiMatch("a", ("a", "b", "a")), "needs columns, each once"),
        (lambda: MultiMatch("a", ("a", "b"), (1.0,)), "there are 2 columns and 1 boosts"),
        (lambda: MultiMatch("a", ("a",), ()), "there are 1 columns and 0 boosts"),
        (lambda: MultiMatch("a", (7,)), "a column is 7, a int"),  # type: ignore[arg-type]
        (lambda: MultiMatch("a", (None,)), "a column is None"),  # type: ignore[arg-type]
        (lambda: MultiMatch("a", ("a",), (10**400,)), "boost is 1000"),
        (lambda: Match("a", column=7), "a column is 7"),  # type: ignore[arg-type]
        (lambda: Phrase("a", column=b"a"), "a column is b'a'"),  # type: ignore[arg-type]
        (lambda: Nearest((1.0,), column=("a",)), "a column is \\('a',\\), a tuple"),  # type: ignore[arg-type]
        (lambda: Hybrid("a", Nearest((1.0,)), constant=10**400), "constant is 1000"),  # type: ignore[arg-type]
        (lambda: Nearest(()), "0 numbers"),
        (lambda: Nearest((1.0, math.nan)), "number 1 of the vector is nan"),
        (lambda: Nearest(("1",)), "a vector has '1', a str"),  # type: ignore[arg-type]
        (lambda: Nearest((True,)), "a vector has True, a bool"),
        (lambda: Nearest((1.0,), nprobes=0), "nprobes is 0"),
        (lambda: Nearest((1.0,), ef=0), "ef is 0"),
        (lambda: Nearest((1.0,), ef=10**6), "ef is 1000000"),
        (lambda: Nearest((1.0,), ef="9"), "ef is '9'"),  # type: ignore[arg-type]
        (lambda: Nearest((1.0,), ef=9, exact=True), "exact and ef = 9 contradict"),
        (lambda: with_ef("snow", 9), "ef = 9 has no effect"),
        (lambda: with_ef(Nearest((1.0,), ef=8), 9), "ef is 9, and 8 in the query"),
        (lambda: SearchRequest(query="a", k=0), "k is 0"),  # type: ignore[arg-type]
        (lambda: SearchRequest(query="a", k=True), "k is True"),  # type: ignore[arg-type]
        (lambda: SearchRequest(query="a", k=10**6), "k is 1000000"),  # type: ignore[arg-type]
        (lambda: as_query(7), "int is no query"),  # type: ignore[arg-type]
        (lambda: Hybrid("a", "b"), "needs a Nearest beside the text"),  # type: ignore[arg-type]
        (lambda: Hybrid(Nearest((1.0,)), Nearest((1.0,))), "a Nearest is no query for text"),  # type: ignore[arg-type]
        (lambda: Boolean(must=(Nearest((1.0,)),)), "a Nearest is no query for text"),  # type: ignore[arg-type]
        (lambda: Boost("a", 7), "a int is no query for text"),  # type: ignore[arg-type]
    ],
)
def test_a_query_that_asks_for_nothing_sensible_is_refused(make: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make()


@pytest.mark.parametrize(
    ("text", "words", "query"),
    [
        ("snow", False, Match("snow")),
        (' {"type": "phrase", "text": "snow"}', False, Phrase("snow")),
        ('{"type": "phrase", "text": "snow"}', True, Match('{"type": "phrase", "text": "snow"}')),
        ("{snow}", True, Match("{snow}")),
        ("[1]", False, Match("[1]")),
    ],
)
def test_a_text_is_json_where_it_begins_with_a_brace(text: str, words: bool, query: SearchQuery) -> None:
    assert query_of_text(text, words=words) == query


@pytest.mark.parametrize("text", [None, 7, b"snow", "", "{snow}", "{}"])
def test_what_is_no_query_as_text_is_refused(text: Any) -> None:
    with pytest.raises((ConfigError, SerializationError)):
        query_of_text(text)


@pytest.mark.parametrize("columns", ["id", b"id", 5, {"id"}])
def test_columns_that_are_no_list_are_refused(columns: Any) -> None:
    with pytest.raises(ConfigError, match="columns is"):
        as_columns(columns)
    assert (as_columns(None), as_columns(["id"])) == (None, ("id",))


@pytest.mark.parametrize("name", ["_score", "_SCORE", "_distance"])
def test_a_column_with_the_name_of_a_measure_is_refused(name: str) -> None:
    schema = pa.schema([("id", pa.int64()), (name, pa.int64())])
    hybrid = SearchRequest(query=Hybrid("snow", Nearest((1.0,))))
    with pytest.raises(ConfigError, match=name):
        hybrid.projected(schema, where="t")
    kept = SearchRequest(query=Match("snow"), columns=("id",))
    if name == "_score":  # the format would take the one for the other
        with pytest.raises(ConfigError, match=name):
            kept.projected(schema, where="t")
    else:
        assert kept.projected(schema, where="t").names == ["id", "_score"]
