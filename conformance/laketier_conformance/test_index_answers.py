"""Indexes answer: what a query finds through one is what a look at each row finds, whatever happened to the table."""

from __future__ import annotations

import base64
import contextlib
import pickle
import signal
from collections.abc import Callable
from dataclasses import replace

import pytest

from laketier.spi import (
    ConfigError,
    Conflict,
    Feature,
    FeatureNotSupported,
    IndexInfo,
    IndexKind,
    IndexMode,
    IndexSpec,
    Leaf,
    Not,
    Op,
    TableChanged,
    Watermark,
    WriteMode,
    new_attempt_id,
)
from laketier.tiering import RoundOutcome
from laketier_conformance import foreign
from laketier_conformance.children import Child, ChildDied
from laketier_conformance.documents import (
    FILTERED,
    INDEX,
    PHRASES,
    QUERIES,
    Documents,
    documents,
    kind_of_numbers,
    size_of,
)
from laketier_conformance.expect import expect, goes_well, refused, the_one
from laketier_conformance.failpoints import CountedFailpoints
from laketier_conformance.harness import Harness
from laketier_conformance.lake import Lake, token

Unproven = Callable[[str, str], None]
Take = Callable[[int], list[Child]]
INDEXED = pytest.mark.needs(Feature.INDEXING)
WORDED = pytest.mark.needs(Feature.SEARCH, Feature.INDEXING)
SNAPSHOTS = 100
TRIES = 50


@pytest.fixture
def texts(lake: Lake, harness: Harness) -> Documents:
    """A table of 240 rows in four files, without an index. Of a format that builds none, it is empty."""
    texts = Documents.of(lake, harness)
    return texts.filled() if lake.declares(Feature.INDEXING) else texts


def _finds_its_words(texts: Documents, told: str) -> None:
    """Each query: the rows that match, and no other."""
    for kind, queries in QUERIES.items():
        for query in queries if texts.options or kind not in PHRASES else ():
            expect(sorted(texts.found(query)), texts.expected(query), f"{told}: the rows that {query} finds")


def _finds_its_numbers(texts: Documents, told: str) -> None:
    """Each filter: the rows that fulfil it, and no other."""
    for size in (*range(11), 99):
        ids = sorted(texts.table.read(columns=("id",), filters=(Leaf("size", Op.EQ, size),))["id"].to_pylist())
        expect(ids, sorted(i for i in texts.ids if size_of(i) == size), f"{told}: the rows where size = {size}")
    for leaf, keep in (
        (Leaf("size", Op.GE, 7), lambda i: (size_of(i) or 0) >= 7),
        (Leaf("size", Op.IN, (2, 3, 99)), lambda i: size_of(i) in (2, 3)),
        (Leaf("size", Op.IS_NULL), lambda i: size_of(i) is None),
        (Leaf("size", Op.NE, 5), lambda i: size_of(i) not in (None, 5)),
        (Not(Leaf("size", Op.IN, (2, 3, 99))), lambda i: size_of(i) not in (None, 2, 3)),
    ):
        ids = sorted(texts.table.read(columns=("id",), filters=(leaf,))["id"].to_pylist())
        expect(ids, sorted(filter(keep, texts.ids)), f"{told}: the rows where {leaf}")


def _covers(texts: Documents, flat: int, told: str) -> None:
    """All rows but so many are in the index, and each counts once."""
    info = the_one(texts.indexer.indexes(), f"{told}: the indexes of the table")
    expect((info.rows_indexed, info.rows_not_indexed), (len(texts.ids) - flat, flat), f"{told}: rows in it, and not")


