"""Indexes of vectors answer: the nearest through one are those of a look at each row, with their true distances."""

from __future__ import annotations

from dataclasses import replace

import pytest

from laketier.spi import (
    BuiltIndexPart,
    ConfigError,
    Feature,
    FeatureNotSupported,
    IndexKind,
    IndexMode,
    IndexPlan,
    IndexSpec,
    Nearest,
    TableChanged,
)
from laketier_conformance import foreign
from laketier_conformance.expect import expect, goes_well, the_one
from laketier_conformance.harness import Harness
from laketier_conformance.lake import Lake
from laketier_conformance.points import ASKED, Pointed, same_places, vector_of

VECTORED = pytest.mark.needs(Feature.SEARCH, Feature.INDEXING, Feature.VECTORS)
EXACT = (IndexKind.IVF_FLAT, IndexKind.IVF_PQ, IndexKind.IVF_SQ)
"""Kinds that compare each vector where all partitions are looked into, and rank what they found by the vectors."""
GRAPHS = (IndexKind.IVF_HNSW_FLAT,)
"""Kinds that walk a graph, and may miss some."""
RECALL = 0.9
BEST, MOST = 20, 1000
NAME = "of_v"


@VECTORED
@pytest.mark.parametrize("kind", [*EXACT, *GRAPHS])
def test_the_nearest_through_an_index(lake: Lake, harness: Harness, kind: IndexKind) -> None:
    """Built in parts, with rows beside it, appended to, merged, with rows deleted, compacted, replaced. A format need
    not build each kind, nor add to each."""
    points = Pointed.of(lake, harness)
    spec = IndexSpec(NAME, "v", kind, harness.vector_options.get(kind.value, {}))
    try:
        points.texts.indexer.plan(spec, 1)
    except FeatureNotSupported:
        return
    points.texts.index(2, spec=spec)  # of three files
    _finds_the_nearest(points, kind, f"a {kind} index")
    _says_whether_it_walks(points, kind)
    points.append(3, range(1000, 1040))
    _finds_the_nearest(points, kind, f"a {kind} index, and 40 rows that it does not cover")
    same = IndexSpec(NAME, "v", kind)
    if _is_done(points, same, IndexMode.APPEND):
        _finds_the_nearest(points, kind, f"a {kind} index that was appended to")
        if _is_done(points, same, IndexMode.MERGE):
            _finds_the_nearest(points, kind, f"a {kind} index whose segments were merged")
    if harness.delete_rows is not None:
        points.texts.deleted(harness, [*range(0, 150, 4), 1001, 1002])
        _finds_the_nearest(points, kind, f"a {kind} index of rows of which others deleted some")
    if harness.compact is not None:
        foreign.compact(points.texts.table, harness)
        _finds_the_nearest(points, kind, f"a {kind} index of files that were compacted")
    points.texts.index(2, IndexMode.REPLACE, spec)
    info = the_one(points.texts.indexer.indexes(), "the indexes of the table")
    expect(info.rows_not_indexed, 0, f"the rows that a {kind} index lacks that was replaced")
    _finds_the_nearest(points, kind, f"a {kind} index that was replaced")


@VECTORED
def test_a_build_of_vectors_that_goes_on(lake: Lake, harness: Harness) -> None:
    """After one that died with a part built: what all parts share, as centres, is that part's, or the part is built
    again. Two that do not fit would rank by two measures."""
    points = Pointed.of(lake, harness)
    kind = IndexKind.IVF_FLAT
    spec = IndexSpec(NAME, "v", kind, harness.vector_options.get(kind.value, {}))
    indexer = points.texts.indexer
    try:
        plan = indexer.plan(spec, 2)
    except FeatureNotSupported:
        return
    plan.builder.train().build(plan.parts[0])
    found = indexer.resume(indexer.plan(spec, 2), 2)
    told = f"a {kind} index whose build went on from a part of one that died"
    builder = found.builder.train() if found.builder.needs_training else found.builder
    with goes_well(f"{told} is published"):
        indexer.publish(found, [builder.build(part) for part in found.parts])
    info = the_one(points.texts.indexer.indexes(), "the indexes of the table")
    expect((info.rows_indexed, info.rows_not_indexed), (len(points.texts.ids), 0), f"the rows in and not in {told}")
    _finds_the_nearest(points, kind, told)
    _is_planned_again(points, spec, harness)


