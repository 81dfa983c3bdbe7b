"""What a search asks of Lance, and what it refuses, one by one."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import lance
import pyarrow as pa
import pytest

from laketier.spi import (
    Boolean,
    Boost,
    ConfigError,
    CorruptTable,
    FeatureNotSupported,
    Hybrid,
    Leaf,
    Match,
    MultiMatch,
    Nearest,
    Op,
    Phrase,
    SearchRequest,
    TableError,
)
from laketier_lance import searcher
from laketier_lance.questions import columns_asked, is_fuzzy, lance_query
from laketier_lance.ranked import Ranked
from laketier_lance.searcher import LanceSearchSnapshot, _metric_of, _names_none
from laketier_lance.words import dropped, is_dropped, texts_of

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("doc", pa.string()),
        ("title", pa.string()),
        ("v", pa.list_(pa.float32(), 2)),
        ("w", pa.list_(pa.float64(), 3)),
        ("f", pa.float64()),
        ("ints", pa.list_(pa.int8(), 2)),
    ]
)


MOMENT = 1_767_323_045_000_000
"""Of the commit, in microseconds."""


def index(name: str, column: str, kind: str, *covered: int, **details: Any) -> Any:
    segment = SimpleNamespace(fragment_ids=list(covered))
    return SimpleNamespace(name=name, field_names=[column], index_type=kind, segments=[segment], details=details)


WORDS = index("words", "doc", "Inverted", 0, 9, with_position=True)
NEAR = index("near", "v", "IVF_HNSW_PQ", 0, 1, metric_type="Cosine")


class Answers:
    """In the place of `Ranked`: takes down what it is asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.best_of: dict[str, list[tuple[int, float]]] = {}

    def best(
        self, ask: Any, measure: str, k: int, condition: str | None, *, limited: bool, descending: bool
    ) -> list[tuple[int, float]]:
        self.asked.append((ask, measure, k, condition, limited, descending))
        return self.best_of.get(measure, [])

    def rows(self, best: Any, schema: pa.Schema) -> pa.Table:
        self.asked.append((list(best), schema.names))
        return pa.table({"n": [row for row, _ in best]})


def snapshot(*indexes: Any, schema: pa.Schema = SCHEMA, metadata: Any = None) -> Any:
    fragments = [
        SimpleNamespace(fragment_id=number, count_rows=lambda rows=rows: rows) for number, rows in ((0, 10), (1, 5))
    ]
    dataset = SimpleNamespace(
        version=7,
        schema=schema.with_metadata(metadata),
        uri="/t",
        describe_indices=lambda: list(indexes),
        get_fragments=lambda: fragments,
        _ds=SimpleNamespace(current_version=lambda: {"timestamp": MOMENT * 1000}),
    )
    found: Any = LanceSearchSnapshot(dataset, "db.t")  # type: ignore[arg-type]
    found._ranked = Answers()
    return found


def ask(at: Any, query: Any, k: int = 3, **more: Any) -> Any:
    return at.search(SearchRequest(query=query, k=k, **more))


# -- a snapshot ------------------------------------------------------------------------------------------------------


def test_a_snapshot_tells_what_it_is() -> None:
    at = snapshot(metadata={b"laketier.table-uuid": b"u", b"a": b"b"})
    assert (at.snapshot_id, at.identity, at.schema.metadata) == (7, f"u@{MOMENT}", None)
    assert snapshot().identity == f"@{MOMENT}"


def test_indexes_of_lances_own_answer_nothing() -> None:
    books = index("__lance_frag_reuse", "", "FragmentReuse")
    books.field_names = []
    at = snapshot(books, WORDS)
    assert at._indexes == [WORDS]


# -- words -----------------------------------------------------------------------------------------------------------


def test_words_are_asked_of_the_only_column_that_has_an_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searcher, "lance_query", lambda query, only: (query, only))
    at = snapshot(WORDS, NEAR)
    at._ranked.best_of = {"_score": [(4, 1.0)]}
    found = ask(at, Match("snow"), columns=("id",), filters=(Leaf("id", Op.GT, 1), Leaf("id", Op.LT, 9)))
    asked = {"full_text_query": (Match("snow"), "doc")}
    condition = "(`id` > 1) AND (`id` < 9)"
    assert at._ranked.asked == [(asked, "_score", 3, condition, True, True), ([(4, 1.0)], ["id", "_score"])]
    assert (found.snapshot_id, found.explain.rows, found.explain.rows_flat) == (7, 15, 5)
    assert [(use.name, use.column, use.kind, use.rows) for use in found.explain.indexes] == [
        ("words", "doc", "Inverted", 10)
    ]
    assert set(found.explain.milliseconds) == {"text", "rows"}
    assert all(0 <= each < 60_000 for each in found.explain.milliseconds.values())
    assert found.explain.notes == ()


