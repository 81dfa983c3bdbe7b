"""A build of vectors that is killed, in its driver or in a process of its own, leaves the old index or the new one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

from laketier.kit import failpoints
from laketier.maintenance.index_builds import PART_BUILT, TRAINED, TRAINING, build_here, build_index
from laketier.maintenance.index_tasks import PART_BEGUN, PART_DONE
from laketier.spi import IndexInfo, IndexKind, IndexMode, IndexSpec, Nearest
from laketier_lance.index_record import RECORD

DIMENSION, ROWS, FRAGMENTS = 16, 4000, 4
VECTORS = pa.schema([("id", pa.int64()), ("v", pa.list_(pa.float32(), DIMENSION))])
OLD, NEW = 4, 6
"""Partitions of the index that is there, and of the one that takes its place."""

DRIVER = """
import sys
from laketier.maintenance.index_builds import build_here, build_in_processes, build_index
from laketier.spi import IndexKind, IndexMode, IndexSpec, LakeStorageConfig, TablePath
from laketier_lance.plugin import LancePlugin

storage = LancePlugin().create_storage(LakeStorageConfig(sys.argv[1], None))
indexer = storage.indexer(storage.catalog().load_table(TablePath("db", "t")))
spec = IndexSpec("near", "v", IndexKind(sys.argv[2]), {"num_partitions": 6})
build = build_in_processes(1) if sys.argv[3] == "process" else build_here
build_index(indexer, spec, IndexMode(sys.argv[4]), max_parts=2, build=build)
"""


@pytest.fixture
def points(make_table):
    table = make_table(VECTORS)
    made = np.random.default_rng(3).random((ROWS, DIMENSION), dtype=np.float32)
    for part in range(FRAGMENTS):
        ids = range(part * ROWS // FRAGMENTS, (part + 1) * ROWS // FRAGMENTS)
        column = pa.FixedSizeListArray.from_arrays(pa.array(made[ids.start : ids.stop].ravel()), DIMENSION)
        lance.write_dataset(pa.table([list(ids), column], schema=VECTORS), table.location, mode="append")
    table.vectors = made
    return table


def driver(table, kind: IndexKind, where: str, point: str = "", mode: str = "replace") -> subprocess.Popen[bytes]:
    words = [sys.executable, "-c", DRIVER, str(table.warehouse), kind.value, where, mode]
    return subprocess.Popen(words, env={**os.environ, failpoints.VARIABLE: point}, stderr=subprocess.PIPE)


def build(table, kind: IndexKind, partitions: int, mode: IndexMode = IndexMode.REPLACE) -> IndexInfo:
    spec = IndexSpec("near", "v", kind, {"num_partitions": partitions})
    return build_index(table.storage.indexer(table.info), spec, mode, max_parts=2, build=build_here)


def index(table) -> IndexInfo:
    (found,) = table.storage.indexer(table.info).indexes()
    return found


def answers_right(table) -> None:
    """Each question's nearest are those of a look at every row, through the index that is there."""
    searcher = table.storage.searcher(table.info)
    for row in range(0, ROWS, ROWS // 20):
        asked = table.vectors[row] + np.float32(0.01)
        far = ((table.vectors - asked) ** 2).sum(axis=1)
        found = searcher.search(Nearest(tuple(map(float, asked)), nprobes=100, refine=100), k=10, columns=["id"])
        assert [use.name for use in found.explain.indexes] == ["near"]
        assert found.explain.rows_flat == 0
        assert sorted(found.rows["id"].to_pylist()) == sorted(np.argsort(far, kind="stable")[:10].tolist())


DEEP = pytest.mark.deep
KINDS = (IndexKind.IVF_FLAT, pytest.param(IndexKind.IVF_PQ, marks=DEEP))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("point", "partitions"),
    [
        pytest.param(TRAINING, OLD, marks=DEEP),
        (TRAINED, OLD),
        pytest.param(PART_BUILT, OLD, marks=DEEP),
        (f"{PART_BUILT}=kill@2", OLD),
        pytest.param("index.before_commit", OLD, marks=DEEP),
        ("index.between_commit_and_fsync", NEW),
    ],
)
def test_a_driver_that_is_killed(points, kind: IndexKind, point: str, partitions: int) -> None:
    build(points, kind, OLD)
    with driver(points, kind, "here", point if "=" in point else f"{point}=kill") as killed:
        said = killed.communicate(timeout=120)[1]
    assert killed.returncode == -signal.SIGKILL, said
    assert index(points).options["num_partitions"] == partitions
    answers_right(points)
    after = build(points, kind, NEW)
    assert (after.options["num_partitions"], after.rows_indexed, after.rows_not_indexed) == (NEW, ROWS, 0)
    answers_right(points)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "point", [PART_DONE, pytest.param(PART_BEGUN, marks=DEEP), pytest.param(f"{PART_DONE}=kill@2", marks=DEEP)]
)
def test_a_process_that_builds_a_part_is_killed(points, kind: IndexKind, point: str) -> None:
    build(points, kind, OLD)
    with driver(points, kind, "process", point if "=" in point else f"{point}=kill") as failed:
        said = failed.communicate(timeout=120)[1]
    assert failed.returncode == 1
    assert b"a process that built a part of index 'near' died; nothing was published" in said
    assert index(points).options["num_partitions"] == OLD
    answers_right(points)
    assert build(points, kind, NEW).options["num_partitions"] == NEW
    answers_right(points)


@pytest.mark.parametrize("mode", [pytest.param("create", marks=DEEP), "replace"])
def test_a_build_is_killed_while_lance_writes_a_part(points, mode: str) -> None:
    """As soon as its folder is there; what was written is never used, as it has no record."""
    if mode == "replace":
        build(points, IndexKind.IVF_PQ, OLD)
    folder = Path(points.location, "_indices")
    before = set(folder.iterdir()) if folder.exists() else set()
    with driver(points, IndexKind.IVF_PQ, "here", mode=mode) as child:
        while not (folder.exists() and set(folder.iterdir()) - before):
            assert child.poll() is None, child.communicate()
        child.kill()
        child.communicate()
    begun = [path for path in set(folder.iterdir()) - before if not (path / RECORD).exists()]
    if mode == "replace":
        answers_right(points)
    elif not points.storage.indexer(points.info).indexes():
        assert begun, "it was killed before its first part was whole"
    after = build(points, IndexKind.IVF_PQ, NEW)
    assert (after.rows_indexed, after.rows_not_indexed) == (ROWS, 0)
    assert not {path.name for path in begun} & set(after.segments)
    answers_right(points)