def _is_planned_again(points: Pointed, spec: IndexSpec, harness: Harness) -> None:
    """An append whose index was replaced meanwhile, and a build of files of which one went with its rows: what was
    built is refused, or fits. Whoever plans again publishes, and the index can be added to and merged."""
    texts, told = points.texts, f"an append to a {spec.kind} index that was replaced meanwhile"
    late, replaced = _built(points, spec, 2, IndexMode.REPLACE)
    points.append(3, range(1000, 1040))
    plan, built = _built(points, replace(spec, options={}), 1, IndexMode.APPEND)
    texts.indexer.publish(late, replaced)
    _is_published(points, plan, built, told)
    points.append(4, range(1040, 1060))
    with goes_well(f"{told}: rows are added to it, and its segments are merged"):
        _is_done(points, IndexSpec(NAME, "v", spec.kind), IndexMode.APPEND)
        _is_done(points, IndexSpec(NAME, "v", spec.kind), IndexMode.MERGE)
    _finds_the_nearest(points, spec.kind, told)
    if harness.delete_rows is None:
        return
    plan, built = _built(points, spec, 3, IndexMode.REPLACE)
    texts.deleted(harness, range(1000, 1040))
    told = f"a {spec.kind} index of files of which one went with its rows meanwhile"
    _is_published(points, plan, built, told)
    _finds_the_nearest(points, spec.kind, told)


def _built(points: Pointed, spec: IndexSpec, parts: int, mode: IndexMode) -> tuple[IndexPlan, list[BuiltIndexPart]]:
    """A plan, with what its parts share, and what tasks built."""
    plan = points.texts.indexer.plan(spec, parts, mode)
    if plan.builder.needs_training:
        plan = replace(plan, builder=plan.builder.train())
    return plan, [plan.builder.build(part) for part in plan.parts]


def _is_published(points: Pointed, plan: IndexPlan, built: list[BuiltIndexPart], told: str) -> None:
    """As it is, or as it is planned again where it is refused."""
    indexer = points.texts.indexer
    try:
        indexer.publish(plan, built)
    except TableChanged:
        with goes_well(f"{told}, and is planned again"):
            again = indexer.replan(plan, built, 2)
            builder = again.builder.train() if again.builder.needs_training else again.builder
            indexer.publish(again, [builder.build(part) for part in again.parts])
    info = the_one(points.texts.indexer.indexes(), "the indexes of the table")
    known = info.rows_indexed - info.rows_deleted + info.rows_not_indexed
    expect(known, len(points.texts.ids), f"{told}: the rows that the index has, and has not")


def _is_done(points: Pointed, spec: IndexSpec, mode: IndexMode) -> bool:
    try:
        points.texts.index(1, mode, spec)
    except FeatureNotSupported:
        return False
    info = the_one(points.texts.indexer.indexes(), "the indexes of the table")
    expect(info.rows_not_indexed, 0, f"the rows that an index lacks after mode {mode}")
    return True


def _says_whether_it_walks(points: Pointed, kind: IndexKind) -> None:
    """A setting of graphs is for graphs: anywhere else it has no effect, and whoever gives it has to be told."""
    query = Nearest(ASKED[0], nprobes=MOST, ef=MOST)
    if kind in GRAPHS:
        expect(points.texts.searcher.search(query, k=BEST).rows.num_rows, BEST, f"the rows of a {kind} index with ef")
        return
    try:
        points.texts.searcher.search(query, k=BEST)
    except (ConfigError, FeatureNotSupported):
        return
    raise AssertionError(f"a query with ef is answered by a {kind} index, which has no graph; nobody is told")


def _finds_the_nearest(points: Pointed, kind: IndexKind, told: str) -> None:
    for vector in ASKED:
        query = Nearest(vector, nprobes=MOST, refine=MOST)
        whole = points.ranked(query)
        answer = points.texts.searcher.search(query, k=BEST, columns=["id"])
        assert answer.explain.indexes, f"{told} is not used"
        about = f"{told}: the {BEST} nearest to {vector}"
        if kind in EXACT:
            same_places(answer.rows, whole[:BEST], whole, about)
            continue
        ids = answer.rows["id"].to_pylist()
        far = {row_id: each for each, row_id in whole}
        assert set(ids) <= set(far), f"{about}: {sorted(set(ids) - set(far))} have no vector, or are none of the table"
        expect(answer.rows["_distance"].to_pylist(), pytest.approx([far[each] for each in ids], abs=1e-4), about)
        nearest = {tuple(vector_of(each) or ()) for _, each in whole[:BEST]}
        found = sum(tuple(vector_of(each) or ()) in nearest for each in ids)
        assert found >= RECALL * BEST, f"{about}: {found} of them were found"