@INDEXED
@pytest.mark.parametrize(
    "kind",
    [IndexKind.BTREE, IndexKind.BITMAP, IndexKind.ZONEMAP, IndexKind.BLOOMFILTER],
)
def test_filters_through_an_index(texts: Documents, kind: IndexKind, harness: Harness) -> None:
    """As without it: built in parts, with rows beside it, appended to, compacted, replaced, dropped."""
    spec = IndexSpec(FILTERED, "size", kind)
    indexer = texts.indexer
    try:
        indexer.plan(spec, 1)
    except FeatureNotSupported:
        return  # a format need not build each kind
    texts.index(3, spec=spec)
    _finds_its_numbers(texts, f"a {kind} index in 3 parts")
    texts.append(4, range(1000, 1050))
    _finds_its_numbers(texts, f"a {kind} index, and 50 rows that it does not cover")
    texts.index(1, IndexMode.APPEND, spec)
    _finds_its_numbers(texts, f"a {kind} index that was appended to")
    if harness.delete_rows is not None:
        texts.deleted(harness, [*range(0, 240, 5), 1001, 1002])
        _finds_its_numbers(texts, f"a {kind} index of rows of which others deleted some")
    if harness.compact is not None:
        foreign.compact(texts.table, harness)
        _finds_its_numbers(texts, f"a {kind} index of files that were compacted")
    texts.index(2, IndexMode.REPLACE, spec)
    _finds_its_numbers(texts, f"a {kind} index that was replaced")
    texts.indexer.drop(FILTERED)
    _finds_its_numbers(texts, f"a {kind} index that was dropped")


@WORDED
def test_parts_answer_as_one(texts: Documents) -> None:
    """The same rows with the same scores, however many tasks built it."""
    texts.index(1)
    whole = {query: texts.scored(query) for queries in QUERIES.values() for query in queries if _asks(texts, query)}
    for parts in (2, 3, 4):
        texts.indexer.drop(INDEX)
        info = texts.index(parts)
        expect(info.rows_indexed, len(texts.ids), f"rows in an index of {parts} parts")
        _finds_its_words(texts, f"an index of {parts} parts")
        for query, scores in whole.items():
            found = texts.scored(query)
            told = f"the scores of {query} in an index of {parts} parts, beside those in one of one part"
            expect(found, pytest.approx(scores, rel=1e-5), told)


def _asks(texts: Documents, query: object) -> bool:
    return bool(texts.options) or query not in QUERIES["phrase"]


@WORDED
def test_answers_after_rounds_and_an_append(texts: Documents) -> None:
    """An append keeps what is there, and takes each row once. One with other settings is refused: half of an index
    would cut words otherwise than the other."""
    texts.index(2)
    texts.append(4, range(1000, 1030))
    _covers(texts, 30, "an index after a round of 30 rows")
    _finds_its_words(texts, "an index after a round of 30 rows")
    plan, built = texts.built(2, IndexMode.APPEND)
    expect(sum(part.rows for part in plan.parts), 30, "the rows of the parts of an append")
    texts.indexer.publish(plan, built)
    texts.append(5, range(1030, 1040))
    _covers(texts, 10, "an index that was appended to, after a round of 10 rows")
    _finds_its_words(texts, "an index that was appended to, after a round of 10 rows")
    texts.index(1, IndexMode.APPEND)
    _covers(texts, 0, "an index that was appended to twice")
    expect(texts.indexer.plan(texts.spec, 2, IndexMode.APPEND).parts, (), "the parts of an append of nothing")
    info = the_one(texts.indexer.indexes(), "the indexes of the table")
    for name, value in info.options.items():
        if type(texts.options.get(name)) is not bool:
            continue
        for mode in (IndexMode.APPEND, IndexMode.MERGE):
            told = f"an index of words with {name} = {value} is planned ({mode.value}) with {not value}"
            with refused((ConfigError, FeatureNotSupported), told):
                texts.indexer.plan(replace(texts.spec, options={**texts.options, name: not value}), 1, mode)
    own = replace(texts.spec, options={})
    texts.index(2, IndexMode.REPLACE, own)
    late, replaced = texts.built(2, IndexMode.REPLACE)
    texts.append(6, range(1040, 1050))
    plan, built = texts.built(1, IndexMode.APPEND, own)
    texts.indexer.publish(late, replaced)
    told = "an append to an index that was replaced by one with other settings"
    with goes_well(told):
        try:
            texts.indexer.publish(plan, built)
        except TableChanged:
            again = texts.indexer.replan(plan, built, 1)
            texts.indexer.publish(again, [again.builder.build(part) for part in again.parts])
    _covers(texts, 0, told)
    with goes_well(told):
        _finds_its_words(texts, told)


