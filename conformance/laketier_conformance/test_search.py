"""Search: the best rows for words and vectors, told beforehand by a look at each row."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from laketier.spi import (
    ConfigError,
    Conflict,
    Feature,
    FeatureNotSupported,
    Hybrid,
    IndexKind,
    IndexMode,
    IndexSpec,
    LakeSearcher,
    LaketierError,
    Leaf,
    Match,
    MultiMatch,
    Nearest,
    Op,
    Phrase,
    SearchQuery,
    SearchRequest,
    SnapshotNotFound,
    TableNotFound,
)
from laketier_conformance import apart
from laketier_conformance.documents import ALL, PHRASES, QUERIES, TEXTS, Documents, documents, size_of
from laketier_conformance.expect import expect, goes_well, is_final, refused
from laketier_conformance.harness import Harness
from laketier_conformance.lake import Lake, token
from laketier_conformance.points import ASKED, ODD, Pointed, same_places

Unproven = Callable[[str, str], None]
WORDED = pytest.mark.needs(Feature.SEARCH, Feature.INDEXING)
VECTORED = pytest.mark.needs(Feature.SEARCH, Feature.VECTORS)
METRICS = ("l2", "cosine", "dot")


@pytest.fixture
def texts(lake: Lake, harness: Harness) -> Documents:
    """A table of rows in four files, without an index. Of a format that can't search it, it is empty."""
    texts = Documents.of(lake, harness)
    return texts.filled() if lake.declares(Feature.SEARCH) else texts


# -- words ----------------------------------------------------------------------------------------------------------


@WORDED
@pytest.mark.parametrize("kind", QUERIES)
def test_words_find_their_rows(texts: Documents, kind: str, unproven: Unproven) -> None:
    """Each row that matches and no other, in an index of several parts."""
    assert isinstance(texts.searcher, LakeSearcher), "the storage's searcher is a LakeSearcher"
    texts.index(3)
    if kind in PHRASES and not texts.options:
        unproven("phrases", "the format's harness has no text_options")
        return
    for query in QUERIES[kind]:
        expect(sorted(texts.found(query)), texts.expected(query), f"the rows that {query} finds")


@WORDED
def test_words_of_several_columns(texts: Documents) -> None:
    """A query may name its column; without one it is about the only column with an index."""
    texts.index(2)
    texts.index(2, spec=replace(texts.spec, name="of_title", column="title"))
    for query in (
        Match("kolt", column="title"),
        Match("kolt", column="doc"),
        MultiMatch("golm hask", ("doc", "title")),
        MultiMatch("golm hask", ("doc", "title"), operator="and"),
    ):
        expect(sorted(texts.found(query)), texts.expected(query), f"the rows that {query} finds")
    with refused(ConfigError, "a query without a column is put to a table with two full-text indexes"):
        texts.found("kolt")
    told = "words are asked of a column that has an index of its values, too"
    with goes_well(told):
        try:
            texts.index(1, spec=IndexSpec("of_values", "doc", IndexKind.BTREE))
        except FeatureNotSupported:
            return
        expect(sorted(texts.found(Match("kolt", column="doc"))), texts.expected("kolt"), f"{told}: the rows")


@WORDED
def test_rows_that_no_index_covers_are_found(texts: Documents, unproven: Unproven) -> None:
    """They are looked at one by one, and the answer says how many these were."""
    texts.index(2)
    texts.append(4, range(1000, 1040))
    texts.append(5, range(1040, 1045))
    for kind, queries in QUERIES.items():
        if kind in PHRASES and not texts.options:
            unproven("phrases", "the format's harness has no text_options")
            continue
        for query in queries:
            found = sorted(texts.found(query))
            expect(found, texts.expected(query), f"the rows that {query} finds, 45 of them not in the index")
    told = texts.searcher.search("kolt").explain
    expect((told.rows, told.rows_flat), (285, 45), "the rows, and those not in the index, as a search tells them")
    expect([each.column for each in told.indexes], ["doc"], "the columns of the indexes that a search used")


