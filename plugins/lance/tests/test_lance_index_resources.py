"""Limits of an index build take effect where they are said, and are refused by name where they can't."""

from __future__ import annotations

import os
import sysconfig
from dataclasses import replace
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from laketier.maintenance.index_builds import build_here, build_index
from laketier.spi import ConfigError, FeatureNotSupported, IndexKind, IndexMode, IndexResources, IndexSpec, TableError
from laketier_lance import index_merger, index_resources
from laketier_lance.index_builder import LanceIndexBuilder, new_segment
from laketier_lance.index_merger import LanceIndexMerger
from laketier_lance.index_resources import is_merged_within, text_limits
from laketier_lance.options import LanceOptions

MIB = 1024**2
TEXT = IndexSpec("x", "doc", IndexKind.INVERTED)
TEXTS = pa.schema(
    [("id", pa.int64()), ("doc", pa.string()), ("tags", pa.list_(pa.string())), ("v", pa.list_(pa.float32(), 8))]
)
COLUMNS = {IndexKind.LABEL_LIST: "tags", IndexKind.INVERTED: "doc", IndexKind.NGRAM: "doc"}


def paragraphs(count: int) -> list[str]:
    found: dict[str, None] = {}
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        found |= dict.fromkeys(path.read_text(encoding="utf-8", errors="replace").split("\n\n"))
        if len(found) >= count:
            break
    return list(found)[:count]


@pytest.fixture
def texts(make_table):
    table = make_table(TEXTS)
    docs = paragraphs(6000)
    vectors = [[float(each % 7)] * 8 for each in range(len(docs))]
    tags = [[f"t{each % 50}"] for each in range(len(docs))]
    rows = pa.table([list(range(len(docs))), docs, tags, vectors], schema=TEXTS)
    lance.write_dataset(rows, table.location, mode="append")
    return table


@pytest.fixture
def small_limits(monkeypatch):
    for name in ("_LEAST", "_LEAST_OF_TEXT"):
        monkeypatch.setattr(index_resources, name, 1)
    monkeypatch.setattr(index_resources, "_BESIDE", 0)


def create(table, kind: IndexKind, resources: IndexResources, **more):
    spec = IndexSpec("x", COLUMNS.get(kind, "v" if kind.value.startswith("ivf") else "id"), kind)
    indexer = table.storage.indexer(table.info)
    return build_index(indexer, spec, IndexMode.REPLACE, max_parts=1, build=build_here, resources=resources, **more)


def partitions(table) -> int:
    (found,) = table.open().describe_indices()
    (segment,) = found.segments
    return len(list(Path(table.location, "_indices", segment.uuid).glob("*_docs.lance")))


def answers(table) -> list[dict[int, float]]:
    asked = ["return", "import", "self", "class error", "file path name"]
    found = [table.open().to_table(["id", "_score"], full_text_query=each, limit=50_000) for each in asked]
    return [dict(zip(each["id"].to_pylist(), each["_score"].to_pylist(), strict=True)) for each in found]


@pytest.mark.deep
def test_full_text_is_cut_where_its_limit_says(texts, small_limits) -> None:
    for _ in range(2):  # Lance looks at what it has collected after each 8,192 rows
        lance.write_dataset(texts.open().to_table(), texts.location, mode="append")
    create(texts, IndexKind.INVERTED, IndexResources())
    assert partitions(texts) == 1
    expected = answers(texts)
    assert sum(map(len, expected)) > 1000
    for resources in (IndexResources(partition_size=MIB), IndexResources(memory=4 * MIB, partition_size=MIB)):
        create(texts, IndexKind.INVERTED, resources)
        assert partitions(texts) > 1
        assert answers(texts) == expected
    create(texts, IndexKind.INVERTED, IndexResources(memory=MIB))
    assert partitions(texts) > 1


@pytest.mark.every(2)
@pytest.mark.parametrize("kind", [IndexKind.BTREE, IndexKind.BITMAP])
def test_what_is_sorted_is_sorted_within_its_memory(texts, small_limits, tmp_path, kind: IndexKind) -> None:
    told = []
    spill = tmp_path / "spill"
    spill.mkdir()
    create(texts, kind, IndexResources(memory=MIB, spill=str(spill)), told=told.append)
    assert list(spill.iterdir()) == []
    assert min(told[-1].memory) > 16 * MIB
    with pytest.raises(TableError, match="Resources exhausted"):
        create(texts, kind, IndexResources(memory=1024))
    assert "LANCE_MEM_POOL_SIZE" not in os.environ


