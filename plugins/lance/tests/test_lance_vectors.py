"""Indexes of vectors that were built in parts with one model answer as one that was built in one piece with it.

The vectors are hashed trigrams of the docstrings of the standard library: real text, and no trained embedding.
"""

from __future__ import annotations

import ast
import pickle
import sysconfig
import zlib
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from depth import deep_where, sizes
from laketier.maintenance.index_builds import build_in_processes, build_index
from laketier.spi import (
    ConfigError,
    CorruptTable,
    FeatureNotSupported,
    IndexKind,
    IndexMode,
    IndexSpec,
    Leaf,
    Nearest,
    Op,
    Refused,
    TableError,
)
from laketier_lance.graph_walk import as_lance_takes_it, kept_candidates
from laketier_lance.index_settings import LANCE_KINDS
from laketier_lance.vector_model import model_of

DIMENSION = 32
ROWS = 2000
VECTORS = pa.schema([("id", pa.int64()), ("v", pa.list_(pa.float32(), DIMENSION))])
METRICS = ("l2", "cosine", "dot")


@cache
def hashed(count: int = ROWS) -> np.ndarray:
    """The vectors of so many paragraphs of docstrings: each trigram adds or takes one at the place that its checksum
    names. Neither of length one nor around zero."""
    found: dict[str, None] = {}
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("**/*.py")):
        if "site-packages" in path.parts or len(found) >= count:
            continue
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                for text in (ast.get_docstring(node) or "").split("\n\n"):
                    if len(text) > 40:
                        found[text] = None
    vectors = np.zeros((count, DIMENSION), np.float32)
    for row, text in enumerate(list(found)[:count]):
        for at in range(min(len(text), 400) - 2):
            sum_ = zlib.crc32(text[at : at + 3].encode())
            vectors[row, sum_ % DIMENSION] += 1 if sum_ & DIMENSION else -1
    assert len(np.unique(vectors, axis=0)) > 0.99 * count
    return vectors


def column(vectors: np.ndarray, kind: pa.FixedSizeListType, nulls=()) -> pa.Array:
    none = np.zeros(len(vectors), bool)
    none[list(nulls)] = True
    flat = pa.array(vectors.astype(kind.value_type.to_pandas_dtype()).reshape(-1), kind.value_type)
    return pa.FixedSizeListArray.from_arrays(flat, kind.list_size, mask=pa.array(none))