@WORDED
def test_deleted_rows_are_not_found(texts: Documents, harness: Harness, unproven: Unproven) -> None:
    """Neither those of an index, nor others."""
    if harness.delete_rows is None:
        texts.searcher  # noqa: B018 - a format without it refuses here
        unproven("searches of rows that others delete", "the format's harness has no delete_rows")
        return
    texts.index(2)
    texts.append(4, range(1000, 1040))
    texts.deleted(harness, [*range(0, 240, 3), *range(1000, 1040, 2)])
    for query in (*QUERIES["any"], *QUERIES["boolean"]):
        found = sorted(texts.found(query))
        expect(found, texts.expected(query), f"the rows that {query} finds after others deleted some")


@WORDED
def test_a_filter_chooses_the_rows_that_are_searched(texts: Documents) -> None:
    """The result is the best k of those: not those of the best k that fulfil it."""
    texts.index(2)
    texts.append(4, range(1000, 1040))
    for query in (Match("kolt zarn"), *QUERIES["boolean"]):
        for told, leaf, keep in (
            ("size = 4", Leaf("size", Op.EQ, 4), lambda i: size_of(i) == 4),
            ("id >= 1000", Leaf("id", Op.GE, 1000), lambda i: i >= 1000),
            ("size is null", Leaf("size", Op.IS_NULL), lambda i: size_of(i) is None),
        ):
            whole = texts.found(query, filters=[leaf])
            expect(sorted(whole), texts.expected(query, keep), f"the rows that {query} finds where {told}")
            best = texts.found(query, 3, filters=[leaf])
            expect(best, whole[:3], f"the best 3 rows that {query} finds where {told}")
    leaves = [Leaf("size", Op.GE, 3), Leaf("size", Op.LT, 6)]
    expected = texts.expected("kolt", lambda i: size_of(i) in (3, 4, 5))
    expect(sorted(texts.found("kolt", filters=leaves)), expected, "the rows that two filters leave")


@WORDED
def test_the_best_come_first(texts: Documents) -> None:
    """By score, equal ones in the order of the table; and so the best k are the first k of all."""
    texts.index(3)
    texts.append(4, range(1000, 1040))
    place = {row_id: at for at, row_id in enumerate(texts.order)}
    for query in (Match("kolt zarn"), Match("brim"), *QUERIES["boolean"], *QUERIES["boost"]):
        rows = texts.searcher.search(query, k=ALL, columns=["id"]).rows
        ids, scores = rows["id"].to_pylist(), rows["_score"].to_pylist()
        ranks = [(-score, place[row_id]) for row_id, score in zip(ids, scores, strict=True)]
        assert len(set(scores)) < len(scores), f"{query} finds no rows of equal score"
        expect(
            ids,
            [row_id for _, row_id in sorted(zip(ranks, ids, strict=True))],
            f"the order of the rows that {query} finds",
        )
        for k in (1, 2, 3, 7, 25, len(ids), len(ids) + 1):
            expect(texts.found(query, k), ids[:k], f"the best {k} rows that {query} finds")


@WORDED
def test_many_that_are_equally_good(texts: Documents) -> None:
    """Of these, too, the first in the table come first, however many more there are, and better ones behind them."""
    texts.searcher  # noqa: B018 - a format without it refuses here
    better = {i for i in range(1000, 1240) if i % 5 == 4}
    for epoch in range(4):
        ids = range(1000 + 60 * epoch, 1060 + 60 * epoch)
        rows = [{"id": i, "doc": "quux quux quux" if i in better else "quux zarn brim"} for i in ids]
        texts.table.publish_arrow([pa.RecordBatch.from_pylist(rows, TEXTS)], token(4 + epoch))
    texts.index(4)
    place = {row_id: at for at, row_id in enumerate(texts.order)}
    rows = texts.searcher.search("quux", k=ALL, columns=["id"]).rows
    scored = dict(zip(rows["id"].to_pylist(), rows["_score"].to_pylist(), strict=True))
    expect(set(scored), set(range(1000, 1240)), "the rows that have a word")
    ranked = sorted(scored, key=lambda i: (-scored[i], place[i]))
    for k in (1, 10, 47, 48, 49, 50, 60, 100, 200, 239, 240):
        expect(texts.found("quux", k), ranked[:k], f"the best {k} of 240 rows with two scores")