@WORDED
def test_answers_after_a_merge(texts: Documents) -> None:
    """Fewer segments answer as many did, while rounds go on. A format need not merge."""
    texts.index(4)
    texts.append(4, range(1000, 1030))
    texts.index(1, IndexMode.APPEND)
    before = {query: texts.scored(query) for query in QUERIES["any"]}
    try:
        plan, built = texts.built(1, IndexMode.MERGE)
    except FeatureNotSupported:
        return
    texts.append(5, range(1030, 1040))
    many = texts.indexer.indexes()[0].segments
    info = texts.indexer.publish(plan, built)
    assert len(info.segments) < len(many), f"a merge left {len(info.segments)} of {len(many)} segments"
    _covers(texts, 10, "an index whose segments were merged, after a round of 10 rows")
    _finds_its_words(texts, "an index whose segments were merged")
    new = set(range(1030, 1040))
    for query, scores in before.items():
        found = {row for row in texts.scored(query) if row not in new}
        expect(found, set(scores), f"the rows of before that {query} finds in merged segments")
    expect(texts.indexer.publish(plan, built), info, "what a merge answers that is published again")


@WORDED
def test_answers_after_a_compaction(texts: Documents, harness: Harness, unproven: Unproven) -> None:
    """Rows that moved to other files are found there, or looked at one by one."""
    plan, built = texts.built(2)
    info = texts.indexer.publish(plan, built)
    if harness.compact is None:
        unproven("indexes of compacted tables", "the format's harness has no compact")
        return
    expect(info.rows_indexed, len(texts.ids), "rows in an index")
    texts.append(4, range(1000, 1030))
    foreign.compact(texts.table, harness)
    _finds_its_words(texts, "an index of files that were compacted")
    found = the_one(texts.indexer.indexes(), "the indexes of the table after a compaction")
    expect(found.rows_indexed + found.rows_not_indexed, len(texts.ids), "rows in it and not, after a compaction")
    if found.rows_not_indexed:
        texts.index(2, IndexMode.APPEND)
        _finds_its_words(texts, "an index that was appended to after a compaction")
    with goes_well("a publish is repeated after a compaction", but=(TableChanged,)), contextlib.suppress(TableChanged):
        texts.indexer.publish(plan, built)
    _finds_its_words(texts, "an index whose publish was repeated after a compaction")
    texts.append(5, range(1030, 1040))
    texts.index(3, IndexMode.REPLACE)
    _covers(texts, 0, "an index that was replaced after a compaction")
    _finds_its_words(texts, "an index that was replaced after a compaction")


@WORDED
def test_answers_after_a_drop(texts: Documents) -> None:
    """It does not answer any more, and another one of its name may be made."""
    before = texts.index(2)
    texts.indexer.drop(INDEX)
    expect(texts.indexer.indexes(), [], "the indexes after the only one was dropped")
    with refused(ConfigError, "words are asked of an index that was dropped"):
        texts.found("kolt")
    with refused(ConfigError, "an index is dropped that is not there"):
        texts.indexer.drop(INDEX)
    again = texts.index(3)
    assert not set(before.segments) & set(again.segments), "an index that is made again has segments of its own"
    _finds_its_words(texts, "an index that was dropped and made again")


@WORDED
@pytest.mark.needs(Feature.OVERWRITE)
def test_answers_after_an_overwrite(texts: Documents) -> None:
    """Nothing of the rows that are gone: the index is gone with them, or knows."""
    texts.indexer  # noqa: B018 - a format without it refuses here
    texts.index(2)
    texts.append(4, range(2000, 2030), range(2030, 2050), mode=WriteMode.OVERWRITE)
    if texts.indexer.indexes():
        _finds_its_words(texts, "an index after an overwrite")
        texts.indexer.drop(INDEX)
    texts.index(2)
    _covers(texts, 0, "an index that was made after an overwrite")
    _finds_its_words(texts, "an index that was made after an overwrite")


