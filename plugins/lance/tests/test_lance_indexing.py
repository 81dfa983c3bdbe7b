"""Indexes that were built in parts answer as one that was built in one piece, and are published whole or not at all."""

from __future__ import annotations

import itertools
import json
import os
import pickle
import signal
import subprocess
import sys
import sysconfig
import time
import uuid
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laketier.kit import failpoints
from laketier.maintenance.index_builds import spec_of
from laketier.maintenance.orphans import collect_orphans
from laketier.spi import (
    ConfigError,
    FeatureNotSupported,
    IndexKind,
    IndexMode,
    IndexSpec,
    OutsideTable,
    Refused,
    TableChanged,
    TableError,
)
from laketier.spi.clocks import host_time
from laketier.tiering import RoundOutcome
from laketier_lance.clock import storage_time
from laketier_lance.index_folders import FOLDER
from laketier_lance.index_parts import balanced
from laketier_lance.options import LanceOptions

TEXTS = pa.schema([("id", pa.int64()), ("doc", pa.string()), ("size", pa.int64()), ("tags", pa.list_(pa.string()))])
SPEC = IndexSpec("doc_idx", "doc", IndexKind.INVERTED, {"with_position": True})


def paragraphs(count: int) -> list[str]:
    """Distinct paragraphs of the standard library's own files."""
    found: dict[str, None] = {}
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        for text in path.read_text(encoding="utf-8", errors="replace").split("\n\n"):
            if len(text.split()) > 15:
                found[text] = None
        if len(found) >= count:
            break
    return list(found)[:count]


def fill(table, fragments: int = 8, rows: int = 400) -> None:
    texts = paragraphs(fragments * rows)
    for number in range(fragments):
        docs = texts[number * rows : (number + 1) * rows]
        ids = range(number * rows, number * rows + len(docs))
        columns = [list(ids), docs, [len(doc) % 50 for doc in docs], [[f"t{each % 9}", f"u{each % 4}"] for each in ids]]
        lance.write_dataset(pa.table(columns, schema=TEXTS), table.location, mode="append")


@pytest.fixture
def texts(make_table):
    table = make_table(TEXTS)
    fill(table)
    return table


def indexer(table):
    return table.storage.indexer(table.info)


def build(table, spec=SPEC, parts: int = 4, mode=IndexMode.CREATE):
    plan = indexer(table).plan(spec, parts, mode)
    builder = pickle.loads(pickle.dumps(plan.builder))  # noqa: S301 - as Spark does
    return plan, [builder.build(part) for part in plan.parts]


def create(table, spec=SPEC, parts: int = 4, mode=IndexMode.CREATE):
    return indexer(table).publish(*build(table, spec, parts, mode))