@WORDED
def test_a_phrase_of_an_index_with_the_formats_own_settings(texts: Documents) -> None:
    """Such an index need not know where a word stands: then a phrase is refused, and finds no other rows."""
    texts.index(2, spec=replace(texts.spec, options={}))
    for query in QUERIES["phrase"]:
        told = f"{query} is asked of an index with the format's own settings"
        with goes_well(told):
            try:
                found = texts.found(query)
            except (ConfigError, FeatureNotSupported):
                continue  # it keeps no places of words, or finds no phrases through them
        expect(sorted(found), texts.expected(query), f"the rows that {query} finds in such an index")


@WORDED
def test_the_columns_of_an_answer(texts: Documents) -> None:
    """Those that were asked for, in that order, and the score; the rows as the table has them."""
    texts.index(2)
    searcher = texts.searcher
    schema = pa.schema([*TEXTS, pa.field("_score", pa.float64(), nullable=False)])
    whole = searcher.search("kolt", k=5)
    expect(whole.rows.schema, schema, "the columns of an answer")
    expect(whole.snapshot_id, texts.table.info.snapshot_id, "the snapshot of an answer")
    rows = {row["id"]: row for row in documents(texts.ids).to_pylist()}
    for row in whole.rows.to_pylist():
        expect({**rows[row["id"]], "_score": row["_score"]}, row, "a row of an answer")
    for names in (("size", "id"), ("doc",), ()):
        answer = searcher.search("kolt", k=5, columns=names).rows
        expected = whole.rows.select([*names, "_score"])
        expect(answer, expected, f"an answer of the columns {names}")
    expect(searcher.search("quux").rows, schema.empty_table(), "an answer without rows")


@WORDED
@pytest.mark.needs(Feature.TIME_TRAVEL)
def test_an_older_snapshot(texts: Documents) -> None:
    """It has the rows that it had."""
    texts.index(2)
    then, before = texts.table.info.snapshot_id, texts.expected("kolt")
    texts.append(4, range(1000, 1040))
    expect(sorted(texts.found("kolt", snapshot_id=then)), before, "the rows that a search of an older snapshot finds")
    opened = texts.searcher.at()
    texts.append(5, range(2000, 2040))
    assert opened.snapshot_id != then, "a search without a snapshot is of the current one"
    found = Documents(texts.table, texts.options, [i for i in texts.ids if i < 2000])
    again = sorted(opened.search(SearchRequest(query=Match("kolt"), k=ALL)).rows["id"].to_pylist())
    expect(again, found.expected("kolt"), "the rows that an opened snapshot finds after another round")
    assert then is not None, "a table with rows has a snapshot"
    with refused(SnapshotNotFound, "a snapshot is searched that never was"):
        texts.found("kolt", snapshot_id=then + 1_000_000)


@WORDED
def test_a_searcher_finds_what_came_since(texts: Documents) -> None:
    """Whoever names no snapshot asks for the one that is current then: of a searcher that is kept, and of a new one."""
    texts.index(2)
    kept = texts.searcher
    for epoch in (4, 5):
        for which, searcher in (("that was there before", kept), ("that is new", texts.searcher)):
            found = sorted(searcher.search("kolt", k=ALL).rows["id"].to_pylist())
            told = f"the rows that a searcher {which} finds after {epoch} rounds, as no snapshot is named"
            expect(found, texts.expected("kolt"), told)
        texts.append(epoch, range(1000 * epoch, 1000 * epoch + 40))


@WORDED
def test_a_searcher_travels(texts: Documents) -> None:
    """Tasks search, too."""
    texts.index(2)
    searcher: LakeSearcher = pickle.loads(pickle.dumps(texts.searcher))  # noqa: S301 - as an engine sends it
    found = searcher.search("kolt", k=ALL).rows["id"].to_pylist()
    expect(found, texts.found("kolt"), "the rows that a searcher finds which was pickled")