@pytest.mark.parametrize(
    ("query", "limited"),
    [
        (Match("a", "doc"), True),
        (Phrase("a b", "doc"), True),
        (MultiMatch("a", ("doc",)), False),
        (Boolean(must=(Match("a", "doc"),)), False),
        (Boost(Match("a", "doc"), Match("b", "doc")), False),
    ],
)
def test_a_query_of_parts_is_asked_without_a_limit(monkeypatch: pytest.MonkeyPatch, query: Any, limited: bool) -> None:
    monkeypatch.setattr(searcher, "lance_query", lambda *_: "it")
    monkeypatch.setattr(searcher, "is_dropped", lambda *_: False)
    at = snapshot(WORDS)
    ask(at, query)
    assert at._ranked.asked[0][3:] == (None, limited, True)


def test_where_nothing_is_found_dropped_words_are_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searcher, "lance_query", lambda *_: "it")
    monkeypatch.setattr(searcher, "is_dropped", lambda text, _: text == "the")
    at = snapshot(WORDS, index("titles", "title", "Inverted", 0, 1))
    query = Boolean(should=(Match("the", "doc"), Match("the", "doc"), Match("the", "title"), Match("snow", "doc")))
    notes = ask(at, query).explain.notes
    assert notes == (dropped("the", "words"), dropped("the", "titles"))
    at._ranked.best_of = {"_score": [(1, 1.0)]}
    assert ask(at, query).explain.notes == ()


@pytest.mark.parametrize(
    ("indexes", "query", "told"),
    [
        ([], Match("a"), "the table has no full-text index"),
        ([NEAR], Match("a"), "the table has no full-text index"),
        ([WORDS, index("t", "title", "Inverted")], Match("a"), "the columns doc, title have full-text indexes"),
        ([WORDS], Match("a", "title"), "column 'title' has no full-text index"),
        ([WORDS], Match("a", "titel"), "there is no column 'titel'.*Did you mean 'title'"),
        ([WORDS], Match("a", "zzzzzz"), "there is no column 'zzzzzz'.*It has id, doc, title, v, w, f, ints"),
        ([index("x", "doc", "Inverted")], Phrase("a"), "index 'x' has no positions"),
        ([index("x", "doc", "Inverted", with_position=False)], Phrase("a"), "index 'x' has no positions"),
        (
            [WORDS, index("y", "doc", "Inverted")],
            Match("a", "doc"),
            "column 'doc' has 2 indexes for this: 'words', 'y'",
        ),
    ],
    ids=str,
)
def test_words_that_can_not_be_asked_for(indexes: Any, query: Any, told: str) -> None:
    at = snapshot(*indexes)
    with pytest.raises(ConfigError, match=told):
        ask(at, query)
    assert at._ranked.asked == []


def test_a_phrase_is_not_asked_of_pieces_of_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searcher, "lance_query", lambda *_: "it")
    monkeypatch.setattr(searcher, "is_dropped", lambda *_: False)
    pieces = index("x", "doc", "Inverted", 0, 1, base_tokenizer="ngram", with_position=True)
    for query in (Phrase("a b"), Boolean(must=(Match("a"), Phrase("a b")))):
        with pytest.raises(FeatureNotSupported, match="search for a phrase in column 'doc'"):
            ask(snapshot(pieces), query)
    ask(snapshot(pieces), Match("a b"))
    ask(snapshot(index("x", "doc", "Inverted", 0, 1, base_tokenizer="simple", with_position=True)), Phrase("a b"))


def test_an_index_without_details_has_no_positions() -> None:
    bare = index("x", "doc", "Inverted")
    bare.details = None
    with pytest.raises(ConfigError, match="no positions"):
        ask(snapshot(bare), Phrase("a"))


