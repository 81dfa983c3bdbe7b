"""Indexes that follow a table by their policies: on real Lance tables, also when the driver is killed at any step."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from laketier.kit import failpoints
from laketier.maintenance.index_builds import PART_BUILT, build_here
from laketier.maintenance.index_policy import IndexPolicy, IndexStep
from laketier.maintenance.index_upkeep import IndexUpkeep, maintain_lake_indexes
from laketier.registry import Lake
from laketier.spi import ConfigError, FeatureNotSupported, IndexInfo, IndexKind, IndexPlan, IndexSpec, TableError
from laketier_verification.lakes import append, lake_at

lance = pytest.importorskip("lance")
pytest.importorskip("laketier_lance")

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])
WORDS = IndexPolicy(IndexSpec("words", "text", IndexKind.INVERTED), 50, None, max_segments=3)
IDS = IndexPolicy(IndexSpec("ids", "id", IndexKind.BTREE), 200, None, max_segments=3)


def add(lake: Lake, epoch: int, rows: int = 50) -> None:
    ids = range(epoch * rows, epoch * rows + rows)
    columns = {"id": list(ids), "text": [f"paper {each} on lake{each % 7}" for each in ids]}
    append(lake, pa.RecordBatch.from_pydict(columns, schema=SCHEMA), epoch=epoch)


def maintain(lake: Lake, *policies: IndexPolicy) -> list[IndexUpkeep]:
    return list(maintain_lake_indexes(lake, policies, build=build_here, max_parts=4))


def steps(lake: Lake, policy: IndexPolicy) -> list[str]:
    (done,) = maintain(lake, policy)
    if done.error is not None:
        raise done.error
    return [each.step.value for each in done.steps]


def index(lake: Lake, name: str = "words") -> IndexInfo | None:
    found = lake.indexer(lake.load_table()).indexes()
    return next((each for each in found if each.name == name), None)


def found(lake: Lake) -> list[int]:
    """The ids of all papers on one lake, by words."""
    dataset = lance.dataset(lake.load_table().location)
    ids: list[int] = dataset.to_table(["id", "_score"], full_text_query="lake3", limit=10_000)["id"].to_pylist()
    return sorted(ids)


def test_indexes_follow_their_table(tmp_path: Path) -> None:
    lake = lake_at(tmp_path, "lance")
    assert [each.steps for each in maintain(lake, WORDS, IDS)] == [(), ()], "there is no table yet"
    taken: list[list[str]] = []
    for epoch in range(6):
        add(lake, epoch)
        done = maintain(lake, WORDS, IDS)
        assert [each.error for each in done] == [None, None]
        taken.append([step.step.value for each in done for step in each.steps])
        assert found(lake) == [each for each in range(50 * epoch + 50) if each % 7 == 3]
        (words, ids) = done
        assert words.tail_share == 0
        assert ids.info is not None
        assert ids.info.rows_not_indexed < 200
    # Of words each round; of ids only after 200 rows more. Four segments are one too many, and become two.
    assert taken == [
        ["create", "create"], ["append"], ["append"], ["append", "merge"], ["append", "append"], ["append", "merge"],
    ]  # fmt: skip


def test_deleted_rows_wear_an_index_out(tmp_path: Path) -> None:
    lake = lake_at(tmp_path, "lance")
    add(lake, 0)
    assert steps(lake, WORDS) == ["create"]
    dataset = lance.dataset(lake.load_table().location)
    dataset.delete("id < 10")
    assert steps(lake, WORDS) == [], "a fifth is not more than a fifth"
    dataset.delete("id < 11")
    worn = index(lake)
    assert worn is not None
    assert (worn.rows_indexed, worn.rows_deleted) == (39, 11)
    assert steps(lake, WORDS) == ["rebuild"]
    anew = index(lake)
    assert anew is not None
    assert (anew.rows_indexed, anew.rows_deleted) == (39, 0)
    assert steps(lake, WORDS) == [], "and not again and again"


def test_one_that_fails_does_not_stop_the_others(tmp_path: Path) -> None:
    lake = lake_at(tmp_path, "lance")
    add(lake, 0)
    wrong = replace(WORDS, spec=replace(WORDS.spec, column="txet"))
    failed, done = maintain(lake, wrong, IDS)
    assert isinstance(failed.error, ConfigError)
    assert "'text'" in str(failed.error)
    assert [each.step for each in done.steps] == [IndexStep.CREATE]
    assert steps(lake, WORDS) == ["create"]
    add(lake, 1)
    other = replace(WORDS, spec=replace(WORDS.spec, options={"stem": False}))
    with pytest.raises(ConfigError, match="other settings") as refused:
        steps(lake, other)
    assert "laketier index create --replace" in str(refused.value.fix)
    plain = lake_at(tmp_path, "localfile", "db.plain")
    append(plain, pa.RecordBatch.from_pydict({"id": [1], "text": ["x"]}, schema=SCHEMA), epoch=0)
    with pytest.raises(FeatureNotSupported, match="localfile"):
        maintain(plain, WORDS)


def test_what_can_not_be_merged_is_built_anew(tmp_path: Path) -> None:
    lake = lake_at(tmp_path, "lance")
    for epoch in range(4):
        add(lake, epoch)
        maintain(lake, replace(WORDS, max_segments=9))

    def refusing(plan: IndexPlan):  # type: ignore[no-untyped-def]
        if plan.mode.value == "merge":
            raise TableError("codes are transposed")  # as Lance says of IVF_PQ
        yield from build_here(plan)

    (done,) = maintain_lake_indexes(lake, [WORDS], build=refusing, max_parts=4)
    assert done.error is None
    assert done.info is not None
    assert (len(done.info.segments), done.info.rows_indexed) == (1, 200)


@pytest.mark.parametrize("epochs", [25, pytest.param(200, marks=pytest.mark.deep)])
def test_a_long_stream_with_compaction_and_expiry(tmp_path: Path, epochs: int) -> None:
    """Ids and scores are those of a fresh build, whatever was merged, compacted and expired in between."""
    lake = lake_at(tmp_path, "lance")
    taken: Counter[str] = Counter()
    for epoch in range(epochs):
        add(lake, epoch, 20)
        taken.update(steps(lake, replace(WORDS, max_unindexed_rows=30)))
        location = lake.load_table().location
        if epoch % 7 == 6:
            lance.dataset(location).optimize.compact_files()
        if epoch % 11 == 10:
            lance.dataset(location).cleanup_old_versions(older_than=timedelta(0))
    assert taken["create"] == 1
    assert taken["append"] >= epochs // 2 - 1
    assert taken["merge"] >= epochs // 10
    assert taken["rebuild"] == 0
    assert steps(lake, replace(WORDS, max_unindexed_rows=1)) in ([], ["append"], ["append", "merge"])
    kept = scores(lake)
    lance.dataset(location).create_scalar_index("text", "INVERTED", name="words", replace=True)
    fresh = scores(lake)
    assert [set(each) for each in kept] == [set(each) for each in fresh]
    for one, other in zip(kept, fresh, strict=True):
        assert one == pytest.approx(other, rel=1e-6)


def scores(lake: Lake) -> list[dict[int, float]]:
    dataset = lance.dataset(lake.load_table().location)
    asked = [*(f"lake{n}" for n in range(7)), *(str(n) for n in range(0, 500, 7)), "paper lake2"]
    found = [dataset.to_table(["id", "_score"], full_text_query=each, limit=10_000) for each in asked]
    assert sum(each.num_rows for each in found) > 500
    return [dict(zip(each["id"].to_pylist(), each["_score"].to_pylist(), strict=True)) for each in found]


DRIVER = """
import sys
from laketier.maintenance.index_builds import build_here
from laketier.maintenance.index_policy import IndexPolicy
from laketier.maintenance.index_upkeep import maintain_lake_indexes
from laketier.registry import configure, open_lake
from laketier.spi import IndexKind, IndexSpec