@WORDED
def test_a_request_that_does_not_fit_is_refused(texts: Documents) -> None:
    """It says so, and returns nothing."""
    searcher = texts.searcher
    with refused(ConfigError, "words are asked of a table without a full-text index"):
        searcher.search("kolt")
    texts.index(1)
    searcher = texts.searcher
    for told, query, more in (
        ("a column that is not there is returned", Match("kolt"), {"columns": ["nothing"]}),
        ("a column is returned twice", Match("kolt"), {"columns": ["id", "id"]}),
        ("a column that is not there is filtered", Match("kolt"), {"filters": [Leaf("nothing", Op.EQ, 1)]}),
        ("words are asked of a column that is not there", Match("kolt", column="nothing"), {}),
        ("words are asked of a column without a full-text index", Match("kolt", column="title"), {}),
        ("words are asked of a number", Match("kolt", column="size"), {}),
        ("a phrase is asked of a column without a full-text index", Phrase("kolt", column="title"), {}),
        ("a vector is asked of a text", Nearest((1.0, 2.0), column="doc"), {}),
        ("a vector is asked of a table without vectors", Nearest((1.0, 2.0)), {}),
    ):
        with refused(ConfigError, told):
            searcher.search(query, **more)
    lake, info = texts.table.lake, texts.table.info
    if lake.declares(Feature.DROP_TABLE):
        lake.storage.catalog().drop_table(texts.table.path)
        with refused(TableNotFound, "a table is searched that was dropped"):
            lake.storage.searcher(info).search("kolt")


