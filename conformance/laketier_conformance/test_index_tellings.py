"""What an index, its plan, its parts and a search of it tell of themselves. People and planners act by it."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from laketier.spi import (
    Boolean,
    Boost,
    Feature,
    FeatureNotSupported,
    Hybrid,
    IndexInfo,
    IndexKind,
    IndexMode,
    IndexPlan,
    IndexSpec,
    Match,
    MultiMatch,
    Nearest,
    SearchExplain,
    SnapshotNotFound,
)
from laketier_conformance.documents import FILTERED, INDEX, TEXTS, WORDS, Documents, kind_of_numbers
from laketier_conformance.expect import expect, goes_well, refused, the_one
from laketier_conformance.harness import Harness
from laketier_conformance.lake import Lake, Table, token
from laketier_conformance.points import ASKED, Pointed

INDEXED = pytest.mark.needs(Feature.INDEXING)
WORDED = pytest.mark.needs(Feature.SEARCH, Feature.INDEXING)
VECTORED = pytest.mark.needs(Feature.SEARCH, Feature.INDEXING, Feature.VECTORS)


@pytest.fixture
def texts(lake: Lake, harness: Harness) -> Documents:
    """A table of 240 rows in four files, without an index. Of a format that builds none, it is empty."""
    texts = Documents.of(lake, harness)
    return texts.filled() if lake.declares(Feature.INDEXING) else texts


def _of_sizes(texts: Documents, name: str = FILTERED) -> IndexSpec:
    return IndexSpec(name, "size", kind_of_numbers(texts.indexer, "size"))


@INDEXED
def test_what_a_plan_tells(texts: Documents) -> None:
    """Its parts have numbers from 0, are as many as were asked for at most, of about the same size, and each row is in
    one of them."""
    spec = _of_sizes(texts)
    for most in (1, 2, 3, 4, 9):
        plan = texts.indexer.plan(spec, most)
        told = f"a plan of {most} parts at most, of four files of 60 rows"
        _is_whole(plan, most, told)
        rows = [part.rows for part in plan.parts]
        expect(sum(rows), 240, f"{told}: the rows of its parts")
        expect((plan.mode, plan.spec.name, plan.spec.column), (IndexMode.CREATE, FILTERED, "size"), told)
        expect(plan.snapshot_id, texts.table.info.snapshot_id, f"{told}: its snapshot, beside the newest")
        if most in (2, 4):
            assert len(rows) == 1 or max(rows) <= 1.5 * min(rows), f"{told}: its parts are of {rows} rows"
    texts.index(4, spec=spec)
    texts.append(4, range(1000, 1020), range(1020, 1040), range(1040, 1060))
    for mode, wanted in ((IndexMode.APPEND, 60), (IndexMode.REPLACE, 300)):
        plan = texts.indexer.plan(spec, 2, mode)
        told = f"a plan ({mode.value}) of 2 parts at most"
        _is_whole(plan, 2, told)
        expect((plan.mode, sum(part.rows for part in plan.parts)), (mode, wanted), f"{told}: its mode, and its rows")
    _tells_its_merge(texts, spec)


def _is_whole(plan: IndexPlan, most: int, told: str) -> None:
    expect([part.number for part in plan.parts], list(range(len(plan.parts))), f"{told}: the numbers of its parts")
    assert 1 <= len(plan.parts) <= most, f"{told} has {len(plan.parts)}"
    twice = [unit for unit, count in Counter(u for part in plan.parts for u in part.units).items() if count > 1]
    expect(twice, [], f"{told}: what is in two of its parts")


def _tells_its_merge(texts: Documents, spec: IndexSpec) -> None:
    before = the_one(texts.indexer.indexes(), "the indexes of the table")
    for left in (1, 2, 3, len(before.segments)):
        try:
            plan = texts.indexer.plan(spec, left, IndexMode.MERGE)
        except FeatureNotSupported:
            return
        told = f"a plan that merges {len(before.segments)} segments into {left}"
        merged = [unit for part in plan.parts for unit in part.units]
        expect(len(before.segments) - len(merged) + len(plan.parts) <= left, True, f"{told}: whether it does")
        rows = dict(zip(before.segments, before.segment_rows, strict=False))
        for part in plan.parts if rows else ():
            expect(part.rows, sum(rows[unit] for unit in part.units), f"{told}: the rows of part {part.number}")
    with goes_well("a plan that has nothing to merge is published"):
        info = texts.indexer.publish(texts.indexer.plan(spec, 99, IndexMode.MERGE), [])
    expect(info.segments, before.segments, "the segments of an index of which nothing was merged")


@INDEXED
def test_what_a_part_tells(texts: Documents) -> None:
    """What it was built of, and how large that is. Each has an id of its own, and settings that are equal."""
    before = texts.table.lake.files()
    plan, built = texts.built(2, spec=_of_sizes(texts))
    for part, each in zip(plan.parts, built, strict=True):
        told = f"part {part.number} of a plan"
        expect((each.plan_id, each.part, each.snapshot_id), (plan.plan_id, part, plan.snapshot_id), told)
        expect(each.rows, part.rows, f"{told}: the rows that were read")
        assert each.size > 0, f"{told}: the bytes of its files are {each.size}"
    expect(len({each.segment for each in built}), len(built), "the ids of what was built")
    expect(len({each.settings for each in built}), 1, "the settings of parts of one plan")
    others = [_of_sizes(texts), replace(_of_sizes(texts), column="id"), texts.spec, replace(texts.spec, column="title")]
    settings = [json.dumps([each.settings for each in texts.built(1, spec=spec)[1]]) for spec in others]
    expect(
        settings[:1], [json.dumps([built[0].settings])], "the settings of a part that is built by the same spec again"
    )
    expect(
        len(set(settings)),
        len(others),
        "the settings of parts of other columns and kinds, each of which is another one",
    )
    left = _bytes(texts, texts.table.lake.files() - before)
    assert not left or sum(each.size for each in built) <= left, "parts are no larger than the files that they left"


def _bytes(texts: Documents, names: set[str]) -> int:
    return sum(Path(texts.table.lake.location, name).stat().st_size for name in names)


@INDEXED
def test_what_an_index_tells(texts: Documents, harness: Harness) -> None:
    """Its name, its column and kind, its segments and the rows of each, how large it is, and from when: while rounds
    come, as it is appended to, and beside another one."""
    spec, begun = _of_sizes(texts, "z_sizes"), time.time_ns() // 1_000_000
    info = texts.index(2, spec=spec)
    _tells(texts, info, spec, 240, 0, begun)
    other = replace(_of_sizes(texts, "a_ids"), column="id")
    _tells(texts, texts.index(1, spec=other), other, 240, 0, begun)
    texts.append(4, range(1000, 1030))
    for each in texts.indexer.indexes():
        _tells(texts, each, spec if each.name == "z_sizes" else other, 240, 30, begun)
    again = time.time_ns() // 1_000_000
    _tells(texts, texts.index(1, IndexMode.APPEND, spec), spec, 270, 0, again)
    expect([each.name for each in texts.indexer.indexes()], ["a_ids", "z_sizes"], "the indexes, sorted by name")
    if harness.delete_rows is not None:
        texts.deleted(harness, range(0, 240, 4))
        for each in texts.indexer.indexes():
            _tells(texts, each, spec if each.name == "z_sizes" else other, None, None, begun)
            told = f"index {each.name}, of whose rows others deleted 60"
            assert each.rows_deleted in (0, 60), f"{told}: it counts {each.rows_deleted} as deleted"
            had = 270 if each.name == "z_sizes" else 240
            assert each.rows_indexed in (had, had - 60), f"{told}: it has {each.rows_indexed} rows, and had {had}"


def _tells(
    texts: Documents, info: IndexInfo, spec: IndexSpec, covered: int | None, flat: int | None, begun: int
) -> None:
    told = f"index {spec.name} of {spec.column}"
    expect((info.name, info.column, info.kind), (spec.name, spec.column, spec.kind), f"{told}: name, column and kind")
    expect(info.snapshot_id, texts.table.info.snapshot_id, f"{told}: its snapshot, beside the newest")
    expect(info.damage, None, f"{told}: its damage")
    if covered is not None:
        expect(
            (info.rows_indexed, info.rows_not_indexed), (covered, flat), f"{told}: the rows that it has, and has not"
        )
        expect(info.rows_deleted, 0, f"{told}: its deleted rows, of a table of which none was deleted")
    assert len(set(info.segments)) == len(info.segments) > 0, f"{told}: its segments are {info.segments}"
    if info.segment_rows:
        expect(len(info.segment_rows), len(info.segments), f"{told}: of how many segments it tells the rows")
        expect(sum(info.segment_rows), info.rows_indexed, f"{told}: the rows of its segments together")
    if info.bytes is not None:
        assert info.bytes > 0, f"{told}: its bytes are {info.bytes}"
    if info.built_at is not None:
        now = time.time_ns() // 1_000_000
        assert begun - 1000 <= info.built_at <= now + 1000, (
            f"{told}: it was built at {info.built_at}, between {begun} and {now}"
        )


@INDEXED
def test_the_rows_of_each_segment(texts: Documents) -> None:
    """In the order of the segments, whichever was built first."""
    spec = _of_sizes(texts)
    texts.append(4, range(1000, 1007))
    plan, built = texts.built(2, spec=spec)
    rows = {each.segment: each.rows for each in built}
    info = texts.indexer.publish(plan, built[::-1])
    texts.append(5, range(1010, 1013))
    plan, more = texts.built(1, IndexMode.APPEND, spec)
    rows |= {each.segment: each.rows for each in more}
    for told in (info, texts.indexer.publish(plan, more)):
        found = dict(zip(told.segments, told.segment_rows, strict=False))
        expect(found, {each: rows[each] for each in found if each in rows}, "the rows of each segment of an index")


# -- searches -------------------------------------------------------------------------------------------------------


@WORDED
def test_what_a_search_of_words_tells(texts: Documents) -> None:
    """Which indexes it used, and how many rows none of them covers: of two columns, those of the one that covers
    fewer."""
    texts.index(2)
    _explains(texts.searcher.search("kolt").explain, {INDEX: ("doc", 240)}, 240, 0, "a search of words")
    texts.append(4, range(1000, 1030))
    texts.index(2, spec=replace(texts.spec, name="of_title", column="title"))
    texts.append(5, range(1030, 1040))
    title = {"of_title": ("title", 270)}
    for query, used, flat in (
        (Match("kolt", column="title"), title, 10),
        (Match("quux", column="doc"), {INDEX: ("doc", 240)}, 40),
        (MultiMatch("kolt zarn", ("doc", "title")), {INDEX: ("doc", 240), **title}, 40),
        (MultiMatch("kolt zarn", ("title", "doc")), {INDEX: ("doc", 240), **title}, 40),
    ):
        _explains(texts.searcher.search(query).explain, used, 280, flat, f"a search of {query}")


def _explains(explain: SearchExplain, used: dict[str, tuple[str, int]], rows: int, flat: int, told: str) -> None:
    found = {each.name: (each.column, each.rows) for each in explain.indexes}
    expect(found, used, f"{told}: the indexes that it used, their columns and the rows that they cover")
    expect(len(explain.indexes), len(used), f"{told}: how many indexes it used")
    expect((explain.rows, explain.rows_flat), (rows, flat), f"{told}: the rows, and those that no index covers")
    odd = {name: each for name, each in explain.milliseconds.items() if not 0 <= each < 600_000}
    expect(odd, {}, f"{told}: the times that are none")
    expect([each for each in explain.notes if not each.strip()], [], f"{told}: notes that are no sentence")


@VECTORED
def test_what_a_search_of_vectors_tells(lake: Lake, harness: Harness) -> None:
    """One that compares with each row uses no index. One of both uses both."""
    points = Pointed.of(lake, harness)
    texts, kind = points.texts, IndexKind.IVF_FLAT
    _explains(texts.searcher.search(Nearest(ASKED[0])).explain, {}, 150, 150, "a search of vectors without an index")
    try:
        texts.index(2, spec=IndexSpec("of_v", "v", kind, harness.vector_options.get(kind.value, {})))
    except FeatureNotSupported:
        return
    points.append(3, range(1000, 1040))
    texts.index(2)
    points.append(4, range(1040, 1050))
    near, words = {"of_v": ("v", 150)}, {INDEX: ("doc", 190)}
    for query, used, flat in (
        (Nearest(ASKED[0]), near, 50),
        (Nearest(ASKED[0], exact=True), {}, 200),
        (Nearest(ASKED[0], metric="dot"), {}, 200),
        (Hybrid(Match("kolt"), Nearest(ASKED[0])), {**near, **words}, 50),
        (Hybrid(Match("kolt"), Nearest(ASKED[0], exact=True)), words, 200),
    ):
        _explains(texts.searcher.search(query).explain, used, 200, flat, f"a search of {query}")


@WORDED
def test_words_that_an_index_drops(texts: Documents) -> None:
    """Whoever asks for nothing else finds nothing, and is told why. Of a word that no row has, nothing is said."""
    rows = [{"id": i, "doc": f"the {WORDS[i % 3]} of a {WORDS[i % 5]}"} for i in range(2000, 2020)]
    texts.indexer  # noqa: B018 - a format without it refuses here
    texts.table.publish_arrow([pa.RecordBatch.from_pylist(rows, TEXTS)], token(4))
    texts.index(2, spec=replace(texts.spec, options={}))
    for words in ("the", "of the", "the kolt"):
        answer = texts.searcher.search(words, k=1000, columns=["id"])
        if answer.rows.num_rows == 0:
            assert answer.explain.notes, f"{words!r} finds none of the rows that have it, and nobody is told why"
        elif words == "the kolt":
            expect(answer.explain.notes, (), f"the notes to an answer to {words!r}, with rows")
    for query in (
        Boolean(must=(Match("the"), Match("of"))),
        MultiMatch("the of", ("doc",)),
        Boost(Match("the"), Match("of")),
    ):
        with goes_well(f"{query} is asked"):
            answer = texts.searcher.search(query, k=1000, columns=["id"])
        if answer.rows.num_rows == 0:
            assert answer.explain.notes, f"{query} finds none of the rows that have its words, and nobody is told why"
    texts.index(2, IndexMode.REPLACE)
    if texts.options:
        expect(texts.searcher.search("quux").explain.notes, (), "the notes to an answer to a word that no row has")
        found = texts.searcher.search("the", k=1000, columns=["id"]).rows["id"].to_pylist()
        expect(sorted(found), list(range(2000, 2020)), "the rows with a word, in an index that keeps each word")


@pytest.mark.needs(Feature.SEARCH)
def test_the_identity_of_a_snapshot(table: Table) -> None:
    """Each time that it is opened it is the same, and no other snapshot has it, nor one of a table that was made anew:
    a task can tell whether it searches what the driver chose."""
    lake = table.lake
    searcher = lake.storage.searcher(table.info)
    table.append(0)
    first = searcher.at()
    identity = lake.storage.searcher(table.info).at(first.snapshot_id).identity
    expect(identity, first.identity, "the identity of a snapshot that is opened twice")
    expect(first.schema.names, table.info.schema.names, "the columns of an opened snapshot")
    again = searcher.at_again(first.snapshot_id, first.identity)
    expect(again.snapshot_id, first.snapshot_id, "the snapshot that is opened again")
    if not first.identity:
        return  # it is not known: nothing can be told from it
    table.append(1)
    later = lake.storage.searcher(table.info).at()
    assert later.identity != first.identity, "two snapshots of a table have one identity"
    if not lake.declares(Feature.DROP_TABLE):
        return
    lake.storage.catalog().drop_table(table.path)
    made = lake.create()
    made.append(0)
    anew = lake.storage.searcher(made.info)
    newest = anew.at()
    before = (first.identity, later.identity)
    assert newest.identity not in before, "a table that was made anew has the identity of the one before"
    if newest.snapshot_id == first.snapshot_id:
        with refused(SnapshotNotFound, "a snapshot is opened again whose table was dropped and made anew"):
            anew.at_again(first.snapshot_id, first.identity)
