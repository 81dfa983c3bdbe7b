"""Tables that other tools expire, compact and delete from: what is read of them is whole, or refused."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from datetime import timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from laketier.maintenance.orphans import collect_orphans
from laketier.spi import (
    CommitError,
    Conflict,
    Feature,
    Leaf,
    OffsetsExpired,
    Op,
    Refused,
    RowsChanged,
    ScanRequest,
    SnapshotNotFound,
    UnknownOutcome,
    Watermark,
    WriteMode,
    new_attempt_id,
)
from laketier.tiering import RoundOutcome, TieringRound
from laketier_conformance import apart, foreign
from laketier_conformance.expect import expect, goes_well, refused, told
from laketier_conformance.harness import Harness
from laketier_conformance.keyed import UPSERT, Keyed
from laketier_conformance.lake import QUICK, Lake, Table, ids_of, read_plan, read_split, tick, token
from laketier_conformance.seen import ids_at

Unproven = Callable[[str, str], None]
EPOCHS = 4
LONG = 140_000
"""Rows that no reader here reads in one batch."""


def _marked(table: Table, epochs: int = EPOCHS) -> list[int]:
    """The version before each of some epochs, and the one after them."""
    marks = [table.latest]
    for epoch in range(epochs):
        table.append(epoch, ids_of(epoch, 0), ids_of(epoch, 1))
        marks.append(table.latest)
    return marks


def _rows_of(first: int, last: int) -> list[int]:
    return [i for epoch in range(first, last) for split in (0, 1) for i in ids_of(epoch, split)]


def _appended(table: Table, start: int, end: int) -> list[int]:
    try:
        plan = table.changes.plan(start, end)
    except (RowsChanged, OffsetsExpired) as error:
        pytest.fail(
            f"versions {start} to {end}, whose commits appended or moved rows, are planned: found {told(error)}"
        )
    return sorted(read_plan(table.source, plan)["id"].to_pylist())


def _whole_or_refused(table: Table, marks: list[int]) -> None:
    """Each range: its rows, or `OffsetsExpired` where it begins before what can be read."""
    earliest = table.changes.versions().earliest
    for (first, start), (last, end) in itertools.combinations(enumerate(marks), 2):
        if start >= earliest:
            expect(_appended(table, start, end), _rows_of(first, last), f"versions {start} to {end} are read")
            continue
        for skipping in (False, True):
            doing = f"versions {start} to {end} are planned, of which those before {earliest} have expired"
            with refused(OffsetsExpired, doing):
                table.changes.plan(start, end, skip_changes=skipping)


def _older_or_refused(table: Table, marks: list[int]) -> None:
    """What the table was at each version: its rows then, or `SnapshotNotFound`. None would say that it was empty, and
    who copies it would begin without what it had."""
    if not table.lake.declares(Feature.TIME_TRAVEL):
        return
    changes = table.changes
    for epochs, end in enumerate(marks[1:], start=1):
        with contextlib.suppress(SnapshotNotFound):
            expect(
                ids_at(table, changes, end - 1),
                _rows_of(0, epochs),
                f"rows of the snapshot of the version after {epochs} epochs, where old ones expired",
            )


@pytest.mark.needs(Feature.INCREMENTAL_READ)
def test_an_expired_range_is_refused(table: Table, harness: Harness, unproven: Unproven) -> None:
    """To return what is left of it would lose rows, and nobody would see it. Nor are files orphans whose commits
    expired. A process that read the log before goes on with what is left, although it saw no more than what is gone."""
    marks = _marked(table)
    if harness.expire is None:
        unproven("reads of expired versions", "the format's harness has no expire")
        return
    expect(_appended(table, marks[0], marks[1]), _rows_of(0, 1), "the first version is read")
    for epoch in (EPOCHS, EPOCHS + 1):
        table.append(epoch, ids_of(epoch, 0), ids_of(epoch, 1))
        marks.append(table.latest)
    whole = _rows_of(0, EPOCHS + 2)
    foreign.expire(table, harness, marks[0])
    _whole_or_refused(table, marks)
    _older_or_refused(table, marks)
    expect(table.ids, whole, "the table is read after its old versions expired")
    latest = table.latest
    more = ids_of(EPOCHS + 2)
    table.append(EPOCHS + 2, more)
    found = _appended(table, latest, table.latest)
    expect(found, more, "the version after those that expired is read")
    if table.lake.declares(Feature.ORPHAN_COLLECTION):
        foreign.collect(table)
        expect(table.ids, [*whole, *more], "rows after old versions expired and then orphans were collected")
    # Of a short history only what was first is gone.
    short = _marked(table.lake.create(name="db.short"), 2)
    foreign.expire(table.lake.table("db.short"), harness, short[0])
    _whole_or_refused(table.lake.table("db.short"), short)
    _older_or_refused(table.lake.table("db.short"), short)


@pytest.mark.needs(Feature.TIME_TRAVEL_BY_TIMESTAMP, Feature.INCREMENTAL_READ)
def test_an_expired_moment_is_refused(table: Table, harness: Harness, unproven: Unproven) -> None:
    """To read the oldest snapshot that is left would show rows that came later."""
    start, moments = table.latest, []
    for epoch in range(EPOCHS):
        table.append(epoch)
        moments.append(tick())
    whole = sorted(i for epoch in range(EPOCHS) for i in ids_of(epoch))
    expect(sorted(table.read(as_of=moments[-1])["id"].to_pylist()), whole, "the moment after all epochs is read")
    if harness.expire is None:
        unproven("reads of expired moments", "the format's harness has no expire")
        return
    foreign.expire(table, harness, start)
    for epoch, moment in enumerate(moments):
        expected = [i for before in range(epoch + 1) for i in ids_of(before)]
        with contextlib.suppress(SnapshotNotFound):
            found = sorted(table.read(as_of=moment)["id"].to_pylist())
            expect(
                found, expected, f"the moment after epoch {epoch} is read when old snapshots expired, and not refused"
            )
    expect(
        sorted(table.read(as_of=tick())["id"].to_pylist()),
        whole,
        "the present moment is read after old snapshots expired",
    )


def test_a_commit_that_expired_is_not_called_lost(table: Table, harness: Harness, unproven: Unproven) -> None:
    """A driver asks what became of its commit, and the version that would tell is gone. That is no proof that it never
    landed: who believes so writes its rows again."""
    commit, start = new_attempt_id(), _latest(table)
    committer = table.committer(commit_id=commit)
    committer.publish(committer.open(), [table.staged(ids_of(EPOCHS))], None)
    for epoch in range(EPOCHS):
        table.append(epoch)
    if harness.expire is None:
        committer.close()
        unproven("commits whose versions expired", "the format's harness has no expire")
        return
    if start is None:
        harness.expire(table.lake.storage, table.info)
    else:
        foreign.expire(table, harness, start)
    other = table.committer()
    for driver, whose in ((committer, "its own driver"), (other, "another driver")):
        with contextlib.suppress(UnknownOutcome):
            assert driver.open().landed(commit), (
                f"a commit is looked for by its id by {whose} after its version expired: expected that it landed, or "
                "UnknownOutcome, found that it did not. Who believes that publishes its rows again"
            )
        driver.close()


def test_rounds_go_on_after_others_expired_snapshots(table: Table, harness: Harness, unproven: Unproven) -> None:
    """Whatever their snapshots had is gone with what collects orphans. A pipeline whose own snapshot expired knows its
    epochs, and a stream goes on by the factory that it began with."""
    table.append(0, pipeline="early")
    factory = table.factory
    for epoch in range(EPOCHS):
        table.append(epoch, ids_of(epoch + 1))
    if table.lake.declares(Feature.OVERWRITE):
        table.round(None, [ids_of(EPOCHS + 1)], WriteMode.OVERWRITE)
    rows = table.ids
    if harness.expire is None:
        unproven("rounds after others expired snapshots", "the format's harness has no expire")
        return
    harness.expire(table.lake.storage, table.info)
    if table.lake.declares(Feature.ORPHAN_COLLECTION):
        table.lake.let_age()
        collect_orphans(table.lake.storage, table.info, grace=timedelta(0))
    told = "after others expired all snapshots but the newest, and orphans were collected"
    for epoch, outcome in (
        (0, RoundOutcome.ALREADY_THERE),
        (1, RoundOutcome.PUBLISHED),
        (1, RoundOutcome.ALREADY_THERE),
    ):
        doing = f"epoch {epoch} of a pipeline whose snapshot is gone is run {told}, by a factory of before"
        tiering = TieringRound(factory, token=token(epoch, "early"), policy=QUICK)
        with goes_well(doing):
            tiering.begin()
            attempt = new_attempt_id(tiering.attempts_after)
            found = tiering.commit_messages([table.stage(ids_of(9), factory=factory, attempt=attempt)])
        expect(found.outcome, outcome, doing)
    expect(table.ids, sorted([*rows, *ids_of(9)]), f"rows of a round {told}")
    expect(table.append(EPOCHS - 1).outcome, RoundOutcome.ALREADY_THERE, f"the newest epoch of others is run {told}")


def test_a_pipeline_that_others_erased_is_not_a_new_one(table: Table, harness: Harness, unproven: Unproven) -> None:
    """Who reads a log asks the table alone where to go on, and begins with the first epoch where it says nothing: all
    rows would be there twice."""
    for epoch in range(2):
        table.append(epoch)
    table.append(0, ids_of(9), pipeline="other")
    rows = table.ids
    if harness.erase is None:
        unproven("pipelines that others take out of a table", "the format's harness has no erase")
        return
    harness.erase(table.lake.storage, table.info)
    expect(table.ids, rows, "rows after the harness's erase, which keeps them all")
    _run_again(table, "another tool erased what the table kept of it")
    expect(table.ids, rows, "rows after first epochs of pipelines that another tool erased")
    if harness.expire is not None:
        harness.expire(table.lake.storage, table.info)
        _run_again(table, "another tool erased what the table kept of it, and expired what told of it")
        expect(
            table.ids, rows, "rows after first epochs of pipelines that another tool erased, and all that told of them"
        )


def _run_again(table: Table, after: str) -> None:
    """The first epochs of pipelines that have published more."""
    for pipeline in ("p", "other"):
        try:
            found = table.append(0, ids_of(8), pipeline=pipeline).outcome
        except Refused:
            continue
        expect(found, RoundOutcome.ALREADY_THERE, f"the first epoch of pipeline {pipeline!r} is run after {after}")


def _latest(table: Table) -> int | None:
    """The version after the newest; None of a format that does not tell."""
    return table.latest if table.lake.declares(Feature.INCREMENTAL_READ) else None


@pytest.mark.needs(Feature.INCREMENTAL_READ)
def test_a_compaction_appends_nothing(table: Table, harness: Harness, unproven: Unproven) -> None:
    """Neither rows again, nor none at all: those of before and after it are there once."""
    marks = _marked(table)
    if harness.compact is None:
        unproven("reads of compacted versions", "the format's harness has no compact")
        return
    foreign.compact(table, harness)
    compacted = table.latest
    assert compacted > marks[-1], f"a compaction is a commit, and the version after it is still {compacted}"
    expect(_appended(table, marks[-1], compacted), [], "the versions of a compaction are read")
    expect(table.append(EPOCHS - 1).outcome, RoundOutcome.ALREADY_THERE, "an epoch is replayed after a compaction")
    table.append(EPOCHS, *(ids_of(EPOCHS, split) for split in (0, 1)))
    ends = [*marks, table.latest]
    for (first, start), (last, end) in itertools.combinations(enumerate(ends), 2):
        expect(
            _appended(table, start, end), _rows_of(first, last), f"versions {start} to {end} are read, compacted since"
        )
    if harness.expire is not None:
        foreign.expire(table, harness, marks[0])
        _whole_or_refused(table, ends)
        _older_or_refused(table, ends)
    expect(table.ids, _rows_of(0, EPOCHS + 1), "a compacted table is read")


def test_rows_that_others_deleted_are_gone(table: Table, harness: Harness, unproven: Unproven) -> None:
    """From scans, counts and limits; rounds go on, and none brings them back."""
    table.append(0, ids_of(0, 0), ids_of(0, 1))
    if harness.delete_rows is None:
        unproven("rows that others delete", "the format's harness has no delete_rows")
        return
    before = table.info.snapshot_id
    whole = ids_of(0, 0) + ids_of(0, 1)
    gone = [whole[0], whole[5], whole[7]]  # the first of each file, too: a limit must not count it
    harness.delete_rows(table.lake.storage, table.info, gone)
    left = [i for i in whole if i not in gone]
    expect(table.ids, left, "a table is read from which others deleted rows")
    source = table.source
    plan = source.plan(ScanRequest(columns=()))
    for split in plan.splits:
        count = sum(rows.num_rows for rows in read_split(source, split, plan.schema))
        assert split.rows in (None, count), f"a split has {count} rows, and tells {split.rows}: others deleted some"
    for limit in (1, 2, len(left)):
        rows = table.read(limit=limit).num_rows
        expect(rows, limit, f"rows of a scan with a limit of {limit}, of {len(left)} that are left")
    if table.lake.declares(Feature.TIME_TRAVEL):
        found = sorted(table.read(snapshot_id=before)["id"].to_pylist())
        expect(found, whole, "the snapshot of before others deleted rows is read")
    expect(table.append(0).outcome, RoundOutcome.ALREADY_THERE, "an epoch is replayed after others deleted rows of it")
    table.append(1)
    expect(table.ids, left + ids_of(1), "an epoch is appended after others deleted rows")
    if table.lake.declares(Feature.INCREMENTAL_READ):
        with refused(RowsChanged, "a range is planned in which others deleted rows"):
            table.changes.plan(table.changes.versions().earliest, table.latest)


def test_rows_that_others_deleted_from_a_long_file(table: Table, harness: Harness, unproven: Unproven) -> None:
    """Their places are told from the beginning of the file, and readers read it in parts: past 131,072 rows in one of
    them, and rows that are filtered out count as well."""
    if harness.delete_rows is None:
        unproven("rows that others delete", "the format's harness has no delete_rows")
        return
    table.append(0, range(LONG))
    gone = [0, 5, *range(LONG // 2, LONG // 2 + 3), LONG - 1]
    harness.delete_rows(table.lake.storage, table.info, gone)
    left = sorted(set(range(LONG)) - set(gone))
    expect(table.ids, left, f"a file of {LONG} rows is read from which others deleted rows in several places")
    late = Leaf("id", Op.GE, LONG - 4)
    found = sorted(table.read(columns=("id",), filters=(late,))["id"].to_pylist())
    expect(found, left[-3:], "the last rows of such a file are asked for by a filter")


def test_rows_that_others_deleted_stay_gone(table: Table, harness: Harness, unproven: Unproven) -> None:
    """Whatever comes then: more deletions from the same file, the end of orphans, a compaction, an expiry. A file that
    is told as plain Parquet has no row that was deleted."""
    if harness.delete_rows is None:
        unproven("rows that others delete, and what comes then", "the format's harness has no delete_rows")
        return
    table.append(0, ids_of(0, 0, 8), ids_of(0, 1, 8))
    whole = ids_of(0, 0, 8) + ids_of(0, 1, 8)
    left, start = list(whole), table.info.snapshot_id

    def is_left(after: str) -> None:
        try:
            expect(table.ids, left, f"rows that are left of a table from which others deleted some, after {after}")
        except AssertionError:
            raise
        except Exception as error:  # noqa: BLE001 - reported
            pytest.fail(f"a table from which others deleted rows is read after {after}: found {told(error)}")
        for split in table.source.plan(ScanRequest()).splits:
            if split.plain_parquet is not None:
                content = apart.read(split.plain_parquet.removeprefix("file://"))
                found = pq.ParquetFile(pa.BufferReader(content)).read(columns=["id"])
                gone = sorted({*found["id"].to_pylist()} - {*left})
                expect(gone, [], f"deleted rows in what is told as plain Parquet, after {after}")

    for number, at in enumerate(([1, 2], [4, 11], [6])):
        gone = [whole[each] for each in at]
        harness.delete_rows(table.lake.storage, table.info, gone)
        left = [i for i in left if i not in gone]
        is_left(f"deletion {number + 1}")
    if table.lake.declares(Feature.ORPHAN_COLLECTION):
        table.lake.let_age()
        collect_orphans(table.lake.storage, table.info, grace=timedelta(0))
        is_left("orphans were collected")
    if harness.compact is not None:
        harness.compact(table.lake.storage, table.info)
        is_left("a compaction")
    if table.lake.declares(Feature.TIME_TRAVEL):
        found = sorted(table.read(snapshot_id=start)["id"].to_pylist())
        expect(found, whole, "the snapshot of before others deleted rows, three times, is read")
    if harness.expire is not None:
        harness.expire(table.lake.storage, table.info)
        is_left("an expiry")


@pytest.mark.needs(Feature.UPSERT)
@pytest.mark.parametrize("when", ["before-publish", "during-the-round"])
def test_an_upsert_never_brings_deleted_rows_back(lake: Lake, harness: Harness, unproven: Unproven, when: str) -> None:
    """The merged file was written from rows of which others have since deleted one."""
    keyed = Keyed.of(lake.create(primary_key=("id",)))
    keyed.round(0, keyed.staged({1: "a", 2: "b"}), keyed.staged({3: "c"}))
    if harness.delete_rows is None:
        unproven("rows that others delete", "the format's harness has no delete_rows")
        return
    table = keyed.table
    if when == "before-publish":
        committer = table.committer(mode=UPSERT)
        state, merged = committer.open(), keyed.staged({1: "A", 2: "b"}, keyed.files(1))
        harness.delete_rows(table.lake.storage, table.info, [2])
        with refused(Conflict, "an upsert is published onto a state from before others deleted a row of its file"):
            committer.publish(state, [merged], Watermark(token(1), "late"))
        committer.close()
    else:
        tiering = TieringRound(table.factory, token=token(1), mode=UPSERT, policy=QUICK)
        tiering.begin()
        merged = keyed.staged({1: "A", 2: "b"}, keyed.files(1))
        harness.delete_rows(table.lake.storage, table.info, [2])
        with contextlib.suppress(Refused, CommitError):
            tiering.commit([merged])
    expect(dict(keyed.rows), {1: "a", 3: "c"}, "rows after an upsert whose file others deleted a row of meanwhile")
    again = keyed.round(1, keyed.staged({1: "A"}, keyed.files(1)))
    expect(again, RoundOutcome.PUBLISHED, "the upsert, merged again")
    expect(dict(keyed.rows), {1: "A", 3: "c"}, "rows after the upsert, merged again")