def test_nearly_alike_words_are_asked_for_where_all_rows_are_indexed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searcher, "lance_query", lambda *_: "it")
    monkeypatch.setattr(searcher, "is_dropped", lambda *_: False)
    fuzzy = Match("a", "doc", fuzziness=1)
    ask(snapshot(index("x", "doc", "Inverted", 0, 1)), fuzzy)
    ask(snapshot(WORDS), Match("a", "doc"))
    for indexes, query, rows in (
        ([WORDS], fuzzy, 5),
        ([index("x", "doc", "Inverted")], fuzzy, 15),
        (
            [index("x", "doc", "Inverted", 0, 1), index("t", "title", "Inverted", 1)],
            Boolean(must=(fuzzy, Match("b", "title"))),
            10,
        ),
    ):
        with pytest.raises(FeatureNotSupported, match=f"{rows} rows are not in the index"):
            ask(snapshot(*indexes), query)


# -- vectors ---------------------------------------------------------------------------------------------------------

ONE = pa.schema([("id", pa.int64()), ("v", pa.list_(pa.float32(), 2))])
FLAT = index("flat", "v", "IVF_FLAT", 0, metric_type="L2")


def nearest(at: Any) -> dict[str, Any]:
    (given, measure, k, condition, limited, descending), _ = at._ranked.asked
    assert (measure, k, condition, limited, descending) == ("_distance", 3, None, True, False)
    told = dict(given["nearest"])
    assert told.pop("q").equals(pa.array([1.0, 2.0], pa.float32()))
    assert told.pop("column") == "v"
    return told


@pytest.mark.parametrize(
    ("indexes", "query", "told", "flat"),
    [
        ([], {}, {"metric": "l2", "use_index": False}, 15),
        ([], {"metric": "dot"}, {"metric": "dot", "use_index": False}, 15),
        ([FLAT], {}, {"metric": "l2", "use_index": True, "refine_factor": 1}, 5),
        ([FLAT], {"exact": True}, {"metric": "l2", "use_index": False}, 15),
        ([FLAT], {"metric": "cosine"}, {"metric": "cosine", "use_index": False}, 15),
        ([FLAT], {"metric": "l2", "exact": True}, {"metric": "l2", "use_index": False}, 15),
        (
            [FLAT],
            {"nprobes": 4, "refine": 3},
            {"metric": "l2", "use_index": True, "minimum_nprobes": 4, "maximum_nprobes": 4, "refine_factor": 3},
            5,
        ),
        ([NEAR], {}, {"metric": "cosine", "use_index": True, "refine_factor": 1, "ef": None, "by_rows": 320}, 0),
        ([NEAR], {"ef": 9}, {"metric": "cosine", "use_index": True, "refine_factor": 1, "ef": 9, "by_rows": 320}, 0),
        (
            [index("d", "v", "IVF_FLAT", 0, metric_type="Dot")],
            {},
            {"metric": "dot", "use_index": True, "refine_factor": 1},
            5,
        ),
        ([index("o", "v", "IVF_FLAT", 0, metric_type="Hamming")], {}, {"metric": "l2", "use_index": False}, 15),
        ([index("b", "v", "BTree", 0)], {}, {"metric": "l2", "use_index": False}, 15),
    ],
    ids=str,
)
def test_vectors_are_asked_with_the_index_of_their_metric(indexes: Any, query: Any, told: Any, flat: int) -> None:
    at = snapshot(*indexes, schema=ONE)
    found = ask(at, Nearest((1.0, 2.0), **query), columns=("id",))
    assert nearest(at) == told
    assert found.explain.rows_flat == flat
    assert [use.name for use in found.explain.indexes] == [each.name for each in indexes if told["use_index"]]
    assert set(found.explain.milliseconds) == {"nearest", "rows"}