@WORDED
@pytest.mark.parametrize("at_once", [False, True], ids=["in-turn", "at-once"])
def test_a_task_that_runs_twice(texts: Documents, at_once: bool) -> None:
    """Each run leaves files of its own, and its rows count once."""
    plan, built = texts.built(2, at_once=at_once)
    first, again = built, built if at_once else [plan.builder.build(part) for part in plan.parts]
    if not at_once:
        same = {each.segment for each in first} & {each.segment for each in again}
        assert not same, f"two runs of a task have a segment in common: {sorted(same)}"
    info = texts.indexer.publish(plan, again)
    expect(set(info.segments) <= {each.segment for each in again}, True, "the segments published are those given")
    _covers(texts, 0, "an index whose tasks ran twice")
    _finds_its_words(texts, "an index whose tasks ran twice")


@WORDED
def test_a_publish_that_is_repeated(texts: Documents) -> None:
    """Its answer was lost. Nothing is there twice, and rounds since are kept."""
    plan, built = texts.built(2)
    first = texts.indexer.publish(plan, built)
    expect(texts.indexer.publish(plan, list(reversed(built))), first, "what a publish answers that is repeated")
    texts.append(4, range(1000, 1030))
    again = texts.indexer.publish(plan, built)
    expect(_told(again), (*_told(first)[:-1], 30), "what a publish answers that is repeated after a round")
    more = texts.built(1, IndexMode.APPEND)
    appended = texts.indexer.publish(*more)
    expect(_told(texts.indexer.publish(*more)), _told(appended), "what an append answers that is published again")
    _covers(texts, 0, "an index whose publishes were repeated")
    _finds_its_words(texts, "an index whose publishes were repeated")


def _told(info: IndexInfo) -> tuple[str, tuple[str, ...], int, int]:
    return info.name, info.segments, info.rows_indexed, info.rows_not_indexed


@WORDED
@pytest.mark.needs(Feature.TIME_TRAVEL, Feature.HISTORY)
def test_no_snapshot_has_half_an_index(texts: Documents) -> None:
    """Each since the plan has none of it or all: also while it takes another's place."""
    plan, built = texts.built(3)
    texts.indexer.publish(plan, built)
    texts.index(3, IndexMode.REPLACE)
    oldest_first = [each.snapshot_id for each in reversed(texts.table.history.snapshots(SNAPSHOTS))]
    seen: list[int] = []
    for snapshot_id in oldest_first[oldest_first.index(plan.snapshot_id) :]:
        told = f"snapshot {snapshot_id}, since the plan at {plan.snapshot_id}"
        answer = None
        with contextlib.suppress(ConfigError):  # it has no index
            answer = texts.searcher.search("kolt", k=1000, snapshot_id=snapshot_id)
        if answer is None:
            assert not seen, f"{told}: an index is not there that snapshot {seen[-1]} had"
            continue
        seen.append(snapshot_id)
        expect(answer.explain.rows_flat, 0, f"{told}: the rows that are in no index")
        expect(sorted(answer.rows["id"].to_pylist()), texts.expected("kolt"), f"{told}: the rows that 'kolt' finds")
    assert len(seen) > 1, f"an index and its replacement are in snapshots of their own: found {seen}"


@WORDED
def test_a_publish_that_is_killed(texts: Documents, children: Take, failpoints: CountedFailpoints) -> None:
    """At each step that the format names. Whoever asks again finds it, or publishes it."""
    failpoints.record()
    texts.index(2)
    steps = failpoints.own
    failpoints.forget()
    failpoints.switch_on("")
    for step in steps:
        plan, built = texts.built(2, IndexMode.REPLACE)
        (child,) = children(1)
        sent = base64.b64encode(pickle.dumps((plan, built))).decode()
        with refused(ChildDied, f"a publish that is to be killed at {step}") as death:
            child.ask(texts.table.lake, "publish_index", table="db.t", sent=sent, failpoints=f"{step}=kill")
        expect(death.value.code, -signal.SIGKILL, f"the signal that ended a publish at {step}")
        _covers(texts, 0, f"after a publish was killed at {step}")
        _finds_its_words(texts, f"after a publish was killed at {step}")
        told = f"a publish that was killed at {step}, and asked for again"
        with goes_well(f"{told}: whoever asks again finds it, or publishes it"):
            info = texts.indexer.publish(plan, built)
        expect(sorted(info.segments), sorted(each.segment for each in built), f"{told}: its segments")
        _covers(texts, 0, told)
        _finds_its_words(texts, told)


