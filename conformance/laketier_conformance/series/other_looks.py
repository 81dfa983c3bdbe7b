"""What a table tells of its past: snapshots, changes, watermarks, orphans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta

import pyarrow as pa

from laketier.maintenance.orphans import list_orphans
from laketier.spi import (
    CHANGE_TYPE,
    COLLECTOR,
    Feature,
    OffsetsExpired,
    RowsChanged,
    SnapshotNotFound,
    UnknownOutcome,
    new_attempt_id,
)
from laketier_conformance.expect import expect, refused
from laketier_conformance.lake import read_plan
from laketier_conformance.series.life import Life
from laketier_conformance.series.looks import ROWS, Look
from laketier_conformance.series.model import compare, compare_columns, compare_texts, in_order, values_of
from laketier_conformance.series.notes import APPENDED, CHANGED, REPLACED, UNSURE, Draw, Then

_ALL = 1 << 20
_KEPT = 4
"""The newest snapshots, which no format ends by itself: `test_history.py` asks for as many."""
_SOME = 4


def _is_as_it_was(life: Life, then: Then, listed: set[int] | None) -> None:
    told = f"snapshot {then.snapshot}, as it was after step {then.after}"
    try:
        found = life.read(life.source, snapshot_id=then.snapshot)
    except SnapshotNotFound:
        young = any(then is each for each in life.past[-_KEPT:])
        assert then.ended or not (young or (listed and then.snapshot in listed)), (
            f"{told}: expected its rows, as nobody ended it, found SnapshotNotFound"
        )
        return
    _are_rows_of(found, then, told)


def _are_rows_of(found: pa.Table, then: Then, told: str) -> None:
    state = then.as_read(found.schema)
    compare_columns(found.schema, state.schema, f"the columns of {told}")
    compare(values_of(found), state.values(state.rows), told)


def _snapshots(life: Life, draw: Draw) -> None:
    listed = None
    if life.lake.declares(Feature.HISTORY):
        listed = {line.snapshot_id for line in life.table.history.snapshots(_ALL)}
    known = {then.snapshot: then for then in life.past}
    for snapshot in draw.some(known, _SOME):
        _is_as_it_was(life, known[snapshot], listed)


def _moments(life: Life, draw: Draw) -> None:
    """Those that the history tells, where only one snapshot is of a moment."""
    source, lines = life.source, life.table.history.snapshots(_ALL)
    times = Counter(line.committed_at for line in lines)
    known = {then.snapshot: then for then in life.past}
    at = {
        line.snapshot_id: line.committed_at
        for line in lines
        if line.snapshot_id in known and line.committed_at is not None and times[line.committed_at] == 1
    }
    for snapshot in draw.some(at, _SOME):
        then = known[snapshot]
        found = life.read(source, as_of=at[snapshot])
        told = f"the moment of snapshot {snapshot}, which came with step {then.after}"
        _are_rows_of(found, then, told)


def _history(life: Life, _: Draw) -> None:
    history = life.table.history
    lines = history.snapshots(_ALL)
    listed = [line.snapshot_id for line in lines]
    expect(len(set(listed)), len(listed), "the snapshots that the history lists, each once")
    made = [then.snapshot for then in life.past]
    known = [snapshot for snapshot in listed if snapshot in made]
    expect(known, [each for each in made[::-1] if each in known], "the snapshots of the history, the newest first")
    expect(listed[:1], made[-1:], "the newest snapshot of the history")
    if life.lake.declares(Feature.TIME_TRAVEL):
        for then in life.past[-_KEPT:]:
            assert then.ended or then.snapshot in listed, (
                f"the history: expected snapshot {then.snapshot}, which came with step {then.after}, found {listed}"
            )
    expect([line.snapshot_id for line in history.snapshots(2)], listed[:2], "the two newest of the history")
    by = {then.snapshot: then.by for then in life.past}
    for line in lines:
        found = by.get(line.snapshot_id)
        if found is not None:
            told = (line.rows, line.pipeline, line.epoch)
            same = all(one in (None, other) for one, other in zip(told, found, strict=True))
            assert same, (
                f"rows, pipeline and epoch of snapshot {line.snapshot_id} in a history: expected {found}, found {told}"
            )


def _changes(life: Life, draw: Draw) -> None:
    """Of some ranges: what was appended, or that rows were changed, or that it has expired."""
    storage, info = life.opened()
    changes, source = storage.changes(info), storage.source(info)
    bounds = changes.versions()
    expect(bounds.latest, life.latest, "the version after the newest commit")
    for _ in range(_SOME):
        log = life.log
        first = draw.dice.randrange(len(log))
        last = min(len(log) - 1, first + draw.dice.choice([0, 0, 1, 3, len(log)]))
        start, end, kinds = log[first].start, log[last].end, {each.kind for each in log[first : last + 1]}
        told = f"the changes of versions {start} to {end}"
        if start < bounds.earliest:
            assert any(then.ended for then in life.past), (
                f"{told}: expected them, as nobody ended a snapshot, found that {bounds.earliest} is the earliest"
            )
            if start < end:
                with refused(OffsetsExpired, f"{told} are planned, and {bounds.earliest} is the earliest"):
                    changes.plan(start, end)
            continue
        skips = bool(kinds & {REPLACED})
        if UNSURE in kinds or kinds >= {CHANGED, REPLACED}:
            continue
        if kinds & {CHANGED, REPLACED}:
            with refused(RowsChanged, f"{told} are planned, of which one {'replaced' if skips else 'deleted'} rows"):
                changes.plan(start, end)
            if CHANGED in kinds:
                continue
        rows = [row for each in log[first : last + 1] if each.kind == APPENDED for row in each.rows]
        plan = changes.plan(start, end, skip_changes=skips)
        compare_columns(plan.schema, life.now.schema, f"the columns of {told}")
        compare(values_of(read_plan(source, plan)), life.now.values(rows), told)


def _feed(life: Life, draw: Draw) -> None:
    """The rows of one moment, and what the feed tells since, are those of another moment."""
    if not life.feeds:
        return
    storage, info = life.opened()
    feed, source = storage.feed(info), storage.source(info)
    bounds = storage.changes(info).versions()
    for _ in range(2):
        first = draw.dice.randrange(len(life.log))
        last = min(len(life.log) - 1, first + draw.dice.choice([1, 2, len(life.log)]))
        start, end = life.log[first].end, life.log[last].end
        before, after = life.log[first].after, life.log[last].after
        if start < max(bounds.earliest, life.begun):
            continue
        told = f"the feed of versions {start} to {end}"
        rows = Counter(map(repr, life.now.values(before.rows)))
        plan = feed.plan(start, end)
        expect(plan.schema.names, [*life.now.schema.names, CHANGE_TYPE], f"the columns of {told}")
        for *values, kind in values_of(read_plan(source, plan)):
            row = repr(tuple(values))
            rows[row] += -1 if kind == "-D" else 1
            assert rows[row] >= 0, f"{told}: {row} is said to have gone, and was not there"
        expected = in_order(life.now.values(after.rows))
        compare_texts(sorted((+rows).elements()), expected, f"the rows before and {told}, taken together")


def _marks(life: Life, _: Draw) -> None:
    committer = life.table.committer()
    states = {"open": committer.open(), "LakeStorage.state": life.through.storage.state(life.table.info)}
    for which, state in states.items():
        for pipeline in ("p", "q", "nobody"):
            mark, expected = state.watermark(pipeline), life.marks.get(pipeline)
            found = None if mark is None else (mark.token, mark.commit_id, mark.rows)
            expect(found, expected, f"the watermark of {pipeline} by {which}")
        listed = state.pipelines()
        assert listed is None or sorted({*listed} - {COLLECTOR}) == sorted(life.marks), (
            f"the pipelines by {which}: expected {sorted(life.marks)}, found {sorted(listed or ())}"
        )
    state = states["open"]
    for each in life.commits:
        with suppress(UnknownOutcome):
            expect(state.landed(each.commit), each.there, f"whether the commit of step {each.after} landed")
    with suppress(UnknownOutcome):
        expect(state.landed(new_attempt_id()), False, "whether a commit landed that never was")
    committer.close()


def _orphans(life: Life, _: Draw) -> None:
    """What a round left that ended before its commit, until it is collected."""
    life.lake.let_age()
    storage, info = life.opened()
    listed = {file.path for file in list_orphans(storage, info, grace=timedelta(0)).orphans}
    lacking = sorted(life.abandoned - listed)
    assert not lacking, f"the orphans: expected those of rounds that ended before their commit, found none of {lacking}"


def _description(life: Life, _: Draw) -> None:
    info = life.table.info
    compare_columns(info.schema, life.now.schema, "the columns that the catalog tells")
    expect(info.descriptor.primary_key, ("id",) if life.shape.keyed else (), "the primary key that the catalog tells")
    for name, value in life.properties.items():
        expect(info.descriptor.properties.get(name), value, f"the property {name}")
    there = life.through.storage.catalog().list_tables()
    assert life.table.path in there, f"the tables that the catalog lists: expected {life.table.path}, found {there}"


PAST: Sequence[Look] = (
    Look("snapshots", _snapshots, (Feature.TIME_TRAVEL,), of_past=True),
    Look("moments", _moments, (Feature.TIME_TRAVEL_BY_TIMESTAMP, Feature.HISTORY), of_past=True),
    Look("history", _history, (Feature.HISTORY,), of_past=True),
    Look("changes", _changes, (Feature.INCREMENTAL_READ,), of_past=True),
    Look("feed", _feed, (Feature.CHANGE_FEED,), of_past=True),
    Look("marks", _marks),
    Look("orphans", _orphans, (Feature.ORPHAN_COLLECTION,)),
    Look("description", _description),
)
LOOKS: Sequence[Look] = (*ROWS, *PAST)