def orphans(table) -> dict[str, str]:
    """The paths of all orphans, whatever their age, and their kinds."""
    found = table.storage.maintenance(table.info).orphans(time.time_ns() // 1_000_000 + 60_000)
    return {file.path: file.kind for file in found}


def collect(table) -> None:
    """All that was there before, by the clock of the file system."""
    # Names of files have the time of the host, which may be ahead of that of the file system by some milliseconds.
    now = max(storage_time(table.location, LanceOptions()), host_time())
    while storage_time(table.location, LanceOptions()) <= now:
        pass
    collect_orphans(table.storage, table.info, grace=timedelta(0))


def queries(table) -> list[object]:
    """100 terms and 100 phrases, spread over the texts."""
    docs = table.open().to_table(["doc"]).column("doc").to_pylist()
    words = [[word for word in doc.split() if word.isalpha()] for doc in docs]
    chosen = [each for each in words if len(each) > 6][:: max(1, len(words) // 120)][:100]
    assert len(chosen) == 100
    phrases = [lance.query.PhraseQuery(" ".join(each[2:4]), "doc") for each in chosen]
    return [*(each[len(each) // 2] for each in chosen), *phrases]


def answers(table, asked) -> list[dict[int, float]]:
    dataset = table.open()
    found = [dataset.to_table(["id"], full_text_query=each, limit=10_000) for each in asked]
    return [dict(zip(each["id"].to_pylist(), each["_score"].to_pylist(), strict=True)) for each in found]


@pytest.mark.every(3)
@pytest.mark.parametrize("parts", [2, 4, 8])
def test_text_answers_are_those_of_a_single_build(texts, parts: int) -> None:
    asked = queries(texts)
    single = texts.open()
    single.create_scalar_index("doc", "INVERTED", name="doc_idx", with_position=True)
    expected = answers(texts, asked)
    assert sum(map(len, expected)) > 1000
    single.drop_index("doc_idx")
    info = create(texts, parts=parts)
    assert (len(info.segments), info.rows_indexed, info.rows_not_indexed) == (parts, texts.open().count_rows(), 0)
    assert answers(texts, asked) == expected


@pytest.mark.every(2)
@pytest.mark.parametrize(
    ("kind", "column", "conditions"),
    [
        (IndexKind.BTREE, "size", [f"size = {n}" for n in range(50)] + ["size > 17 AND size < 31"]),
        (IndexKind.BITMAP, "size", [f"size = {n}" for n in range(50)]),
        (IndexKind.ZONEMAP, "size", [f"size > {n}" for n in range(50)]),
        (IndexKind.BLOOMFILTER, "size", [f"size = {n}" for n in range(50)]),
        (IndexKind.LABEL_LIST, "tags", [f"array_has_any(tags, ['t{n}'])" for n in range(9)]),
        # Merged ones of a smaller table answer in `make test`.
        pytest.param(
            *(IndexKind.NGRAM, "doc", [f"contains(doc, '{word}')" for word in ("import", "return", "self", "yield")]),
            marks=pytest.mark.deep,
        ),
    ],
)
def test_filters_find_what_a_scan_finds(texts, kind: IndexKind, column: str, conditions: list[str]) -> None:
    expected = [texts.open().to_table(["id"], filter=each).column("id").to_pylist() for each in conditions]
    assert any(expected)
    info = create(texts, IndexSpec("x", column, kind), 3)
    assert (info.kind, len(info.segments), info.rows_not_indexed) == (kind, 3, 0)
    assert "Index" in texts.open().scanner(filter=conditions[0]).explain_plan()
    assert [texts.open().to_table(["id"], filter=each).column("id").to_pylist() for each in conditions] == expected


def test_what_is_not_whole_is_refused(texts) -> None:
    plan, built = build(texts)
    again = plan.builder.build(plan.parts[0])
    _, other = build(texts, replace(SPEC, options={"with_position": True, "base_tokenizer": "whitespace"}))
    alien = replace(built[0], settings=other[0].settings)
    version = texts.open().version
    for wrong, says in [
        (built[1:], r"parts \[0\] of 4 are missing"),
        ([*built, again], r"parts \[0\] were built twice"),
        ([*built, built[0]], "built twice"),
        ([other[0], *built[1:]], "not of this plan"),
        ([alien, *built[1:]], "different settings"),
        ([replace(built[0], rows=3), *built[1:]], "has 3 rows"),
        ([replace(built[0], snapshot_id=1), *built[1:]], "built at snapshot 1"),
    ]:
        with pytest.raises(Refused, match=says):
            indexer(texts).publish(plan, wrong)
    forged = json.loads(built[0].payload) | {"files": [["../../data/x", 1]]}
    with pytest.raises(OutsideTable):
        indexer(texts).publish(plan, [replace(built[0], payload=json.dumps(forged)), *built[1:]])
    assert (texts.open().version, indexer(texts).indexes()) == (version, [])
    indexer(texts).publish(plan, built)


def test_a_second_publish_changes_nothing(texts) -> None:
    plan, built = build(texts)
    first = indexer(texts).publish(plan, built)
    version = texts.open().version
    assert indexer(texts).publish(plan, built) == first
    assert texts.open().version == version
    # A compaction gives the segments new ids and the fragments, too.
    texts.open().optimize.compact_files()
    compacted = texts.open().version
    (found,) = indexer(texts).indexes()
    assert not set(found.segments) & set(first.segments)
    assert indexer(texts).publish(plan, built).rows_not_indexed == 0
    assert texts.open().version == compacted


def test_an_index_in_parts_does_not_stand_in_the_way_of_compaction(texts) -> None:
    indexer(texts).publish(*build(texts, parts=3))
    asked = [lance.query.MatchQuery(word, "doc") for word in ("return", "import", "class", "self", "raise")]

    def answers() -> list[list[dict[str, object]]]:
        found = (texts.open().to_table(columns=["id", "_score"], full_text_query=query) for query in asked)
        return [sorted(table.to_pylist(), key=lambda row: row["id"]) for table in found]

    before = answers()
    assert len(texts.open().get_fragments()) == 8
    texts.open().optimize.compact_files()
    assert len(texts.open().get_fragments()) == 3, "the fragments of each part became one"
    (found,) = indexer(texts).indexes()
    assert found.rows_not_indexed == 0
    assert answers() == before


@given(st.lists(st.integers(0, 50), max_size=12), st.integers(1, 6))
def test_parts_are_runs_of_neighbours_as_even_as_can_be(rows, most) -> None:
    # The ids go down: the order is that of the dataset.
    units = {f"{100 - number}@f": count for number, count in enumerate(rows)}
    parts = balanced(units, most)
    assert [unit for part in parts for unit in part.units] == list(units)
    assert len(parts) <= most
    assert all(part.units and part.rows == sum(units[unit] for unit in part.units) for part in parts)
    assert [part.number for part in parts] == list(range(len(parts)))
    cuts = itertools.combinations_with_replacement(range(len(rows) + 1), most - 1)
    best = min((max(sum(rows[a:b]) for a, b in itertools.pairwise((0, *cut, len(rows)))) for cut in cuts), default=0)
    assert max((part.rows for part in parts), default=0) == best


def test_compacted_fragments_are_refused(texts) -> None:
    plan, built = build(texts)
    texts.open().optimize.compact_files()
    with pytest.raises(TableChanged, match="were compacted"):
        indexer(texts).publish(plan, built)
    assert indexer(texts).indexes() == []
    create(texts)


def test_a_name_is_taken_once(texts) -> None:
    plan, built = build(texts)
    create(texts)
    with pytest.raises(ConfigError, match="already"):
        build(texts)
    with pytest.raises(TableChanged, match="already"):
        indexer(texts).publish(plan, built)
    with pytest.raises(ConfigError, match="is of column doc"):
        build(texts, IndexSpec("doc_idx", "size", IndexKind.BTREE), mode=IndexMode.REPLACE)


def test_replace_and_append(texts) -> None:
    create(texts, parts=2)
    fill(texts, 2)
    assert indexer(texts).indexes()[0].rows_not_indexed > 0
    with pytest.raises(ConfigError, match="other settings"):
        build(texts, replace(SPEC, options={"base_tokenizer": "whitespace"}), mode=IndexMode.APPEND)
    plan, built = build(texts, replace(SPEC, options={}), mode=IndexMode.APPEND)
    info = indexer(texts).publish(plan, built)
    assert (info.rows_not_indexed, len(info.segments), info.options["with_position"]) == (0, 4, True)
    stale = build(texts, parts=1, mode=IndexMode.REPLACE)
    fill(texts, 1)
    create(texts, replace(SPEC, options={}), mode=IndexMode.APPEND)
    with pytest.raises(TableChanged, match="covers fragments"):  # else these keep their old settings
        indexer(texts).publish(*stale)
    plain = create(texts, replace(SPEC, options={"with_position": False}), 3, IndexMode.REPLACE)
    assert (plain.options["with_position"], len(plain.segments), plain.rows_not_indexed) == (False, 3, 0)
    nothing = build(texts, replace(SPEC, options={}), mode=IndexMode.APPEND)
    assert nothing[1] == []
    version = texts.open().version
    assert indexer(texts).publish(*nothing) == replace(plain, snapshot_id=version)
    again = create(texts, spec_of(info), 3, IndexMode.REPLACE)
    assert (again.options, again.rows_not_indexed) == (info.options, 0)
    indexer(texts).drop("doc_idx")
    assert indexer(texts).indexes() == []


def test_what_can_not_be_built_is_refused(texts, monkeypatch) -> None:
    for spec, kind, says in [
        (IndexSpec("x", "dok", IndexKind.BTREE), ConfigError, "Did you mean 'doc'"),
        (IndexSpec("x", "doc", IndexKind.IVF_PQ), ConfigError, "not vectors of a fixed size"),
        (replace(SPEC, options={"with_positions": True}), ConfigError, "Did you mean 'with_position'"),
        (replace(SPEC, options={"stem": 1}), ConfigError, "not of type bool"),
        (IndexSpec("x", "size", IndexKind.BTREE, {"stem": True}), ConfigError, "it has none"),
        (replace(SPEC, options={"custom_stop_words": "and or"}), FeatureNotSupported, "does not keep them"),
        (replace(SPEC, name="x"), None, ""),
    ]:
        if kind is not None:
            with pytest.raises(kind, match=says):
                build(texts, spec)
    monkeypatch.setenv("LANCE_LANGUAGE_MODEL_HOME", "/nowhere")
    with pytest.raises(TableError, match="could not build part 0"):
        build(texts, IndexSpec("x", "doc", IndexKind.INVERTED, {"base_tokenizer": "jieba/default"}))


def test_rounds_keep_indexes_and_lose_no_epoch(table) -> None:
    table.append(0, 1, 2)
    table.append(1, 3, 4)
    plan, built = build(table, IndexSpec("n", "id", IndexKind.BTREE), 2)
    table.append(2, 5)
    info = indexer(table).publish(plan, built)
    assert (info.rows_indexed, info.rows_not_indexed) == (4, 1)
    assert table.append(3, 6).outcome is RoundOutcome.PUBLISHED
    assert table.append(3, 6).outcome is RoundOutcome.ALREADY_THERE
    (kept,) = indexer(table).indexes()
    assert (kept.segments, kept.rows_indexed, kept.rows_not_indexed) == (info.segments, 4, 2)
    assert sorted(table.open().to_table(filter="id > 0").column("id").to_pylist()) == [1, 2, 3, 4, 5, 6]


def test_files_of_a_build_that_was_never_published_are_orphans(texts) -> None:
    create(texts)
    live = {f"_indices/{each}" for each in indexer(texts).indexes()[0].segments}
    _, lost = build(texts, IndexSpec("lost", "doc", IndexKind.NGRAM), 2)
    found = {path.rpartition("/")[0] for path, kind in orphans(texts).items() if kind == "index"}
    assert found == {f"_indices/{each.segment}" for each in lost}
    collect(texts)
    assert {f"_indices/{path.name}" for path in Path(texts.location, "_indices").iterdir()} == live
    assert answers(texts, queries(texts)[:5])


def test_empty_folders_of_segments_are_collected(texts) -> None:
    """Lance's own clean-up leaves them. One that a build has just made, or fills meanwhile, stays."""
    create(texts, parts=2)
    indexer(texts).drop("doc_idx")
    texts.open().cleanup_old_versions(timedelta(0))
    indices = Path(texts.location, "_indices")
    left = sorted(path.name for path in indices.iterdir())
    assert len(left) == 2
    assert not any(path.is_file() for path in indices.rglob("*"))
    maintenance = texts.storage.maintenance(texts.info)
    made = min((indices / name).stat().st_mtime_ns // 1_000_000 for name in left)
    assert not [file for file in maintenance.orphans(made) if file.kind == FOLDER]
    (indices / "keep").mkdir()
    linked = indices / str(uuid.uuid4())
    linked.symlink_to(indices / "keep")
    found = [file for file in maintenance.orphans(time.time_ns() // 1_000_000 + 60_000) if file.kind == FOLDER]
    assert [(file.path, file.bytes) for file in found] == [(f"_indices/{name}", 0) for name in left]
    begun = indices / left[0] / "part_0_docs.lance"
    begun.write_bytes(b"a build fills it")
    removed = maintenance.remove_orphans(found)
    assert [file.path for file in removed] == [f"_indices/{left[1]}"]
    assert sorted(path.name for path in indices.iterdir()) == sorted([left[0], "keep", linked.name])
    begun.unlink()
    linked.unlink()
    collect(texts)
    assert [path.name for path in indices.iterdir()] == ["keep"]


DRIVER = """
import sys
from laketier.spi import IndexKind, IndexMode, IndexSpec, LakeStorageConfig, TablePath
from laketier_lance.plugin import LancePlugin

storage = LancePlugin().create_storage(LakeStorageConfig(sys.argv[1], None))
indexer = storage.indexer(storage.catalog().load_table(TablePath("db", "t")))
spec = IndexSpec("doc_idx", "doc", IndexKind.INVERTED, {"base_tokenizer": "whitespace", "with_position": True})
plan = indexer.plan(spec, 3, IndexMode.REPLACE)
indexer.publish(plan, [plan.builder.build(part) for part in plan.parts])
"""


@pytest.mark.parametrize(
    ("point", "landed"), [("index.before_commit", False), ("index.between_commit_and_fsync", True)]
)
def test_a_killed_driver_leaves_the_old_index_or_the_new(texts, point: str, landed: bool) -> None:
    old = create(texts)
    asked = queries(texts)
    before = answers(texts, asked)
    environment = {**os.environ, failpoints.VARIABLE: f"{point}=kill"}
    driver = [sys.executable, "-c", DRIVER, str(texts.warehouse)]
    assert subprocess.run(driver, env=environment, check=False).returncode == -signal.SIGKILL
    (found,) = indexer(texts).indexes()
    assert found.rows_not_indexed == 0
    if landed:
        assert (found.options["base_tokenizer"], len(found.segments)) == ("whitespace", 3)
        assert set(found.segments).isdisjoint(old.segments)
    else:
        assert found == replace(old, snapshot_id=found.snapshot_id)
        assert answers(texts, asked) == before
        assert "index" in orphans(texts).values()