@pytest.mark.parametrize("kind", [IndexKind.NGRAM, IndexKind.ZONEMAP, IndexKind.BLOOMFILTER, IndexKind.IVF_FLAT])
def test_a_limit_without_effect_is_refused_by_name(texts, kind: IndexKind) -> None:
    with pytest.raises(FeatureNotSupported, match=f"memory of a task that builds {kind}"):
        create(texts, kind, IndexResources(memory=64 * MIB))
    with pytest.raises(FeatureNotSupported, match="partition-size of an index"):
        create(texts, kind, IndexResources(partition_size=64 * MIB))


@pytest.mark.parametrize(
    ("resources", "says"),
    [
        (IndexResources(memory=95 * MIB), "memory = 99614720 is too small, because Lance takes 64 MiB .* 96 MiB, or"),
        (IndexResources(partition_size=MIB), "partition-size = 1048576 is too small"),
        (IndexResources(memory=114 * MIB, partition_size=17 * MIB), "is too large for memory"),
        (IndexResources(memory=96 * MIB, partition_size=32 * MIB), "Give memory = 167772160"),
    ],
)
def test_limits_that_can_not_be(texts, resources: IndexResources, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        create(texts, IndexKind.INVERTED, resources)


def test_a_build_of_text_reads_little_ahead() -> None:
    bounded = LanceIndexBuilder("p", "/t", LanceOptions(), TEXT, 1).within(IndexResources(memory=97 * MIB))
    assert bounded.environment["LANCE_DEFAULT_BATCH_SIZE"] == "128"
    assert text_limits(TEXT.kind, bounded.resources) == {"memory_limit": 11}, "of three partitions, beside 64 MiB"
    merger = LanceIndexMerger("p", "/t", LanceOptions(), TEXT, 1).within(IndexResources(memory=97 * MIB))
    assert merger.environment == bounded.environment
    for free in (
        LanceIndexBuilder("p", "/t", LanceOptions(), TEXT, 1).within(IndexResources(partition_size=16 * MIB)),
        LanceIndexBuilder("p", "/t", LanceOptions(), replace(TEXT, kind=IndexKind.BTREE), 1).within(
            IndexResources(memory=64 * MIB)
        ),
    ):
        assert free.environment == {}


def test_what_is_too_much_to_merge_is_built_of_its_rows(make_table, monkeypatch) -> None:
    limits = IndexResources(memory=96 * MIB)
    assert [is_merged_within(TEXT.kind, limits, size) for size in (10 * MIB, 11 * MIB, None)] == [True, False, False]
    table = make_table(TEXTS)
    for number in range(4):
        docs = paragraphs(2000)[number * 500 : number * 500 + 500]
        rows = pa.table([list(range(500)), docs, [["t"]] * 500, [[1.0] * 8] * 500], schema=TEXTS)
        lance.write_dataset(rows, table.location, mode="append")
    indexer = table.storage.indexer(table.info)
    build_index(indexer, TEXT, IndexMode.CREATE, max_parts=4, build=build_here)
    expected = answers(table)
    table.open().delete("id < 10")
    plan = indexer.plan(TEXT, 2, IndexMode.MERGE)
    fits, made = iter([True, False]), []
    monkeypatch.setattr(index_merger, "is_merged_within", lambda *_: next(fits))
    monkeypatch.setattr(index_merger, "new_segment", lambda *given: made.append(given[2]) or new_segment(*given))
    built = [plan.builder.within(limits).build(part) for part in plan.parts]
    assert [list(each) for each in made] == [[2, 3]]
    info = indexer.publish(plan, built)
    assert (len(info.segments), info.rows_not_indexed) == (2, 0)
    assert 0 < info.rows_deleted <= 20, "of half, Lance counts them still"
    assert [set(each) for each in answers(table)] == [{row for row in each if row >= 10} for each in expected]


def test_a_query_asks_no_more_segments_than_it_may(make_table) -> None:
    table = make_table(TEXTS)
    for number in range(4):
        rows = pa.table([[number], [f"paper {number}"], [["t"]], [[1.0] * 8]], schema=TEXTS)
        lance.write_dataset(rows, table.location, mode="append")
    indexer = table.storage.indexer(table.info)
    spec = IndexSpec("x", "doc", IndexKind.INVERTED, {"with_position": True})
    made = {"max_parts": 4, "build": build_here, "max_segments": 2}
    info = build_index(indexer, spec, IndexMode.CREATE, **made)
    assert (len(info.segments), info.rows_indexed, info.options["with_position"]) == (2, 4, True)
    assert table.open().to_table(["id", "_score"], full_text_query="paper").num_rows == 4