@WORDED
@pytest.mark.parametrize("meanwhile", ["compacted", "overwritten", "dropped", "deleted"])
def test_a_plan_that_is_stale(texts: Documents, meanwhile: str, harness: Harness, unproven: Unproven) -> None:
    """Of what was built either nothing is published, or it answers right."""
    plan, built = texts.built(2)
    hook = {"compacted": "compact", "deleted": "delete_rows"}.get(meanwhile, "")
    feature = {"overwritten": Feature.OVERWRITE, "dropped": Feature.DROP_TABLE}.get(meanwhile, Feature.INDEXING)
    if (hook and getattr(harness, hook) is None) or not texts.table.lake.declares(feature):
        unproven(f"indexes of tables that are {meanwhile} meanwhile", f"the format has no {hook or feature.value}")
        return
    if meanwhile == "compacted":
        foreign.compact(texts.table, harness)
    elif meanwhile == "deleted":
        texts.deleted(harness, range(0, 240, 3))
    elif meanwhile == "overwritten":
        texts.append(4, range(2000, 2240), mode=WriteMode.OVERWRITE)
    else:
        texts.table.lake.storage.catalog().drop_table(texts.table.path)
        texts = Documents.of(texts.table.lake, harness)
        texts.append(0, range(2000, 2240))
    try:
        texts.indexer.publish(plan, built)
    except TableChanged:
        expect(texts.indexer.indexes(), [], f"indexes after a publish that was refused: the rows were {meanwhile}")
        texts.index(2)
    else:
        assert meanwhile == "deleted" or meanwhile == "compacted", (
            f"an index was published that knows no row of the table: they were {meanwhile} since its plan"
        )
    _finds_its_words(texts, f"an index, after the rows were {meanwhile} during its build")


@WORDED
@pytest.mark.parametrize("meanwhile", ["compacted", "deleted", "overwritten"])
@pytest.mark.parametrize("mode", [IndexMode.CREATE, IndexMode.APPEND])
def test_a_plan_that_is_made_again(
    texts: Documents, mode: IndexMode, meanwhile: str, harness: Harness, unproven: Unproven
) -> None:
    """Whose parts are refused, as their rows are others by now, plans again: each row is in the index, and once. Where
    a file alone went with all its rows, a plan may keep the parts of the others, and rows that came are in it, too."""
    texts.indexer  # noqa: B018 - a format without it refuses here
    hook = {"compacted": "compact", "deleted": "delete_rows"}.get(meanwhile)
    if (hook and getattr(harness, hook) is None) or (
        meanwhile == "overwritten" and not texts.table.lake.declares(Feature.OVERWRITE)
    ):
        unproven(f"plans that are made again as rows are {meanwhile}", "the format has no hook or no feature for it")
        return
    if mode is IndexMode.APPEND:
        texts.index(2)
    texts.append(4, range(1000, 1030), range(1030, 1060))
    plan, built = texts.built(2, mode)
    came = 0
    if meanwhile == "compacted":
        foreign.compact(texts.table, harness)
    elif meanwhile == "deleted":
        texts.deleted(harness, range(1030, 1060))
        texts.append(5, range(2000, 2020), range(2020, 2040))
        came = 40
    else:
        texts.append(5, range(2000, 2120), range(2120, 2240), mode=WriteMode.OVERWRITE)
    told = f"an index whose plan ({mode.value}) was made again as rows were {meanwhile}"
    try:
        texts.indexer.publish(plan, built)
    except TableChanged:
        came = 0
        try:
            with goes_well(told, but=(ConfigError,)):
                again = texts.indexer.replan(plan, built, 2)
        except ConfigError:  # of an index that went with its rows
            assert mode is IndexMode.APPEND, f"{told}: the plan was refused"
            return
        expect(again.snapshot_id, texts.table.info.snapshot_id, f"{told}: the snapshot that it is of")
        builder = again.builder.train() if again.builder.needs_training else again.builder
        with goes_well(told):
            texts.indexer.publish(again, [builder.build(part) for part in again.parts])
    _covers(texts, came, told)
    _finds_its_words(texts, told)