def fill(table, vectors: np.ndarray, fragments: int = 8, nulls=(), first: int = 0) -> None:
    kind = table.schema.field("v").type
    rows = pa.table([range(first, first + len(vectors)), column(vectors, kind, nulls)], schema=table.schema)
    for part in range(fragments):
        begin, end = (len(vectors) * each // fragments for each in (part, part + 1))
        lance.write_dataset(rows.slice(begin, end - begin), table.location, mode="append")


@pytest.fixture
def vectors(make_table):
    table = make_table(VECTORS)
    fill(table, hashed())
    return table


def indexer(table):
    return table.storage.indexer(table.info)


def spec(kind: IndexKind, **options) -> IndexSpec:
    return IndexSpec("v_idx", "v", kind, options)


def planned(table, asked: IndexSpec, parts: int = 4, mode=IndexMode.CREATE, model=None):
    plan = indexer(table).plan(asked, parts, mode)
    builder = replace(plan.builder, model=model) if model is not None else plan.builder
    trained = pickle.loads(pickle.dumps(builder)).train()  # noqa: S301 - as Spark does
    return replace(plan, builder=trained)


def create(table, asked: IndexSpec, parts: int = 4, mode=IndexMode.CREATE, model=None):
    plan = planned(table, asked, parts, mode, model)
    return indexer(table).publish(plan, [plan.builder.build(part) for part in plan.parts])


def questions(count: int = 40) -> np.ndarray:
    """Vectors between two rows, so that none is at distance zero."""
    rows = hashed()
    chosen = np.random.default_rng(7).integers(0, len(rows), (count, 2))
    return (rows[chosen[:, 0]] * np.float32(0.7) + rows[chosen[:, 1]] * np.float32(0.3)).astype(np.float32)


def answers(table, metric: str, k: int = 10, **more) -> list[dict[int, float]]:
    dataset = table.open()
    found = []
    for query in questions():
        nearest = {"column": "v", "q": query, "k": k, "metric": metric, **more}
        rows = dataset.to_table(["id", "_distance"], nearest=nearest)
        found.append(dict(zip(rows["id"].to_pylist(), rows["_distance"].to_pylist(), strict=True)))
    return found


def distances(metric: str, rows: np.ndarray, query: np.ndarray) -> np.ndarray:
    """By looking at every row, in numbers of 64 bits."""
    rows, query = rows.astype(np.float64), query.astype(np.float64)
    if metric == "l2":
        return ((rows - query) ** 2).sum(-1)
    dot = rows @ query
    return 1 - (dot if metric == "dot" else dot / np.linalg.norm(rows, axis=1) / np.linalg.norm(query))


def exact(metric: str, rows: np.ndarray, k: int = 10) -> list[list[int]]:
    """The nearest rows of each question."""
    return [list(np.argsort(distances(metric, rows, each), kind="stable")[:k]) for each in questions()]


def recall(found, expected) -> float:
    return float(np.mean([len(set(a) & set(b)) / len(b) for a, b in zip(found, expected, strict=True)]))


def ranked(table, metric: str, k: int = 10, **more) -> list[list[tuple[float, int]]]:
    """The best rows of each question. Those that are as far away as the last one are left out, unless all of them are
    asked for: Lance returns any of them."""
    return [
        sorted((far, row) for row, far in found.items() if far < max(found.values()))
        for found in answers(table, metric, k, **more)
    ]


CODES = [IndexKind.IVF_FLAT, IndexKind.IVF_PQ, IndexKind.IVF_SQ]
GRAPHS = [IndexKind.IVF_HNSW_FLAT, IndexKind.IVF_HNSW_PQ, IndexKind.IVF_HNSW_SQ]


def crossed(kinds: list[IndexKind]) -> list[Any]:
    """Each kind with each metric. `make test` takes each kind once, and each metric as often as another."""
    return deep_where(
        [(kind, metric) for kind in kinds for metric in METRICS],
        lambda kind, metric: METRICS[kinds.index(kind) % len(METRICS)] != metric,
    )


def is_whole(kind: IndexKind, metric: str) -> bool:
    """Whether it is built in one part, whatever is asked for."""
    return "sq" in kind or ("pq" in kind and metric == "dot")


def in_parts(kinds: list[IndexKind], small: tuple[int, ...], more: tuple[int, ...]) -> list[Any]:
    """`crossed` in these numbers of parts, and beside a release in ``more``. What is built whole is built once."""
    rows = []
    for row in crossed(kinds):
        kind, metric = row.values
        once = is_whole(kind, metric)
        rows.append(pytest.param(*row.values, (4,) if once else small, marks=row.marks, id=f"{kind}-{metric}-small"))
        if not once:
            rows.append(pytest.param(*row.values, more, marks=pytest.mark.deep, id=f"{kind}-{metric}-deep"))
    return rows


@pytest.mark.parametrize(("kind", "metric", "counts"), in_parts(CODES, (1, 4), (2, 8)))
def test_answers_are_those_of_a_single_build_with_the_same_model(
    vectors, kind: IndexKind, metric: str, counts: tuple[int, ...]
) -> None:
    model = planned(vectors, spec(kind, metric=metric)).builder.model
    vectors.open().create_index("v", LANCE_KINDS[kind], name="v_idx", **model.arguments())
    probes = (1, 4, model.num_partitions)
    expected = [ranked(vectors, metric, nprobes=nprobes) for nprobes in probes]
    assert sum(len(each) for each in expected[-1]) > 300
    vectors.open().drop_index("v_idx")
    for parts in counts:
        info = create(vectors, spec(kind, metric=metric), parts, IndexMode.REPLACE, model)
        assert len(info.segments) == (1 if is_whole(kind, metric) else parts)
        assert [ranked(vectors, metric, nprobes=nprobes) for nprobes in probes] == expected


@pytest.mark.parametrize(("kind", "metric", "counts"), in_parts(GRAPHS, (4,), (1, 2, 8)))
def test_graphs_recall_as_much_as_those_of_a_single_build(
    vectors, kind: IndexKind, metric: str, counts: tuple[int, ...]
) -> None:
    asked = spec(kind, metric=metric, num_partitions=4)
    model = planned(vectors, asked).builder.model
    nearest = exact(metric, hashed())
    vectors.open().create_index("v", LANCE_KINDS[kind], name="v_idx", **model.arguments())
    expected = recall(answers(vectors, metric, nprobes=4, refine_factor=8), nearest)
    vectors.open().drop_index("v_idx")
    for parts in counts:
        create(vectors, asked, parts, IndexMode.REPLACE, model)
        found = recall(answers(vectors, metric, nprobes=4, refine_factor=8), nearest)
        assert found >= expected - 0.01


def test_the_model_is_read_from_what_was_built(vectors) -> None:
    for kind, metric in [(IndexKind.IVF_FLAT, "l2"), (IndexKind.IVF_PQ, "cosine"), (IndexKind.IVF_HNSW_PQ, "l2")]:
        plan = planned(vectors, spec(kind, metric=metric), 2, IndexMode.REPLACE)
        model = plan.builder.model
        built = [plan.builder.build(part) for part in plan.parts]
        assert {model_of(vectors.location, {}, each.segment) for each in built} == {model}
        indexer(vectors).publish(plan, built)
        (found,) = indexer(vectors).indexes()
        assert (found.kind, found.options["metric"]) == (kind, metric)
        assert found.options["num_partitions"] == model.num_partitions == (1 if "hnsw" in kind else ROWS // 256)
        assert (
            bytes(model.centroids)
            == np.stack(vectors.open().get_ivf_model("v_idx").centroids.to_pylist()).astype(np.float32).tobytes()
        )


def test_more_rows_are_added_with_the_model_that_is_there(vectors) -> None:
    asked = spec(IndexKind.IVF_PQ, num_sub_vectors=4)
    plan = planned(vectors, asked)
    indexer(vectors).publish(plan, [plan.builder.build(part) for part in plan.parts])
    fill(vectors, hashed()[:100] * np.float32(3), 1, first=ROWS)
    with pytest.raises(ConfigError, match="other settings"):
        planned(vectors, spec(IndexKind.IVF_PQ, num_sub_vectors=8), mode=IndexMode.APPEND)
    more = indexer(vectors).plan(spec(IndexKind.IVF_PQ, num_sub_vectors=4, sample_rate=16), 4, IndexMode.APPEND)
    assert not more.builder.needs_training
    assert more.builder.model == plan.builder.model
    info = indexer(vectors).publish(more, [more.builder.build(part) for part in more.parts])
    assert (info.rows_not_indexed, len(info.segments)) == (0, 5)
    expected = ranked(vectors, "l2", nprobes=7)
    vectors.open().drop_index("v_idx")
    vectors.open().create_index("v", "IVF_PQ", name="v_idx", **plan.builder.model.arguments())
    assert ranked(vectors, "l2", nprobes=7) == expected


@pytest.mark.parametrize(
    ("kind", "metric"), [(IndexKind.IVF_SQ, "l2"), (IndexKind.IVF_HNSW_SQ, "cosine"), (IndexKind.IVF_PQ, "dot")]
)
def test_what_can_not_be_added_to_is_refused(vectors, kind: IndexKind, metric: str) -> None:
    create(vectors, spec(kind, metric=metric), 4)
    assert indexer(vectors).plan(spec(kind), 4, IndexMode.APPEND).parts == ()
    fill(vectors, hashed()[:100], 1, first=ROWS)
    with pytest.raises(FeatureNotSupported, match="mode `replace`"):
        indexer(vectors).plan(spec(kind), 4, IndexMode.APPEND)
    assert create(vectors, spec(kind, metric=metric), 4, IndexMode.REPLACE).rows_not_indexed == 0


def test_parts_of_different_models_are_refused(vectors) -> None:
    plan, other = (planned(vectors, spec(IndexKind.IVF_FLAT), 2) for _ in range(2))
    assert plan.builder.model.digest != other.builder.model.digest, "each training takes a sample of its own"
    built = [plan.builder.build(plan.parts[0]), replace(plan.builder, model=other.builder.model).build(plan.parts[1])]
    with pytest.raises(Refused, match="different settings"):
        indexer(vectors).publish(plan, built)
    cosine = planned(vectors, spec(IndexKind.IVF_FLAT, metric="cosine"), 2)
    built[1] = replace(plan.builder, spec=cosine.spec, model=cosine.builder.model).build(plan.parts[1])
    with pytest.raises(Refused, match="different settings"):
        indexer(vectors).publish(plan, built)
    assert indexer(vectors).indexes() == []
    with pytest.raises(Refused, match="no model yet"):
        replace(plan.builder, model=None).build(plan.parts[0])


def search(table, query, k: int = 10, filters=(), **more):
    searcher = table.storage.searcher(table.info)
    found = searcher.search(Nearest(tuple(map(float, query)), **more), k=k, columns=["id"], filters=filters)
    return found.rows["id"].to_pylist(), found.rows["_distance"].to_pylist(), found.explain


@sizes("count", 12, 40)
@pytest.mark.parametrize(("kind", "metric"), crossed(CODES + GRAPHS))
def test_a_search_finds_what_a_look_at_each_row_finds(vectors, kind: IndexKind, metric: str, count: int) -> None:
    """All partitions, many candidates: segments, rows without an index, and filters, beside numpy."""
    for tail in (0, 200):
        if tail:
            fill(vectors, hashed()[:tail] * np.float32(1.1), 1, first=ROWS)
        else:
            create(
                vectors,
                spec(kind, metric=metric, num_partitions=4, **({"num_sub_vectors": 16} if "pq" in kind else {})),
            )
        rows = np.concatenate([hashed(), hashed()[:tail] * np.float32(1.1)])
        for even in (False, True):
            among = np.arange(len(rows))[:: 2 if even else 1]
            filters = [Leaf("id", Op.IN, [int(each) for each in among])] if even else []
            hits = 0
            for query, true in zip(questions()[:count], exact(metric, rows[among])[:count], strict=True):
                ids, far, explain = search(vectors, query, filters=filters, nprobes=4, refine=20)
                assert (explain.rows_flat, [each.name for each in explain.indexes]) == (tail, ["v_idx"])
                assert far == sorted(far)
                np.testing.assert_allclose(far, distances(metric, rows[ids], query), rtol=2e-3, atol=2e-3)
                hits += len(set(ids) & {int(among[each]) for each in true})
            assert hits >= 0.98 * 10 * count, (kind, metric, tail, even, hits)


def test_ef_reaches_the_library(vectors) -> None:
    """In a graph with few edges, a walk that keeps few candidates misses many of the nearest."""

    def found(**more) -> float:
        near = [search(vectors, each, refine=1, **more)[1] for each in questions()]
        return float(np.mean([np.isclose(far, each, rtol=1e-3).mean() for far, each in zip(near, true, strict=True)]))

    rows = hashed()
    true = [np.sort(distances("l2", rows, each))[:10] for each in questions()]
    create(vectors, spec(IndexKind.IVF_HNSW_FLAT, m=4, ef_construction=8), 1)
    narrow, chosen, wide = found(ef=10), found(), found(ef=2000)
    assert narrow + 0.2 < chosen < wide
    assert search(vectors, questions()[0], ef=10, refine=20)[0], "Lance refuses an ef below what it fetches"
    assert len(search(vectors, questions()[0], k=1000, refine=1)[0]) > 900


def test_the_largest_segment_says_how_many_candidates_a_walk_keeps(vectors) -> None:
    rows = dict.fromkeys(range(8), 5_000) | {0: 15_000}
    for parts, kept in ((4, 452), (1, 320 * 5**0.5)):
        create(vectors, spec(IndexKind.IVF_HNSW_FLAT), parts, IndexMode.REPLACE)
        (index,) = vectors.open().describe_indices()
        assert len(index.segments) == parts
        walk = kept_candidates(Nearest((0.0,)), 10, index, rows, "", "t")
        assert as_lance_takes_it(walk, 10)["ef"] == int(kept)


def test_ef_is_for_graphs(vectors) -> None:
    with pytest.raises(ConfigError, match=r"ef = 50 has no effect.*column 'v' has no index.*ivf-hnsw-flat"):
        search(vectors, questions()[0], ef=50)
    create(vectors, spec(IndexKind.IVF_FLAT))
    with pytest.raises(ConfigError, match=r"ef = 50 has no effect.*'v_idx' is of kind ivf-flat, which has no graph"):
        search(vectors, questions()[0], ef=50)
    create(vectors, spec(IndexKind.IVF_HNSW_FLAT), mode=IndexMode.REPLACE)
    with pytest.raises(ConfigError, match="ef is 9, and 10 rows are wanted"):
        search(vectors, questions()[0], ef=9)
    with pytest.raises(ConfigError, match="'v_idx' is of metric l2, and the query of cosine"):
        search(vectors, questions()[0], ef=50, metric="cosine")
    assert len(search(vectors, questions()[0], ef=50)[0]) == 10


def test_the_metric_is_that_of_the_index(vectors) -> None:
    create(vectors, spec(IndexKind.IVF_FLAT, metric="cosine"))
    query = questions()[0]
    for metric, uses in ((None, ["v_idx"]), ("cosine", ["v_idx"]), ("l2", []), ("dot", [])):
        ids, _, explain = search(vectors, query, metric=metric, nprobes=7)
        assert [each.name for each in explain.indexes] == uses
        assert ids == exact(metric or "cosine", hashed())[0]


@pytest.mark.parametrize("kind", CODES + GRAPHS)
def test_what_is_no_vector_is_found_by_no_search(make_table, kind: IndexKind) -> None:
    rows = hashed().copy()
    rows[::3, 4] = np.nan
    rows[1, 5] = np.inf
    table = make_table(VECTORS)
    fill(table, rows, 4, nulls=[*range(500), 700])  # the first fragment has none at all
    there = sorted({each for each in range(500, ROWS) if each % 3} - {700})
    for metric in ("l2", "cosine"):
        create(table, spec(kind, metric=metric), mode=IndexMode.REPLACE)
        for more in ({"nprobes": 7}, {"exact": True, "metric": metric}):
            ids, far, _ = search(table, hashed()[0], k=ROWS, **more)
            assert np.isfinite(far).all()
            if "hnsw" not in kind or "exact" in more:
                assert sorted(ids) == there


def test_what_no_model_can_be_trained_on_is_refused(make_table) -> None:
    def refused(error, says: str, asked: IndexSpec, rows=hashed(), nulls=(), schema=VECTORS) -> None:  # noqa: B008
        table = make_table(schema)
        fill(table, rows, 2, nulls=nulls)
        with pytest.raises(error, match=says):
            create(table, asked)
        assert indexer(table).indexes() == []

    flat, codes = IndexKind.IVF_FLAT, IndexKind.IVF_PQ
    refused(TableError, "0 vectors", spec(flat), nulls=range(ROWS))
    refused(TableError, "0 vectors", spec(flat, metric="cosine"), rows=np.zeros((ROWS, DIMENSION), np.float32))
    refused(ConfigError, "5 rows are too few for 8 partitions", spec(flat, num_partitions=8), rows=hashed()[:5])
    refused(ConfigError, "too few for a codebook", spec(codes), rows=hashed()[:300])
    refused(TableError, "256 rows but only 10", spec(codes), nulls=range(10, ROWS))
    refused(ConfigError, "no divisor", spec(codes, num_sub_vectors=5))
    refused(ConfigError, "num_bits = 7", spec(codes, num_bits=7))
    refused(ConfigError, "num_bits = 4 with num_sub_vectors = 1", spec(codes, num_bits=4, num_sub_vectors=1))
    refused(ConfigError, "no metric 'hamming'", spec(flat, metric="hamming"))
    refused(ConfigError, "Did you mean 'num_partitions'", spec(flat, num_partition=4))
    refused(ConfigError, "has no option 'm'", spec(flat, m=4))
    refused(ConfigError, "m = 1 is not within", spec(IndexKind.IVF_HNSW_FLAT, m=1))
    refused(ConfigError, "larger than 512 MiB", spec(flat, num_partitions=2**23), rows=np.zeros((2, DIMENSION)))
    refused(ConfigError, "not vectors of a fixed size", IndexSpec("x", "id", flat))
    bytes_ = pa.schema([("id", pa.int64()), ("v", pa.list_(pa.uint8(), DIMENSION))])
    refused(FeatureNotSupported, "whose vectors are of bytes", spec(flat), rows=np.ones((10, DIMENSION)), schema=bytes_)
    refused(FeatureNotSupported, "an index of kind ivf-rq, because .*one rotation", spec(IndexKind.IVF_RQ))


def test_several_vectors_in_a_row_are_refused(make_table) -> None:
    table = make_table(pa.schema([("id", pa.int64()), ("v", pa.list_(pa.list_(pa.float32(), 2)))]))
    lance.write_dataset(pa.table([[1], [[[1.0, 2.0], [3.0, 4.0]]]], schema=table.schema), table.location, mode="append")
    with pytest.raises(FeatureNotSupported, match="has several vectors in a row"):
        indexer(table).plan(spec(IndexKind.IVF_FLAT), 1)


@pytest.mark.parametrize("width", [pa.float16(), pa.float64()])
def test_numbers_of_other_widths(make_table, width: pa.DataType) -> None:
    table = make_table(pa.schema([("id", pa.int64()), ("v", pa.list_(width, DIMENSION))]))
    fill(table, np.clip(hashed(), -1000, 1000), 4)
    expected = search(table, questions()[1], metric="cosine", exact=True)[0]
    for kind in CODES + GRAPHS:
        info = create(table, spec(kind, metric="cosine"), mode=IndexMode.REPLACE)
        assert len(info.segments) == (1 if is_whole(kind, "cosine") else 4)
        assert set(search(table, questions()[1], nprobes=7, refine=50)[0]) == set(expected), kind


def test_a_compaction_beside_a_build_keeps_the_model(vectors) -> None:
    models = []

    def build(plan):
        models.append(plan.builder.model)
        for part in plan.parts:
            yield plan.builder.build(part)
        if len(models) == 1:
            rows = vectors.open().get_fragments()
            vectors.open().delete("id < 100")
            vectors.open().optimize.compact_files(target_rows_per_fragment=ROWS // 4)
            assert len(vectors.open().get_fragments()) < len(rows)

    info = build_index(indexer(vectors), spec(IndexKind.IVF_PQ), IndexMode.CREATE, max_parts=8, build=build)
    assert len(models) > 1
    assert models[0] == models[-1] is not None
    assert info.rows_not_indexed == 0
    assert {model_of(vectors.location, {}, each) for each in info.segments} == {models[0]}


def test_training_writes_nothing(vectors) -> None:
    before = sorted(path for path in Path(vectors.location).rglob("*"))
    planned(vectors, spec(IndexKind.IVF_PQ))
    assert sorted(path for path in Path(vectors.location).rglob("*")) == before


def test_segments_of_several_models_are_not_added_to(vectors) -> None:
    from lance.indices import IndicesBuilder

    dataset = vectors.open()
    fragments = [each.fragment_id for each in dataset.get_fragments()]
    segments = []
    for half in (fragments[:4], fragments[4:]):
        centroids = IndicesBuilder(dataset, "v").train_ivf(3, sample_rate=64, fragment_ids=half).centroids
        segments.append(
            dataset.create_index_uncommitted("v", "IVF_FLAT", name="v_idx", fragment_ids=half, ivf_centroids=centroids)
        )
    dataset.commit_existing_index_segments("v_idx", "v", segments)
    fill(vectors, hashed()[:50], 1, first=ROWS)
    with pytest.raises(ConfigError, match="have 2 models"):
        planned(vectors, spec(IndexKind.IVF_FLAT), mode=IndexMode.APPEND)
    Path(vectors.location, "_indices", segments[0].uuid, "auxiliary.idx").unlink()
    with pytest.raises(CorruptTable, match="'v_idx' can't be read"):
        planned(vectors, spec(IndexKind.IVF_FLAT), mode=IndexMode.APPEND)
    assert create(vectors, spec(IndexKind.IVF_FLAT), mode=IndexMode.REPLACE).rows_not_indexed == 0


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", [IndexKind.IVF_PQ, IndexKind.IVF_SQ])
def test_distances_are_those_of_the_vectors_whatever_the_codes_tell(vectors, kind: IndexKind, metric: str) -> None:
    create(vectors, spec(kind, metric=metric))
    for query in questions()[:5]:
        ids, far, _ = search(vectors, query)
        np.testing.assert_allclose(far, distances(metric, hashed()[ids], query), rtol=2e-3, atol=2e-3)


def test_processes_build_with_the_model_that_was_trained(vectors) -> None:
    asked = spec(IndexKind.IVF_PQ, num_sub_vectors=4)
    info = build_index(indexer(vectors), asked, IndexMode.CREATE, max_parts=4, build=build_in_processes(2))
    assert (len(info.segments), info.rows_not_indexed) == (4, 0)
    assert len({model_of(vectors.location, {}, each).digest for each in info.segments}) == 1
