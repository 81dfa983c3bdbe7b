"""Segments that were merged answer as a fresh build does, and work of a build outlives what others do meanwhile."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laketier.kit import failpoints
from laketier.maintenance.index_builds import build_here, build_index
from laketier.spi import ConfigError, IndexInfo, IndexKind, IndexMode, IndexSpec, TableChanged
from laketier_lance.index_parts import groups_to_merge

TEXTS = pa.schema([("id", pa.int64()), ("doc", pa.string()), ("size", pa.int64()), ("tags", pa.list_(pa.string()))])
WORDS = IndexSpec("x", "doc", IndexKind.INVERTED, {"with_position": True})
KINDS = {
    IndexKind.BTREE: ("size", [f"size = {n}" for n in range(20)] + ["size > 17 AND size < 31"]),
    IndexKind.BITMAP: ("size", [f"size = {n}" for n in range(20)]),
    IndexKind.ZONEMAP: ("size", [f"size > {n}" for n in range(20)]),
    IndexKind.BLOOMFILTER: ("size", [f"size = {n}" for n in range(20)]),
    IndexKind.LABEL_LIST: ("tags", [f"array_has_any(tags, ['t{n}'])" for n in range(9)]),
    IndexKind.NGRAM: ("doc", [f"contains(doc, '{word}')" for word in ("import", "return", "self", "yield")]),
}


def _paragraphs(count: int) -> list[str]:
    found: dict[str, None] = {}
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        for text in path.read_text(encoding="utf-8", errors="replace").split("\n\n"):
            if len(text.split()) > 15:
                found[text] = None
        if len(found) >= count:
            break
    return list(found)[:count]


PARAGRAPHS = _paragraphs(2000)


def add(table, number: int, rows: int = 20) -> None:
    ids = range(number * rows, number * rows + rows)
    docs = [PARAGRAPHS[each] for each in ids]
    tags = [[f"t{each % 9}", f"u{each % 4}"] for each in ids]
    columns = [list(ids), docs, [len(doc) % 50 for doc in docs], tags]
    lance.write_dataset(pa.table(columns, schema=TEXTS), table.location, mode="append")


@pytest.fixture
def texts(make_table):
    table = make_table(TEXTS)
    add(table, 0)
    return table


def indexer(table):
    return table.storage.indexer(table.info)


def built(table, spec: IndexSpec, mode: IndexMode, parts: int):
    plan = indexer(table).plan(spec, parts, mode)
    builder = pickle.loads(pickle.dumps(plan.builder))  # noqa: S301 - as Spark does
    return plan, [builder.build(part) for part in plan.parts]


def change(table, spec: IndexSpec, mode: IndexMode, parts: int = 1) -> IndexInfo:
    return indexer(table).publish(*built(table, spec, mode, parts))


def ranked(table) -> list[dict[int, float]]:
    """Ids and scores for words, phrases and words that are nearly alike."""
    chosen = [[word for word in doc.split() if word.isalpha()] for doc in PARAGRAPHS[:400:8]]
    chosen = [words for words in chosen if len(words) > 6]
    asked: list[object] = [words[3] for words in chosen]
    asked += [lance.query.PhraseQuery(" ".join(words[2:4]), "doc") for words in chosen]
    asked += [lance.query.MatchQuery(words[2], "doc", fuzziness=1) for words in chosen]
    dataset = table.open()
    found = [dataset.to_table(["id", "_score"], full_text_query=each, limit=10_000) for each in asked]
    answers = [dict(zip(each["id"].to_pylist(), each["_score"].to_pylist(), strict=True)) for each in found]
    assert sum(map(len, answers)) > 1000
    return answers


def returns(table) -> dict[int, float]:
    found = table.open().to_table(["id", "_score"], full_text_query="return", limit=1000)
    assert found.num_rows
    return dict(zip(found["id"].to_pylist(), found["_score"].to_pylist(), strict=True))


def filtered(table, conditions: Sequence[str]) -> list[list[int]]:
    answers = [sorted(table.open().to_table(["id"], filter=each)["id"].to_pylist()) for each in conditions]
    assert any(answers)
    return answers


def follow(table, spec: IndexSpec, appends: int, most: int = 4) -> IndexInfo:
    """An index that follows the table: a segment for each append, and a merge where there are too many. Whatever was
    merged is merged again."""
    info = change(table, spec, IndexMode.CREATE)
    for number in range(1, appends):
        add(table, number)
        info = change(table, replace(spec, options={}), IndexMode.APPEND)
        if len(info.segments) > most:
            info = change(table, replace(spec, options={}), IndexMode.MERGE, most // 2)
            assert len(info.segments) == most // 2
    assert (info.rows_indexed, info.rows_not_indexed) == (20 * appends, 0)
    return info


@pytest.mark.parametrize("appends", [20, pytest.param(100, marks=pytest.mark.deep)])
def test_merged_words_have_the_scores_of_a_fresh_build(texts, appends: int) -> None:
    kept = follow(texts, WORDS, appends)
    merged = ranked(texts)
    fresh = change(texts, WORDS, IndexMode.REPLACE)
    assert set(fresh.segments).isdisjoint(kept.segments)
    for one, other in zip(merged, ranked(texts), strict=True):
        # Scores are sums of 32-bit floats: the order of segments may show in the last digit.
        assert one == pytest.approx(other, rel=1e-6)


@pytest.mark.parametrize(
    ("kind", "appends"),
    [
        *((kind, 20) for kind in KINDS if kind is not IndexKind.NGRAM),
        (IndexKind.NGRAM, 3),  # Lance takes half a second for the smallest of them, and a hundred take three minutes
        *(pytest.param(kind, 20 if kind is IndexKind.NGRAM else 100, marks=pytest.mark.deep) for kind in KINDS),
    ],
)
def test_merged_filters_find_what_a_scan_finds(texts, kind: IndexKind, appends: int) -> None:
    column, conditions = KINDS[kind]
    follow(texts, IndexSpec("x", column, kind), appends)
    assert "Index" in texts.open().scanner(filter=conditions[0]).explain_plan()
    found = filtered(texts, conditions)
    indexer(texts).drop("x")
    assert found == filtered(texts, conditions)


def test_a_merge_takes_only_its_segments(texts) -> None:
    change(texts, WORDS, IndexMode.CREATE)
    for number in range(1, 5):
        add(texts, number)
        change(texts, replace(WORDS, options={}), IndexMode.APPEND)
    plan, merged = built(texts, replace(WORDS, options={}), IndexMode.MERGE, 3)
    before = indexer(texts).indexes()[0]
    assert set(before.segments) > {unit for part in plan.parts for unit in part.units}
    add(texts, 5)
    appended = change(texts, replace(WORDS, options={}), IndexMode.APPEND)
    info = indexer(texts).publish(plan, merged)
    assert (len(info.segments), info.rows_not_indexed, info.options) == (4, 0, before.options)
    assert set(appended.segments) - set(before.segments) < set(info.segments)
    assert indexer(texts).publish(plan, merged) == info, "a second publish changes nothing"
    assert sum(info.segment_rows) == 120
    assert built(texts, replace(WORDS, options={}), IndexMode.MERGE, 4)[1] == [], "there is nothing to merge"


def test_segments_that_are_gone_are_not_merged(texts) -> None:
    change(texts, WORDS, IndexMode.CREATE)
    add(texts, 1)
    change(texts, replace(WORDS, options={}), IndexMode.APPEND)
    stale = built(texts, replace(WORDS, options={}), IndexMode.MERGE, 1)
    info = change(texts, WORDS, IndexMode.REPLACE)
    with pytest.raises(TableChanged, match="2 of the segments"):
        indexer(texts).publish(*stale)
    assert indexer(texts).indexes() == [info]
    indexer(texts).drop("x")
    with pytest.raises(TableChanged, match="2 of the segments"):
        indexer(texts).publish(*stale)
    with pytest.raises(ConfigError, match="no index 'x'"):
        built(texts, WORDS, IndexMode.MERGE, 1)


@given(st.lists(st.integers(0, 50), max_size=12), st.integers(1, 6))
def test_neighbours_are_merged_and_the_smallest_first(rows: list[int], left: int) -> None:
    segments = [(f"s{number}", count) for number, count in enumerate(rows)]
    parts = groups_to_merge(segments, left)
    names = [name for name, _ in segments]
    merged = [unit for part in parts for unit in part.units]
    assert merged == [name for name in names if name in merged], "in order, each once"
    assert all(len(part.units) > 1 for part in parts)
    assert len(names) - len(merged) + len(parts) == min(len(names), left)
    for part in parts:
        at = names.index(part.units[0])
        assert tuple(names[at : at + len(part.units)]) == part.units, "neighbours"
        assert part.rows == sum(rows[at : at + len(part.units)])


def test_a_large_segment_is_seldom_written_again() -> None:
    segments, written, number = [("first", 10_000)], 0, 0
    for number in range(1000):
        segments.append((str(number), 10))
        if len(segments) > 8:
            parts = {part.units[0]: part for part in groups_to_merge(segments, 4)}
            written += sum(part.rows for part in parts.values())
            taken = {unit for part in parts.values() for unit in part.units}
            segments = [
                (name, parts[name].rows if name in parts else count)
                for name, count in segments
                if name in parts or name not in taken
            ]
    assert sum(count for _, count in segments) == 20_000
    assert written < 20 * 20_000, "all of them into one each time: 94 times"


def test_what_a_compaction_left_alone_is_kept(texts) -> None:
    for number in range(1, 8):
        add(texts, number)
    plan, parts = built(texts, WORDS, IndexMode.CREATE, 4)
    lance.dataset(texts.location).delete("id < 20")  # the whole first fragment
    add(texts, 8)
    with pytest.raises(TableChanged):
        indexer(texts).publish(plan, parts)
    anew = indexer(texts).replan(plan, parts, 4)
    assert [each.segment for each in anew.kept] == [each.segment for each in parts[1:]]
    units = [unit for part in anew.parts for unit in part.units]
    assert [unit.partition("@")[0] for unit in units] == ["1", "8"], "the one beside it, and what is new"
    info = indexer(texts).publish(anew, [anew.builder.build(part) for part in anew.parts])
    assert (info.rows_indexed, info.rows_not_indexed) == (160, 0)
    assert {each.segment for each in parts[1:]} < set(info.segments)
    found = ranked(texts)
    change(texts, WORDS, IndexMode.REPLACE)
    assert found == [pytest.approx(each, rel=1e-6) for each in ranked(texts)]


@pytest.mark.parametrize("mode", [IndexMode.CREATE, IndexMode.REPLACE, IndexMode.APPEND, IndexMode.MERGE])
def test_a_build_ends_beside_a_compaction(texts, mode: IndexMode) -> None:
    for number in range(1, 6):
        if mode is not IndexMode.CREATE and number == 4:
            change(texts, WORDS, IndexMode.CREATE, 4)
        add(texts, number)
    if mode is IndexMode.MERGE:
        change(texts, replace(WORDS, options={}), IndexMode.APPEND)
    changes = iter([lambda: texts.open().optimize.compact_files(), lambda: add(texts, 6)])

    def interrupted(plan):
        yield from build_here(plan)
        next(changes, lambda: None)()

    spec = replace(WORDS, options={}) if mode in (IndexMode.APPEND, IndexMode.MERGE) else WORDS
    info = build_index(indexer(texts), spec, mode, max_parts=2, build=interrupted)
    rows = texts.open().count_rows()
    assert info.rows_indexed + info.rows_not_indexed == rows
    assert info.rows_not_indexed in ((0, 20) if mode is not IndexMode.MERGE else (0, 20, 40))
    assert mode is IndexMode.MERGE or next(changes, None) is None, "both changes came in between"


DRIVER = """
import sys
from dataclasses import replace
from laketier.kit import failpoint
from laketier.spi import IndexKind, IndexMode, IndexSpec, LakeStorageConfig, TablePath
from laketier_lance.plugin import LancePlugin