@pytest.mark.parametrize(
    ("indexes", "query", "told", "why"),
    [
        ([], Nearest((1.0, 2.0)), "the columns v, w hold vectors", ""),
        ([], Nearest((1.0,), "v"), "the vectors of 'v' have 2 numbers, and the query 1", ""),
        ([], Nearest((1.0, 2.0), "w"), "the vectors of 'w' have 3 numbers, and the query 2", ""),
        ([], Nearest((1.0, 2.0), "ints"), "column 'ints' holds fixed_size_list", ""),
        ([], Nearest((1.0, 2.0), "doc"), "column 'doc' holds string", ""),
        ([], Nearest((1.0, 2.0), "nope"), "there is no column 'nope'", ""),
        ([], Nearest((1.0, 2.0), "v", ef=20), "ef = 20 has no effect", "column 'v' has no index of vectors"),
        ([NEAR], Nearest((1.0, 2.0), "v", metric="l2", ef=20), "ef = 20", "is of metric cosine, and the query of l2"),
        ([FLAT], Nearest((1.0, 2.0), "v", ef=20), "ef = 20", "which has no graph"),
        ([FLAT, NEAR], Nearest((1.0, 2.0), "v"), "column 'v' has 2 indexes for this: 'flat', 'near'", ""),
        ([NEAR], Nearest((0.0, -0.0), "v"), "all zeros", ""),
        ([], Nearest((1e39, 0.0), "v"), "too large for 'v'", ""),
    ],
    ids=str,
)
def test_vectors_that_can_not_be_asked_for(indexes: Any, query: Any, told: str, why: str) -> None:
    at = snapshot(*indexes)
    with pytest.raises(ConfigError, match=told) as failure:
        ask(at, query)
    assert why in str(failure.value.why or "")
    assert at._ranked.asked == []


def test_two_indexes_of_vectors_do_not_matter_to_who_asks_none() -> None:
    at = snapshot(FLAT, NEAR)
    assert ask(at, Nearest((1.0, 2.0), "v", metric="l2", exact=True)).explain.rows_flat == 15
    with pytest.raises(ConfigError, match="2 indexes"):
        ask(snapshot(FLAT, NEAR), Nearest((1.0, 2.0), "v", exact=True))


def test_the_longest_vector_that_is_asked_for() -> None:
    of_doubles = pa.schema([("v", pa.list_(pa.float64(), 2))])
    ask(snapshot(schema=of_doubles), Nearest((0.0, 1e19)))
    with pytest.raises(ConfigError, match="too large for 'v'"):
        ask(snapshot(schema=of_doubles), Nearest((0.0, math.nextafter(1e19, 2e19))))


def test_zeros_have_a_distance_but_no_direction() -> None:
    ask(snapshot(FLAT), Nearest((0.0, 0.0), "v"))
    ask(snapshot(), Nearest((0.0, 0.0), "v", metric="dot"))
    ask(snapshot(NEAR), Nearest((0.0, 1.0), "v"))


def test_a_table_without_vectors_is_told() -> None:
    plain = pa.schema([("id", pa.int64())])
    with pytest.raises(ConfigError, match="no column holds vectors") as failure:
        ask(snapshot(schema=plain), Nearest((1.0,)))
    assert not failure.value.fix


def test_a_hybrid_asks_both_as_deep_as_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searcher, "lance_query", lambda *_: "it")
    monkeypatch.setattr(searcher, "is_dropped", lambda *_: False)
    for depth, k, asked in ((5, 3, 5), (2, 3, 3)):
        at = snapshot(WORDS)
        at._ranked.best_of = {"_score": [(1, 9.0), (2, 8.0), (3, 7.0)], "_distance": [(3, 0.1), (4, 0.2)]}
        ask(at, Hybrid(Match("a"), Nearest((1.0, 2.0), "v"), depth=depth), k=k, columns=("id",))
        text, near, rows = at._ranked.asked
        assert (text[1:3], near[1:3]) == (("_score", asked), ("_distance", asked))
        assert [row for row, _ in rows[0]] == [3, 1, 2]
        assert rows[1] == ["id", "_score"]


def test_how_long_each_part_took(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(100))
    tick = lambda: 5000 + next(clock)  # noqa: E731
    monkeypatch.setattr("laketier_lance.searcher.time.perf_counter", tick)
    monkeypatch.setattr(searcher, "lance_query", lambda *_: "it")
    monkeypatch.setattr(searcher, "is_dropped", lambda *_: False)
    at = snapshot(WORDS)
    best, rows = at._ranked.best, at._ranked.rows
    at._ranked.best = lambda *given, **more: (tick(), best(*given, **more))[1]
    at._ranked.rows = lambda *given: (tick(), rows(*given))[1]
    found = ask(at, Hybrid(Match("a"), Nearest((1.0, 2.0), "v")))
    assert dict(found.explain.milliseconds) == {"text": 2000, "nearest": 2000, "rows": 2000}


def test_the_metric_of_an_index() -> None:
    assert _metric_of(None) is None
    assert _metric_of(SimpleNamespace(details=None)) is None
    assert _metric_of(SimpleNamespace(details={"metric_type": "COSINE"})) == "cosine"
    assert _metric_of(SimpleNamespace(details={"metric_type": "HAMMING"})) is None


