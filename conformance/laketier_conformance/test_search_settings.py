"""The settings of a query do what they say: factors, words in between, edits, constants, metrics and candidates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pytest

from laketier.spi import (
    Boolean,
    Boost,
    ConfigError,
    Feature,
    FeatureNotSupported,
    Hybrid,
    IndexKind,
    IndexSpec,
    Leaf,
    Match,
    MultiMatch,
    Nearest,
    Op,
    Phrase,
    SearchQuery,
    TableError,
    to_arrow,
)
from laketier_conformance.documents import ALL, TEXTS, WORDS, Documents, documents, matches, text_of, words_of
from laketier_conformance.expect import expect, goes_well, refused
from laketier_conformance.harness import Harness
from laketier_conformance.lake import Lake, token
from laketier_conformance.points import ASKED, DIMENSIONS, Pointed, same_places, vector_of
from laketier_conformance.typed_values import FLAT

Unproven = Callable[[str, str], None]
WORDED = pytest.mark.needs(Feature.SEARCH, Feature.INDEXING)
VECTORED = pytest.mark.needs(Feature.SEARCH, Feature.INDEXING, Feature.VECTORS)


@pytest.fixture
def texts(lake: Lake, harness: Harness) -> Documents:
    """A table of 120 rows in two files, with an index of its texts in two parts."""
    texts = Documents.of(lake, harness)
    if not lake.declares(Feature.SEARCH, Feature.INDEXING):
        return texts
    texts.filled(rounds=2)
    texts.index(2)
    return texts


# -- words ----------------------------------------------------------------------------------------------------------


def _edits(one: str, other: str) -> int:
    """How many letters are put in, taken out or exchanged between two words."""
    row = list(range(len(other) + 1))
    for at, had in enumerate(one, start=1):
        before, row[0] = row[0], at
        for to, wanted in enumerate(other, start=1):
            before, row[to] = row[to], min(row[to] + 1, row[to - 1] + 1, before + (had != wanted))
    return row[-1]


@WORDED
def test_words_that_are_nearly_alike(texts: Documents) -> None:
    """By as many edits as the query allows; or such a query is refused. It does not leave rows out in silence."""
    texts.searcher  # noqa: B018 - a format without it refuses here
    for covered in (True, False):
        if not covered:
            texts.append(2, range(1000, 1030))
        for word, fuzziness in (
            ("kolx", 1),
            ("xkolt", 1),
            ("kot", 1),
            ("kolt", 2),
            ("kolxx", 2),
            ("kolxx", 1),
            ("kolx", 0),
        ):
            query = Match(word, fuzziness=fuzziness)
            near = {each for each in WORDS if _edits(word, each) <= fuzziness}
            for asked, either in ((query, near), (Boolean(should=(Match("parl"), query)), {*near, "parl"})):
                try:
                    found = sorted(texts.found(asked))
                except FeatureNotSupported:
                    continue
                expected = sorted(i for i in texts.ids if either.intersection(words_of(text_of(i))))
                told = f"the rows that {asked} finds, {'all' if covered else 'most'} of them in an index"
                expect(found, expected, told)


@WORDED
def test_a_score_is_made_of_those_of_its_parts(texts: Documents) -> None:
    """A factor multiplies it, a clause adds to it, what speaks against a row takes from it."""
    kolt, zarn, brim = (texts.scored(word) for word in ("kolt", "zarn", "brim"))
    twice = {row: 2.5 * score for row, score in kolt.items()}
    with_zarn = {row: score + zarn.get(row, 0.0) for row, score in kolt.items()}
    both = {row: score + zarn[row] for row, score in kolt.items() if row in zarn}
    either = {row: zarn.get(row, 0.0) + brim.get(row, 0.0) for row in {*zarn, *brim}}
    less = {row: score - 0.25 * zarn.get(row, 0.0) for row, score in kolt.items()}
    for query, expected in (
        (Match("kolt", boost=2.5), twice),
        (Match("kolt zarn", operator="and"), both),
        (Match("zarn brim"), either),
        (Boolean(must=(Match("kolt"),), should=(Match("zarn"),)), with_zarn),
        (Boolean(must=(Match("kolt"), Match("zarn"))), both),
        (Boolean(should=(Match("zarn"), Match("brim"))), either),
        (Boost(Match("kolt"), Match("zarn"), factor=0.25), less),
    ):
        expect(texts.scored(query), pytest.approx(expected, rel=1e-4), f"the scores of {query}")


@WORDED
def test_the_score_of_the_best_column(texts: Documents) -> None:
    """It counts, times the factor of its column."""
    texts.index(2, spec=replace(texts.spec, name="of_title", column="title"))
    doc, title = (texts.scored(Match("kolt zarn", column=column)) for column in ("doc", "title"))
    for boosts in (None, (1.0, 3.0), (3.0, 1.0)):
        query = MultiMatch("kolt zarn", ("doc", "title"), boosts=boosts)
        first, second = boosts or (1.0, 1.0)
        expected = {i: max(first * doc.get(i, 0.0), second * title.get(i, 0.0)) for i in {*doc, *title}}
        expect(texts.scored(query), pytest.approx(expected, rel=1e-4), f"the scores of {query}")


@WORDED
def test_words_in_between(texts: Documents, unproven: Unproven) -> None:
    """As many as a phrase allows may be between its words."""
    if not texts.options:
        unproven("phrases", "the format's harness has no text_options")
        return
    lines = ("kolt zarn", "kolt brim zarn", "kolt brim dusk zarn", "zarn kolt", "kolt", "kolt brim dusk fenk zarn")
    rows = [{"id": 1000 + at, "doc": f"quux {line}"} for at, line in enumerate(lines)]
    texts.table.publish_arrow([pa.RecordBatch.from_pylist(rows, TEXTS)], token(2))
    own = set(range(1000, 1000 + len(lines)))
    for slop, expected in ((0, {1000}), (1, {1000, 1001}), (2, {1000, 1001, 1002})):
        found = own.intersection(texts.found(Phrase("kolt zarn", slop=slop)))
        # In another order they are two words further apart, where a format counts such rows.
        expect(found - {1003}, expected, f"the rows with 'kolt zarn' and {slop} words in between")


@WORDED
def test_filters_of_each_type_choose_the_rows(lake: Lake, harness: Harness) -> None:
    """Or such a filter is refused: it is never passed over, and a row that it drops is none of the best. So it is with
    columns of any name."""
    lake.storage.searcher(lake.create(name="db.plain").info)  # a format without it refuses here
    odd = ("a b", "Größe", 'it\'s "odd"', "a.b", "`tick`")
    columns = {name: FLAT[name] for name in _FILTERED} | {name: (pa.int64(), [1, 2]) for name in odd}
    for number, (name, (kind, _)) in enumerate(list(columns.items())):
        try:
            lake.create(pa.schema([("id", pa.int64()), (name, kind)]), f"db.of_{number}")
        except (TableError, ConfigError, FeatureNotSupported):
            del columns[name]
    schema = pa.schema([*TEXTS, *((name, kind) for name, (kind, _) in columns.items())])
    texts = Documents(lake.create(schema), harness.text_options)
    more = [
        pa.array([(*values, None)[i % (len(values) + 1)] for i in range(40)], kind) for kind, values in columns.values()
    ]
    texts.table.publish_arrow([pa.record_batch([*documents(range(40)).columns, *more], schema=schema)], token(0))
    texts.index(1)
    whole = texts.table.read()
    matching = whole.filter(pa.array([matches("kolt", i) for i in whole["id"].to_pylist()]))
    for name, (_, values) in columns.items():
        for leaf in (Leaf(name, Op.EQ, values[0]), Leaf(name, Op.NOT_NULL), Leaf(name, Op.IN, tuple(values))):
            about = f"'kolt' is searched where {leaf}"
            expected = matching.filter(to_arrow(leaf, whole.schema))["id"].to_pylist()
            with goes_well(about):
                try:
                    found = texts.found("kolt", filters=[leaf])
                except FeatureNotSupported:
                    continue
            expect(sorted(found), sorted(expected), f"{about}: the rows that it finds")
        try:
            with goes_well(f"words are searched, and column {name!r} is asked for"):
                rows = texts.searcher.search("kolt", k=ALL, columns=["id", name]).rows
        except FeatureNotSupported:
            continue
        shown, wanted = (repr(each.sort_by("id")[name].to_pylist()) for each in (rows, matching))  # NaN is not itself
        expect(shown, wanted, f"column {name!r} of the rows with 'kolt'")


_FILTERED = ("bool", "int8", "uint64", "float64", "decimal-18-6", "string", "binary", "date32", "timestamp-us-utc")


# -- vectors --------------------------------------------------------------------------------------------------------


@VECTORED
def test_the_constant_and_the_depth_of_a_hybrid(lake: Lake, harness: Harness) -> None:
    """The constant is added to each rank, and no more of each list is fused than the depth, or ``k``."""
    texts = Pointed.of(lake, harness, rounds=2).texts
    texts.index(1)
    near = Nearest(ASKED[0], exact=True)
    for constant, depth, k in ((1.0, 10, 5), (200.0, 3, 8), (0.0, 1, 1)):
        ranks: dict[int, float] = {}
        for ranking in (texts.found("kolt zarn", max(depth, k)), texts.found(near, max(depth, k))):
            for rank, row_id in enumerate(ranking, start=1):
                ranks[row_id] = ranks.get(row_id, 0.0) + 1 / (constant + rank)
        query: SearchQuery = Hybrid(Match("kolt zarn"), near, depth=depth, constant=constant)
        rows = texts.searcher.search(query, k=k, columns=["id"]).rows
        found = dict(zip(rows["id"].to_pylist(), rows["_score"].to_pylist(), strict=True))
        about = f"a Hybrid of constant {constant} and depth {depth}, for {k} rows"
        expect(list(found.values()), pytest.approx(sorted(ranks.values(), reverse=True)[:k]), f"the scores of {about}")
        expect(found, pytest.approx({i: ranks.get(i) for i in found}), f"the score of each row of {about}")


@VECTORED
def test_the_metric_of_an_index(lake: Lake, harness: Harness) -> None:
    """A query without one is of the metric of the index; one of another metric does not use it, and is answered."""
    points = Pointed.of(lake, harness)
    kind = IndexKind.IVF_FLAT
    for metric in ("cosine", "l2", "dot"):
        options = {**harness.vector_options.get(kind.value, {}), "metric": metric}
        try:
            plan, built = points.texts.built(1, spec=IndexSpec(f"of_{metric}", "v", kind, options))
        except (ConfigError, FeatureNotSupported):
            return  # what it calls the metric is the format's own
        points.texts.indexer.publish(plan, built)
        for asked, used in ((None, True), (metric, True), ("l2", metric == "l2"), ("cosine", metric == "cosine")):
            query = Nearest(ASKED[0], metric=asked, nprobes=1000)
            wanted = points.ranked(replace(query, metric=asked or metric))
            answer = points.texts.searcher.search(query, k=10, columns=["id"])
            about = f"the 10 nearest by {asked or 'no metric'}, with an index of {metric}"
            same_places(answer.rows, wanted[:10], wanted, about)
            expect(bool(answer.explain.indexes), used, f"{about}: whether it is used")
        points.texts.indexer.drop(f"of_{metric}")


@VECTORED
def test_how_far_an_index_is_looked_into(lake: Lake, harness: Harness) -> None:
    """With fewer partitions or candidates fewer are found, and each of these has its true distance. A walk finds no
    more rows than the candidates that it keeps."""
    points = Pointed.of(lake, harness)
    for kind in (IndexKind.IVF_FLAT, IndexKind.IVF_HNSW_FLAT):
        spec = IndexSpec("of_v", "v", kind, harness.vector_options.get(kind.value, {}))
        try:
            points.texts.index(2, spec=spec)
        except FeatureNotSupported:
            continue
        whole = points.ranked(Nearest(ASKED[0]))
        far = {row_id: each for each, row_id in whole}
        plain = Nearest(ASKED[0])
        for query in (
            *(replace(plain, nprobes=1), replace(plain, nprobes=1, refine=3), replace(plain, refine=2)),
            *((replace(plain, ef=30), replace(plain, ef=5, nprobes=2)) if kind is IndexKind.IVF_HNSW_FLAT else ()),
        ):
            about = f"the 5 nearest by {kind.value}, with nprobes {query.nprobes}, refine {query.refine}, ef {query.ef}"
            with goes_well(about):
                rows = points.texts.searcher.search(query, k=5, columns=["id"]).rows
            distances = [far.get(i) for i in rows["id"].to_pylist()]
            expect(rows["_distance"].to_pylist(), pytest.approx(distances, abs=1e-4), f"{about}: their distances")
            expect(distances, sorted(distances), f"{about}: the nearest come first")
            assert 0 < rows.num_rows <= 5, f"{about} are {rows.num_rows}"
        if kind is IndexKind.IVF_HNSW_FLAT:
            with refused(ConfigError, "a walk that keeps 4 candidates is asked for 5 rows"):
                points.texts.searcher.search(Nearest(ASKED[0], ef=4), k=5)
        else:
            with refused(
                (ConfigError, FeatureNotSupported), "a walk's candidates are told to an index without a graph"
            ):
                points.texts.searcher.search(Nearest(ASKED[0], ef=30), k=5)
        points.texts.indexer.drop("of_v")


@VECTORED
@pytest.mark.parametrize("number", [pa.float64(), pa.float16()], ids=str)
def test_vectors_of_other_numbers(lake: Lake, harness: Harness, number: pa.DataType) -> None:
    """Of a table with two columns of vectors, each is searched by its name, and none without."""
    lake.storage.searcher(lake.create(name="db.plain").info)  # a format without it refuses here
    kind = pa.list_(number, DIMENSIONS)
    schema = pa.schema([*TEXTS, ("v", kind), ("w", kind)])
    made = Pointed(Documents(lake.create(schema), harness.text_options))
    for epoch in range(2):
        ids = range(epoch * 40, (epoch + 1) * 40)
        own = pa.array([vector_of(i) for i in ids], pa.list_(pa.float32(), DIMENSIONS)).cast(kind)
        other = pa.array([vector_of(i + 500) for i in ids], pa.list_(pa.float32(), DIMENSIONS)).cast(kind)
        made.texts.table.publish_arrow(
            [pa.record_batch([*documents(ids).columns, own, other], schema=schema)], token(epoch)
        )
        made.texts.ids.extend(ids)
    wanted = made.ranked(Nearest(ASKED[0]))
    searcher = made.texts.searcher
    rows = searcher.search(Nearest(ASKED[0], column="v"), k=10, columns=["id"]).rows
    same_places(rows, wanted[:10], wanted, f"the 10 nearest of vectors of {number}")
    other_rows = searcher.search(Nearest(ASKED[0], column="w"), k=ALL, columns=["id"]).rows
    expect(
        sorted(other_rows["id"].to_pylist()),
        sorted(i for i in made.texts.ids if vector_of(i + 500)),
        "the rows with a vector in the other column",
    )
    with refused(ConfigError, "a vector is asked of a table with two columns of vectors, and names none"):
        searcher.search(Nearest(ASKED[0]))
    index = IndexKind.IVF_FLAT
    try:
        made.texts.index(2, spec=IndexSpec("of_v", "v", index, harness.vector_options.get(index.value, {})))
    except FeatureNotSupported:
        return
    rows = searcher.search(Nearest(ASKED[0], column="v", nprobes=1000), k=10, columns=["id"]).rows
    same_places(rows, wanted[:10], wanted, f"the 10 nearest of vectors of {number}, through an index")


_LONG = (1e200, 0.0, -2e200, 1e190)
"""No column of floats has such a number, and another vector has its direction."""


@pytest.mark.needs(Feature.SEARCH, Feature.VECTORS)
def test_a_vector_that_has_no_distance(lake: Lake, harness: Harness) -> None:
    """One that is too large for the column, or has no direction: it is refused. Whoever asks by it would find nothing,
    and would not be told why; or rows in no order."""
    points = Pointed.of(lake, harness, rounds=1, rows=20)
    there = sorted(i for i in points.texts.ids if vector_of(i))
    for vector, metric in (
        *(((1e300, 0.0, 0.0, 0.0), "l2"), ((0.0, 1e30, 0.0, 0.0), "l2")),
        *(((0.0, 0.0, 0.0, -1e40), "dot"), ((0.0,) * 4, "cosine")),
    ):
        query = Nearest(vector, metric=metric, exact=True)
        try:
            found = points.texts.found(query)
        except ConfigError:
            continue
        expect(sorted(found), there, f"the rows that {query} finds, which is not refused")
    for vector, metric in (
        ((0.0,) * 4, "l2"),
        ((0.0,) * 4, "dot"),
        ((0.0, 0.0, 0.0, 1e-30), "cosine"),
        (_LONG, "cosine"),
    ):
        with goes_well(f"a vector of {vector} is asked by {metric}"):
            found = points.texts.found(Nearest(vector, metric=metric, exact=True))
        expect(sorted(found), there, f"the rows that {vector} finds by {metric}")
    long, short = (
        points.texts.found(Nearest(tuple(each * factor for each in _LONG), metric="cosine", exact=True))
        for factor in (1.0, 2.0**-660)
    )
    expect(short, long, "the order of the rows by cosine, for a vector of the same direction")