storage = LancePlugin().create_storage(LakeStorageConfig(sys.argv[1], None))
indexer = storage.indexer(storage.catalog().load_table(TablePath("db", "t")))
plan = indexer.plan(IndexSpec("x", "doc", IndexKind.INVERTED), 1, IndexMode.MERGE)
built = []
for part in plan.parts:
    built.append(plan.builder.build(part))
    failpoint("merged")
indexer.publish(plan, built)
"""


@pytest.mark.parametrize(
    ("point", "landed"),
    [("merged", False), ("index.before_commit", False), ("index.between_commit_and_fsync", True)],
)
def test_a_killed_merge_leaves_the_old_segments_or_the_new(texts, point: str, landed: bool) -> None:
    before = follow(texts, WORDS, 4)
    asked = returns(texts)
    environment = {**os.environ, failpoints.VARIABLE: f"{point}=kill"}
    driver = [sys.executable, "-c", DRIVER, str(texts.warehouse)]
    assert subprocess.run(driver, env=environment, check=False).returncode == -signal.SIGKILL
    (found,) = indexer(texts).indexes()
    assert len(found.segments) == (1 if landed else len(before.segments))
    assert (found.rows_indexed, found.rows_not_indexed) == (80, 0)
    assert returns(texts) == pytest.approx(asked, rel=1e-6)