def test_a_filter_that_lance_may_see_otherwise_is_refused() -> None:
    at = snapshot(WORDS)
    with pytest.raises(FeatureNotSupported, match="search with this filter"):
        ask(at, Match("a"), filters=(Leaf("id", Op.GT, 1), Leaf("f", Op.GT, 1.0)))
    assert at._ranked.asked == []


# -- queries in pylance's words --------------------------------------------------------------------------------------


@pytest.fixture
def spoken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A query of pylance is what it was made of."""
    for name in ("MatchQuery", "PhraseQuery", "MultiMatchQuery", "BoostQuery", "BooleanQuery"):
        monkeypatch.setattr(f"lance.query.{name}", lambda *given, name=name, **more: (name, given, more))


AND, OR = lance.query.FullTextOperator.AND, lance.query.FullTextOperator.OR
OF_A = ("MatchQuery", ("a", "only"), {"boost": 1.0, "fuzziness": 0, "operator": OR})


@pytest.mark.parametrize(
    ("query", "told"),
    [
        (Match("a"), OF_A),
        (
            Match("a", "c", operator="and", fuzziness=2, boost=3.0),
            ("MatchQuery", ("a", "c"), {"boost": 3.0, "fuzziness": 2, "operator": AND}),
        ),
        (Phrase("a b", slop=2), ("PhraseQuery", ("a b", "only"), {"slop": 2})),
        (Phrase("a b", "c"), ("PhraseQuery", ("a b", "c"), {"slop": 0})),
        (MultiMatch("a", ("c", "d")), ("MultiMatchQuery", ("a", ["c", "d"]), {"boosts": None, "operator": OR})),
        (
            MultiMatch("a", ("c", "d"), boosts=(1.0, 2.0), operator="and"),
            ("MultiMatchQuery", ("a", ["c", "d"]), {"boosts": [1.0, 2.0], "operator": AND}),
        ),
        (
            Boost(Match("a"), Phrase("b"), factor=0.25),
            ("BoostQuery", (OF_A, ("PhraseQuery", ("b", "only"), {"slop": 0})), {"negative_boost": 0.25}),
        ),
        (
            Boolean(must=(Match("a"),), should=(Phrase("s"),), must_not=(Phrase("n"),)),
            (
                "BooleanQuery",
                (
                    [
                        (lance.query.Occur.MUST, OF_A),
                        (lance.query.Occur.SHOULD, ("PhraseQuery", ("s", "only"), {"slop": 0})),
                        (lance.query.Occur.MUST_NOT, ("PhraseQuery", ("n", "only"), {"slop": 0})),
                    ],
                ),
                {},
            ),
        ),
    ],
    ids=str,
)
def test_a_query_in_the_words_of_pylance(spoken: None, query: Any, told: Any) -> None:
    assert lance_query(query, "only") == told


def test_a_query_without_any_column_is_for_none(spoken: None) -> None:
    assert lance_query(Match("a"), None)[1] == ("a", "")
    assert lance_query(Phrase("a"), None)[1] == ("a", "")


@pytest.mark.parametrize(
    ("query", "columns", "texts", "fuzzy", "without"),
    [
        (Match("a"), [("only", False)], [("only", "a")], False, True),
        (Match("a", "c", fuzziness=1), [("c", False)], [("c", "a")], True, False),
        (Phrase("a"), [("only", True)], [("only", "a")], False, True),
        (Phrase("a", "c"), [("c", True)], [("c", "a")], False, False),
        (MultiMatch("a", ("c", "d")), [("c", False), ("d", False)], [("c", "a"), ("d", "a")], False, False),
        (
            Boolean(must=(Match("a", "c"),), should=(Match("b", fuzziness=1),), must_not=(Phrase("n", "d"),)),
            [("c", False), ("only", False), ("d", True)],
            [("c", "a"), ("only", "b"), ("d", "n")],
            True,
            True,
        ),
        (Boost(Match("a", "c"), Match("b", "d")), [("c", False), ("d", False)], [("c", "a"), ("d", "b")], False, False),
    ],
    ids=str,
)
def test_what_a_query_is_about(query: Any, columns: Any, texts: Any, fuzzy: bool, without: bool) -> None:
    assert list(columns_asked(query, "only")) == columns
    assert list(texts_of(query, "only")) == texts
    assert is_fuzzy(query) is fuzzy
    assert _names_none(query) is without


def test_a_text_for_no_column() -> None:
    assert list(texts_of(Match("a"), None)) == [("", "a")]
    assert list(columns_asked(Match("a"), None)) == [("", False)]
    assert list(columns_asked(Phrase("a"), None)) == [("", True)]


def test_the_tokenizer_is_told_the_settings_of_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(
        lance, "tokenize", lambda text, **given: asked.append((text, given)) or (["x"] if text == "a" else [])
    )
    details = {"language": "English", "stem": None, "with_position": True, "block_size": 5}
    assert not is_dropped("a", SimpleNamespace(details=details))
    assert is_dropped("b", SimpleNamespace(details=details | {"max_token_length": None, "stem": False}))
    assert asked == [
        ("a", {"language": "English"}),
        ("b", {"language": "English", "stem": False, "max_token_length": None}),
    ]
    for error in (TypeError("x"), ValueError("x"), OSError("x"), RuntimeError("x"), KeyError("x")):

        def fails(*_: Any, error: Exception = error, **__: Any) -> Any:
            raise error

        monkeypatch.setattr(lance, "tokenize", fails)
        if isinstance(error, KeyError):
            with pytest.raises(KeyError):
                is_dropped("a", SimpleNamespace(details=None))
        else:
            assert not is_dropped("a", SimpleNamespace(details=None))


# -- the best rows ---------------------------------------------------------------------------------------------------


class Scans:
    """A dataset whose scans give tables, one after the other."""

    uri = "/t"

    def __init__(self, rows: int, *answers: Any) -> None:
        self._rows, self._answers = rows, list(answers)
        self.asked: list[dict[str, Any]] = []

    def count_rows(self) -> int:
        return self._rows

    def scanner(self, **given: Any) -> Any:
        self.asked.append(given)
        answer = self._answers.pop(0)

        def to_table() -> pa.Table:
            if isinstance(answer, Exception):
                raise answer
            return answer

        return SimpleNamespace(to_table=to_table)


def scored(*measures: float | None, first: int = 0) -> pa.Table:
    rows = pa.array(range(first, first + len(measures)), pa.uint64())
    return pa.table({"_score": pa.array(measures, pa.float64()), "_rowid": rows})


def best(dataset: Any, k: int, condition: str | None = None, limited: bool = True, descending: bool = True) -> Any:
    return Ranked(dataset, "t").best(
        {"full_text_query": "q"}, "_score", k, condition, limited=limited, descending=descending
    )


def test_more_rows_are_asked_for_until_the_tie_ends() -> None:
    tied = Scans(10_000, scored(*[1.0] * 10), scored(*[2.0], *[1.0] * 70, *[0.5] * 9))
    assert best(tied, 1, "c") == [(0, 2.0)]
    given = {"columns": ["_score"], "with_row_id": True, "filter": "c", "prefilter": True, "full_text_query": "q"}
    assert tied.asked == [{**given, "limit": 10}, {**given, "limit": 80}]
    enough = Scans(10_000, scored(*[2.0], *[1.0] * 9))
    assert best(enough, 1) == [(0, 2.0)]
    apart = Scans(10_000, scored(*[2.0] * 9, 1.0))
    assert best(apart, 1) == [(0, 2.0)], "the tie has ended"
    second = Scans(10_000, scored(3.0, *[2.0] * 11), scored(3.0, *[2.0] * 20))
    assert best(second, 2) == [(0, 3.0), (1, 2.0)]
    assert len(second.asked) == 2
    few = Scans(10_000, scored(*[1.0] * 9))
    assert best(few, 1) == [(0, 1.0)], "fewer than were asked for are all"
    small = Scans(9, scored(*[1.0] * 9))
    assert best(small, 1) == [(0, 1.0)], "and so are as many as there are"
    assert small.asked[0]["limit"] == 9
    grown = Scans(50, scored(*[1.0] * 10), scored(*[1.0] * 50))
    assert best(grown, 1) == [(0, 1.0)]
    assert [each["limit"] for each in grown.asked] == [10, 50]
    unlimited = Scans(10_000, scored(*[1.0] * 10))
    assert best(unlimited, 1, limited=False) == [(0, 1.0)]
    assert unlimited.asked[0]["limit"] is None
    assert best(Scans(0, scored()), 5) == []


def test_rows_without_a_measure_take_no_places() -> None:
    """As they may come first: 1 less infinity is below all distances."""
    nothing = float("-inf")
    first = Scans(
        10_000, scored(*[nothing] * 10), scored(*[nothing] * 78, 1.0, 2.0), scored(*[nothing] * 300, 1.0, 2.0, 3.0)
    )
    assert best(first, 1, descending=False) == [(78, 1.0)]
    assert [each["limit"] for each in first.asked] == [10, 80]
    never = Scans(12, scored(*[None] * 10), scored(*[None] * 12))
    assert best(never, 1) == []
    assert len(never.asked) == 2, "all rows were asked for"
    some = Scans(10_000, scored(3.0, *[nothing] * 11), scored(3.0, *[nothing] * 94, 2.0), scored(*[nothing] * 5, 9.0))
    assert best(some, 2) == [(5, 9.0)], "fewer than were wanted are all that there are"


def test_rows_are_in_the_order_of_their_measure_and_then_of_the_table() -> None:
    table = pa.table(
        {
            "_score": [1.0, 2.0, 1.0, None, float("nan"), float("inf")],
            "_rowid": pa.array([9, 5, 3, 1, 2, 0], pa.uint64()),
        }
    )
    assert best(Scans(6, table), 9) == [(5, 2.0), (3, 1.0), (9, 1.0)], "what has no finite measure is no answer"
    assert best(Scans(6, table), 2, descending=False) == [(3, 1.0), (9, 1.0)]


def test_vectors_are_asked_for_as_many_rows_as_are_wanted() -> None:
    dataset = Scans(100, scored(*[1.0] * 3))
    Ranked(dataset, "t").best({"nearest": {"column": "v"}}, "_score", 2, None, limited=True, descending=False)
    assert (dataset.asked[0]["nearest"], dataset.asked[0]["limit"]) == ({"column": "v", "k": 12}, 12)


@pytest.mark.parametrize(
    ("error", "kind", "told"),
    [
        (ValueError("no such thing"), ConfigError, "Lance refuses the query"),
        (ValueError("Not found: x.idx"), CorruptTable, "missing"),
        (pa.ArrowInvalid("Not found: x.idx"), CorruptTable, "missing"),
        (pa.ArrowInvalid("file does not appear to be a Lance file"), CorruptTable, "can't be read"),
        (OSError("no such thing"), TableError, "could not read"),
        (KeyError("ours"), KeyError, "ours"),
    ],
)
def test_a_question_that_fails(error: Exception, kind: type[Exception], told: str) -> None:
    with pytest.raises(kind, match=told) as failure:
        best(Scans(5, error), 1)
    assert type(failure.value) is kind


def test_rows_come_in_the_order_of_the_answer() -> None:
    schema = pa.schema([("a", pa.string()), ("_score", pa.float64())])
    found = pa.table({"a": ["x", "y"], "_rowid": pa.array([4, 7], pa.uint64())})
    dataset = Scans(9, found)
    rows = Ranked(dataset, "t").rows([(7, 0.5), (4, 0.25)], schema)  # type: ignore[arg-type]
    assert rows.to_pylist() == [{"a": "y", "_score": 0.5}, {"a": "x", "_score": 0.25}]
    asked = {"columns": ["a"], "with_row_id": True, "filter": "_rowid IN (7, 4)", "blob_handling": "all_binary"}
    assert dataset.asked == [asked]
    nothing = Scans(9, found.slice(0, 0))
    assert Ranked(nothing, "t").rows([], schema).num_rows == 0  # type: ignore[arg-type]
    assert nothing.asked[0]["filter"] == "false"
    with pytest.raises(CorruptTable, match="rows that an index names are not in the table"):
        Ranked(Scans(9, found), "t").rows([(7, 0.5), (5, 0.25)], schema)  # type: ignore[arg-type]
    for error, kind in ((OSError("x"), TableError), (KeyError("x"), KeyError)):
        with pytest.raises(kind):
            Ranked(Scans(9, error), "t").rows([(7, 0.5)], schema)  # type: ignore[arg-type]
    odd = pa.schema([("a`b", pa.string()), ("_score", pa.float64())])
    with pytest.raises(FeatureNotSupported, match=r"search with the columns \['a`b'\]"):
        Ranked(Scans(9), "t").rows([(7, 0.5)], odd)  # type: ignore[arg-type]