@WORDED
def test_rounds_beside_builds(texts: Documents, children: Take) -> None:
    """No epoch is lost, and the index covers what was there when it was planned, or more."""
    expect(texts.indexer.indexes(), [], "the indexes of a new table")
    (child,) = children(1)
    rounds = [list(range(1000 + 20 * epoch, 1020 + 20 * epoch)) for epoch in range(8)]
    child.begin(texts.table.lake, "documents", table="db.t", pipeline="other", epochs=rounds)
    child.answer()
    child.go()
    builds = 0
    while builds < TRIES and (builds < 3 or not child.answers_within(0)):
        try:
            texts.index(3, IndexMode.REPLACE)
        except (Conflict, TableChanged):
            continue
        finally:
            builds += 1
    answer = child.answer()
    expect(answer, {"outcomes": ["PUBLISHED"] * len(rounds)}, f"the rounds of a process beside {builds} builds")
    texts.ids.extend(i for ids in rounds for i in ids)
    expect(sorted(texts.order), sorted(texts.ids), "the rows of rounds beside builds of an index")
    texts.index(2, IndexMode.REPLACE)
    _covers(texts, 0, "an index that was built after rounds beside it")
    _finds_its_words(texts, "an index that was built after rounds beside it")


@INDEXED
def test_watermarks_stay_as_they_are(texts: Documents) -> None:
    """An index is no round: nothing that a pipeline stored is touched, and a replay knows."""
    spec = replace(texts.spec, name=FILTERED, column="size", kind=kind_of_numbers(texts.indexer, "size"), options={})
    epoch = 4 if texts.ids else 0
    texts.append(epoch, range(500, 505))
    before = texts.table.watermark()
    for what, do in (
        ("was built", lambda: texts.index(2, spec=spec)),
        ("was replaced", lambda: texts.index(2, IndexMode.REPLACE, spec)),
        ("was dropped", lambda: texts.indexer.drop(FILTERED)),
    ):
        do()
        with goes_well(f"the watermark is read after an index {what}"):
            found = texts.table.watermark()
        expect(found, before, f"the watermark after an index {what}")
        replay = texts.append(epoch, range(500, 505))
        expect(replay, RoundOutcome.ALREADY_THERE, f"an epoch that is replayed after an index {what}")
    expect(sorted(texts.order), sorted(texts.ids), "the rows after an index was built, replaced and dropped")
    _comes_within_a_round(texts, epoch + 1, spec)


def _comes_within_a_round(texts: Documents, epoch: int, spec: IndexSpec) -> None:
    """The round lands, or its driver looks once more. So it lands behind a commit of which it could not know."""
    told, commit_id, ids = "an index was published between the look of a round and its commit", new_attempt_id(), [600]
    plan, built = texts.built(2, spec=spec)
    committer = texts.table.committer(commit_id=commit_id)
    state, staged = committer.open(), texts.table.stage_arrow([documents(ids)])
    texts.indexer.publish(plan, built)
    with goes_well(f"{told}: the round", but=(Conflict,)), contextlib.suppress(Conflict):
        committer.publish(state, [staged], Watermark(token(epoch), commit_id))
        texts.ids.extend(ids)
    committer.close()
    for each in (epoch, epoch + 1):
        is_there = each == epoch and ids[0] in texts.ids
        with goes_well(f"{told}, and epoch {each} is run"):
            outcome = texts.append(each, [ids[0] + each - epoch])
        expected = RoundOutcome.ALREADY_THERE if is_there else RoundOutcome.PUBLISHED
        expect(outcome, expected, f"{told}: the outcome of epoch {each}, run after that")
    expect(sorted(texts.order), sorted(texts.ids), f"{told}: the rows after two rounds since")