@WORDED
def test_a_search_of_damaged_files(texts: Documents, unproven: Unproven) -> None:
    """Of rows or of an index: the rows are found all the same, or the table is said to be damaged, and never the query
    to be wrong."""
    root = Path(texts.table.lake.location)
    before = texts.table.lake.files()
    texts.index(2)
    texts.append(4, range(1000, 1040))
    right = texts.expected("kolt")
    files = {name: apart.read(root / name) for name in sorted(texts.table.lake.files())}
    if not set(files) - before:
        unproven("searches of damaged files", "a round and an index leave no files in a local folder")
        return
    for (name, content), (how, damaged) in itertools.product(files.items(), _DAMAGE.items()):
        apart.write(root / name, damaged(content))
        told = f"words are asked of a table whose file {Path(name).name} {how}"
        try:
            expect(sorted(texts.found("kolt")), right, f"{told}: the rows that it finds")
        except (ConfigError, Conflict, TableNotFound) as error:
            raise AssertionError(f"{told}: expected an error that tells of damage, found {error!r}") from error
        except LaketierError:
            pass
        except AssertionError:
            raise
        except Exception as error:
            raise AssertionError(f"{told}: expected an error of laketier's, found {error!r}") from error
        finally:
            apart.write(root / name, content)
    expect(sorted(texts.found("kolt")), right, "the rows that a search finds after all files were put back")
    largest = {Path(name).suffix: name for name in sorted(before & set(files), key=lambda name: len(files[name]))}
    for name in largest.values():
        apart.write(root / name, files[name][: len(files[name]) // 2])
        _is_built_or_refused(texts, f"words are indexed of a table whose file {Path(name).name} was cut")
        apart.write(root / name, files[name])


def _is_built_or_refused(texts: Documents, told: str) -> None:
    """A task tells of what it can't read by an error of laketier's, and of nobody who came first."""
    try:
        plan = texts.indexer.plan(texts.spec, 1, IndexMode.REPLACE)
        for part in plan.parts:
            plan.builder.build(part)
    except LaketierError as error:
        is_final(error, told)
    except Exception as error:
        raise AssertionError(f"{told}: expected an error of laketier's, found {error!r}") from error


_DAMAGE: Mapping[str, Callable[[bytes], bytes]] = {
    "was cut": lambda content: content[: len(content) // 2],
    "has other bytes": lambda content: b"\xff\xfe" * (1 + len(content) // 2),
}


# -- vectors --------------------------------------------------------------------------------------------------------


@VECTORED
@pytest.mark.parametrize("metric", METRICS)
def test_the_nearest_are_those_of_a_look_at_each(lake: Lake, harness: Harness, metric: str) -> None:
    """Rows, distances, and which of two equal ones comes first; also beside many rows that are near to nothing."""
    points = Pointed.of(lake, harness)
    for vector in ASKED:
        for exact in (True, False):
            query = Nearest(vector, metric=metric, exact=exact)
            wanted = points.ranked(query)
            for k in (1, 5, 40, ALL):
                rows = points.texts.searcher.search(query, k=k, columns=["id"]).rows
                same_places(rows, wanted[:k], wanted, f"the {k} nearest to {vector} by {metric}")
                expect(rows.schema.names, ["id", "_distance"], "the columns of the nearest")
    assert len({far for far, _ in points.ranked(Nearest(ASKED[0], metric="l2"))}) < 120, "no two are equally far"
    points.append(3, range(ODD, ODD + 90))
    query = Nearest(ASKED[0], metric=metric, exact=True)
    wanted = points.ranked(query)
    for k in (1, 40):
        rows = points.texts.searcher.search(query, k=k, columns=["id"]).rows
        same_places(rows, wanted[:k], wanted, f"the {k} nearest by {metric}, beside 90 vectors with NaN")


@VECTORED
def test_a_filter_chooses_the_vectors_that_are_compared(lake: Lake, harness: Harness, unproven: Unproven) -> None:
    """The nearest k of those, deleted ones never among them."""
    points = Pointed.of(lake, harness)
    query, leaf = Nearest(ASKED[0], metric="l2"), Leaf("size", Op.EQ, 4)
    whole = points.ranked(query)
    rows = points.texts.searcher.search(query, k=4, columns=["id"], filters=[leaf]).rows
    same_places(rows, points.ranked(query, lambda i: size_of(i) == 4)[:4], whole, "the 4 nearest where size = 4")
    if harness.delete_rows is None:
        unproven("searches of rows that others delete", "the format's harness has no delete_rows")
        return
    points.texts.deleted(harness, [row_id for _, row_id in whole[:10]])
    rows = points.texts.searcher.search(query, k=5, columns=["id"]).rows
    same_places(rows, whole[10:15], whole[10:], "the 5 nearest after others deleted the 10 nearest")


@VECTORED
@pytest.mark.needs(Feature.INDEXING)
def test_words_and_a_vector(lake: Lake, harness: Harness) -> None:
    """The two lists, fused by the ranks in each."""
    points = Pointed.of(lake, harness)
    texts = points.texts
    texts.index(2)
    for vector, words in zip(ASKED, ("kolt zarn", "brim", "hask golm dusk"), strict=True):
        near = Nearest(vector, exact=True)
        for depth, k in ((30, 10), (5, 20)):
            first, second = texts.found(words, max(depth, k)), texts.found(near, max(depth, k))
            ranks: dict[int, float] = {}
            for ranking in (first, second):
                for rank, row_id in enumerate(ranking, start=1):
                    ranks[row_id] = ranks.get(row_id, 0.0) + 1 / (60 + rank)
            place = {row_id: at for at, row_id in enumerate(texts.order)}
            expected = sorted(ranks, key=lambda row_id: (-ranks[row_id], place[row_id]))[:k]
            told = f"the best {k} for {words!r} and {vector}, fused of {depth} each"
            query: SearchQuery = Hybrid(Match(words), near, depth=depth)
            rows = texts.searcher.search(query, k=k, columns=["id"]).rows
            expect(rows["id"].to_pylist(), expected, told)
            expect(rows["_score"].to_pylist(), pytest.approx([ranks[i] for i in expected]), f"{told}: their scores")
            leaf = Leaf("size", Op.EQ, 4)
            kept = texts.found(query, k, filters=[leaf])
            assert all(size_of(i) == 4 for i in kept), f"{told}, where size = 4: found the rows {kept}"


@VECTORED
def test_a_vector_that_does_not_fit_is_refused(lake: Lake, harness: Harness) -> None:
    """It says so, and returns nothing."""
    searcher = Pointed.of(lake, harness, rounds=1).texts.searcher
    for told, query in (
        ("a vector of another length is asked", Nearest((1.0, 2.0))),
        ("a vector is asked of a number", Nearest(ASKED[0], column="size")),
        ("a vector is asked of a column that is not there", Nearest(ASKED[0], column="nothing")),
    ):
        with refused(ConfigError, told):
            searcher.search(query)
