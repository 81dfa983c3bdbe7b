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

import lance
import numpy as np
import pyarrow as pa
import pytest

from laketier.spi import ConfigError, FeatureNotSupported, IndexKind, IndexMode, IndexSpec, Refused
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


def exact(metric: str, vectors: np.ndarray, k: int = 10) -> list[list[int]]:
    """By looking at every row, in numbers of 64 bits."""
    rows, asked = vectors.astype(np.float64), questions().astype(np.float64)
    if metric == "l2":
        far = ((rows[None] - asked[:, None]) ** 2).sum(-1)
    else:
        far = 1 - asked @ rows.T
        if metric == "cosine":
            norms = np.linalg.norm(asked, axis=1)[:, None] * np.linalg.norm(rows, axis=1)[None]
            far = 1 - (1 - far) / norms
    return [list(each) for each in np.argsort(far, axis=1, kind="stable")[:, :k]]


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


def is_whole(kind: IndexKind, metric: str) -> bool:
    """Whether it is built in one part, whatever is asked for."""
    return "sq" in kind or ("pq" in kind and metric == "dot")


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", CODES)
def test_answers_are_those_of_a_single_build_with_the_same_model(vectors, kind: IndexKind, metric: str) -> None:
    model = planned(vectors, spec(kind, metric=metric)).builder.model
    vectors.open().create_index("v", LANCE_KINDS[kind], name="v_idx", **model.arguments())
    probes = (1, 4, model.num_partitions)
    expected = [ranked(vectors, metric, nprobes=nprobes) for nprobes in probes]
    assert sum(len(each) for each in expected[-1]) > 300
    vectors.open().drop_index("v_idx")
    for parts in (4,) if is_whole(kind, metric) else (1, 2, 4, 8):
        info = create(vectors, spec(kind, metric=metric), parts, IndexMode.REPLACE, model)
        assert len(info.segments) == (1 if is_whole(kind, metric) else parts)
        assert [ranked(vectors, metric, nprobes=nprobes) for nprobes in probes] == expected


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", GRAPHS)
def test_graphs_recall_as_much_as_those_of_a_single_build(vectors, kind: IndexKind, metric: str) -> None:
    asked = spec(kind, metric=metric, num_partitions=4)
    model = planned(vectors, asked).builder.model
    nearest = exact(metric, hashed())
    vectors.open().create_index("v", LANCE_KINDS[kind], name="v_idx", **model.arguments())
    expected = recall(answers(vectors, metric, nprobes=4, refine_factor=8), nearest)
    vectors.open().drop_index("v_idx")
    for parts in (4,) if is_whole(kind, metric) else (1, 2, 4, 8):
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