lake = open_lake(configure({"lake.format": "lance", "lake.warehouse": sys.argv[1], "lake.table": "db.t"}))
policy = IndexPolicy(IndexSpec("words", "text", IndexKind.INVERTED), 50, None, max_segments=3)
for done in maintain_lake_indexes(lake, [policy], build=build_here, max_parts=4):
    if done.error is not None:
        raise done.error
"""


@pytest.mark.every(2)
@pytest.mark.parametrize(
    ("point", "segments"),
    [
        (f"{PART_BUILT}=kill", 3),
        ("index.before_commit=kill", 3),
        ("index.between_commit_and_fsync=kill", 4),
        (f"{PART_BUILT}=kill@2", 4),
        ("index.before_commit=kill@2", 4),
        ("index.between_commit_and_fsync=kill@2", 2),
    ],
)
def test_a_killed_driver_leaves_an_index_that_answers(tmp_path: Path, point: str, segments: int) -> None:
    """It appends, then merges. Whatever it left, the next one goes on from there."""
    lake = lake_at(tmp_path, "lance")
    for epoch in range(3):
        add(lake, epoch)
        maintain(lake, WORDS)
    add(lake, 3)
    killed = subprocess.run(
        [sys.executable, "-c", DRIVER, str(tmp_path)], env={**os.environ, failpoints.VARIABLE: point}, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    left = index(lake)
    assert left is not None
    assert len(left.segments) == segments
    assert left.rows_indexed + left.rows_not_indexed == 200
    papers = [each for each in range(200) if each % 7 == 3]
    assert found(lake) == papers
    maintain(lake, WORDS)
    after = index(lake)
    assert after is not None
    assert (len(after.segments), after.rows_indexed, after.rows_not_indexed) == (2, 200, 0)
    assert found(lake) == papers
