"""Expiry by the format's own hand: the oldest snapshots end, and nothing goes that another one or a pipeline needs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import pyarrow as pa
import pytest

from laketier.spi import (
    AddColumn,
    Expiry,
    Feature,
    FeatureNotSupported,
    LaketierError,
    OffsetsExpired,
    OrphanFile,
    ScanRequest,
    SnapshotNotFound,
    UnknownOutcome,
    WriteMode,
)
from laketier.spi.clocks import shifted
from laketier.tiering import RoundOutcome
from laketier_conformance.expect import expect, refused, told
from laketier_conformance.lake import Lake, Table, ids_of, read_plan, token
from laketier_conformance.outside import local_folder

pytestmark = pytest.mark.needs(Feature.ORPHAN_COLLECTION, Feature.OVERWRITE, Feature.TIME_TRAVEL, Feature.HISTORY)

A_DAY = 24 * 3600 * 1000


@pytest.fixture
def snapshots(table: Table, unproven: Callable[[str, str], None]) -> Mapping[int, pa.Table]:
    """The rows of each snapshot, the oldest first. None of a format that expires nothing itself."""
    try:
        _expire(table, keep=1, delete=False)
    except FeatureNotSupported:
        unproven("expiry", "the format ends no snapshots itself")
        return {}
    table.append(0, pipeline="early")
    table.append(0)
    table.round(token(1), [ids_of(1)], WriteMode.OVERWRITE)
    table.append(2)
    table.round(token(3), [ids_of(3), ids_of(4)], WriteMode.OVERWRITE)
    table.append(4, ids_of(5))
    listed = [line.snapshot_id for line in table.history.snapshots(20)]
    return {snapshot: _rows(table, snapshot) for snapshot in reversed(listed)}  # ids need not ascend


@pytest.fixture
def began() -> float:
    """When it was by a clock that counts seconds, before the first snapshot was made."""
    return time.monotonic()


def _rows(table: Table, snapshot: int, which: str = "which has not expired") -> pa.Table:
    try:
        return table.read(snapshot_id=snapshot).sort_by("id")
    except LaketierError as error:
        pytest.fail(f"snapshot {snapshot}, {which}, is read: expected its rows, found {told(error)}")


def _expire(table: Table, *, keep: int, retention: int = 0, delete: bool = True) -> Expiry:
    """As another process would, once what was written before is older than now. ``retention``: ms."""
    table.lake.let_age()
    return table.lake.storage.maintenance(table.info).expire(retention=retention, keep=keep, delete=delete)


def test_the_table_and_its_watermarks_stay(table: Table, snapshots: Mapping[int, pa.Table]) -> None:
    if not snapshots:
        return
    newest = list(snapshots.values())[-1]
    marks = {name: table.watermark(name) for name in ("p", "early")}
    _expire(table, keep=1)
    expect(table.read().sort_by("id"), newest, "rows of a table all of whose older snapshots expired")
    for name, mark in marks.items():
        expect(table.watermark(name), mark, f"the watermark of {name!r} after older snapshots expired")
    committer = table.committer()
    mark = marks["p"]
    assert mark is not None, "a pipeline has a watermark after its epochs"
    assert committer.open().landed(mark.commit_id), "the newest commit is found by its id after older snapshots expired"
    early = marks["early"]
    assert early is not None, "a pipeline has a watermark after its epoch"
    with suppress(UnknownOutcome):
        assert committer.open().landed(early.commit_id), (
            "an old commit is looked for by its id after its snapshot expired: expected that it landed, or "
            "UnknownOutcome, found that it did not. Who believes that publishes its rows again"
        )
    committer.close()
    for name, epoch in (("p", 4), ("early", 0)):
        outcome = table.append(epoch, pipeline=name).outcome
        expect(outcome, RoundOutcome.ALREADY_THERE, f"the replay of {name!r} after older snapshots expired")
    expect(table.append(5, ids_of(6)).outcome, RoundOutcome.PUBLISHED, "the next epoch after older snapshots expired")
    expect(table.ids, sorted([*newest["id"].to_pylist(), *ids_of(6)]), "rows of a round after older snapshots expired")


@pytest.mark.parametrize("keep", [1, 2, 3])
def test_what_is_kept_is_whole_and_the_rest_is_refused(
    table: Table, snapshots: Mapping[int, pa.Table], keep: int
) -> None:
    """A snapshot that ended is no snapshot with fewer rows."""
    if not snapshots:
        return
    order = list(snapshots)
    newest = order[-keep:]
    start = table.changes.versions().earliest if table.lake.declares(Feature.INCREMENTAL_READ) else None
    by_version = {} if start is None else {each: _appended(table, each) for each in range(start, table.latest)}
    moments = {line.snapshot_id: line.committed_at for line in table.history.snapshots(20)}
    plans = {snapshot: table.source.plan(ScanRequest(snapshot_id=snapshot)) for snapshot in snapshots}
    found = _expire(table, keep=keep)
    assert found.earliest in order[: len(order) - keep + 1], (
        f"the {keep} newest snapshots {newest} stay, and {found.earliest} is the earliest"
    )
    expect(set(found.removed) - set(found.files), set(), "files that were deleted, and are not among those to delete")
    ended = set(order[: order.index(found.earliest)])
    for snapshot, rows in snapshots.items():
        if snapshot not in ended:
            expect(_rows(table, snapshot), rows, f"rows of snapshot {snapshot} after all but {keep} expired")
            continue
        with refused(SnapshotNotFound, f"snapshot {snapshot} is planned, and the earliest is {found.earliest}"):
            table.source.plan(ScanRequest(snapshot_id=snapshot))
        with suppress(LaketierError):
            left = read_plan(table.source, plans[snapshot]).sort_by("id")
            expect(left, rows, f"rows of a plan of snapshot {snapshot}, which has expired since, and was not refused")
        moment = moments[snapshot]
        of_moment = [each for each in order if moments[each] == moment]
        if table.lake.declares(Feature.TIME_TRAVEL_BY_TIMESTAMP) and of_moment == [snapshot]:
            with refused(SnapshotNotFound, f"the moment of snapshot {snapshot} is planned, which has expired"):
                table.source.plan(ScanRequest(as_of=moment))
    if start is not None:
        earliest, latest = table.changes.versions().earliest, table.latest
        for skipping in (False, True) if earliest > start else ():
            said = f"versions from {start} on are planned, of which those before {earliest} have expired"
            with refused(OffsetsExpired, said):
                table.changes.plan(start, latest, skip_changes=skipping)
        for version, rows in by_version.items():
            if version >= earliest:
                what = f"rows that version {version} appended, where versions from {earliest} on are readable"
                expect(_appended(table, version), rows, f"{what}, after all but {keep} snapshots expired")
    listed = {line.snapshot_id for line in table.history.snapshots(20)}
    expect(listed & ended, set(), "snapshots that are listed, and have expired")


def _appended(table: Table, version: int) -> list[int]:
    """The ids of the rows that a version appended. None of one that replaced rows."""
    try:
        plan = table.changes.plan(version, version + 1, skip_changes=True)
        return sorted(read_plan(table.source, plan)["id"].to_pylist())
    except LaketierError as error:
        pytest.fail(f"version {version}, which has not expired, is read: expected its rows, found {told(error)}")


def test_what_ended_stays_so(table: Table, snapshots: Mapping[int, pa.Table]) -> None:
    """Whatever is committed next: its files are gone, and who opens it would find them missing."""
    if not snapshots:
        return
    order = list(snapshots)
    earliest = _expire(table, keep=1).earliest
    ended = order[: order.index(earliest)] if earliest in order else order[:-1]
    commits: dict[str, Callable[[], object]] = {
        "an append": lambda: table.append(5, ids_of(6)),
        "an overwrite": lambda: table.round(token(6), [ids_of(7)], WriteMode.OVERWRITE),
    }
    if table.lake.declares(Feature.ADD_COLUMN):
        commits["a new column"] = lambda: table.lake.storage.catalog().alter_table(
            table.path, [AddColumn(pa.field("extra", pa.int64()))]
        )
    for what, commit in commits.items():
        commit()
        for snapshot in ended:
            said = f"all but one snapshot expired, {what} came, and snapshot {snapshot} is planned, which had ended"
            with refused(SnapshotNotFound, said):
                table.source.plan(ScanRequest(snapshot_id=snapshot))
        listed = {line.snapshot_id for line in table.history.snapshots(20)}
        expect(listed & set(ended), set(), f"snapshots that are listed after {what}, and had expired before")


def test_what_only_ended_snapshots_needed_is_gone(table: Table, snapshots: Mapping[int, pa.Table]) -> None:
    """That is what it is for. A listing tells it before, and afterwards there is nothing left to do."""
    if not snapshots:
        return
    first, newest = next(iter(snapshots)), list(snapshots)[-1]
    listed = _expire(table, keep=1, delete=False)
    done = _expire(table, keep=1)
    for told_by, found in (("a listing", listed), ("an expiry", done)):
        assert found.earliest != first, (
            f"{told_by} that keeps one snapshot, and all others are older than the retention: expected that the oldest "
            f"of {len(snapshots)} ends, found that snapshot {first} is the earliest"
        )
        # An expiry may be a commit of its own.
        assert found.newest in (newest, table.info.snapshot_id), (
            f"the newest snapshot, told by {told_by}: expected {newest}, found {found.newest}"
        )
        assert found.files, f"files of rows that were overwritten twice, told by {told_by}: expected some, found none"
    expect(_paths(done.files), _paths(listed.files), "files that are to be deleted, and those that a listing told of")
    expect(_paths(done.removed), _paths(done.files), "files that were deleted, and those that were to be")
    again = _expire(table, keep=1, delete=False)
    expect(_paths(again.files), [], "files that are to be deleted after all of them were deleted")
    folder = local_folder(table.info.location)
    if folder is not None:
        there = [path for path in _paths(done.removed) if (folder / path).exists()]
        expect(there, [], "files that are told to be deleted, and are there")


def _paths(files: Sequence[OrphanFile]) -> list[str]:
    return sorted(file.path for file in files)


def test_what_a_round_staged_is_left_alone(table: Table, snapshots: Mapping[int, pa.Table]) -> None:
    """No snapshot needs it yet, and one will."""
    if not snapshots:
        return
    before, staged = table.ids, table.staged(ids_of(6))
    _expire(table, keep=1)
    try:
        table.commit([staged], token(5))
    except LaketierError as error:
        pytest.fail(f"files that were staged before older snapshots expired are published: found {told(error)}")
    expect(table.ids, sorted([*before, *ids_of(6)]), "rows of a round that staged them before older snapshots expired")


def test_what_is_young_is_kept(table: Table, began: float, snapshots: Mapping[int, pa.Table]) -> None:
    """A reader may have planned it a moment ago."""
    if not snapshots:
        return
    found = _expire(table, keep=1, retention=A_DAY)
    expect(found.removed, (), "files that were deleted within the retention")
    for snapshot, rows in snapshots.items():
        expect(_rows(table, snapshot), rows, f"rows of snapshot {snapshot}, which is younger than the retention")
    # In seconds, that would be a twentieth of their age.
    found = _expire(table, keep=1, retention=int(50_000 * (time.monotonic() - began)))
    expect(found.removed, (), "files that were deleted within a retention of 50 times their age, in milliseconds")
    there = len(table.history.snapshots(1000))
    for keep in (there, there + 1, 2 * there - 1, 1000):  # cut from the end, a list is cut from the front again
        few = _expire(table, keep=keep)
        expect(few.removed, (), f"files that were deleted of {there} snapshots, {keep} of which were to be kept")
        for snapshot, rows in snapshots.items():
            expect(
                _rows(table, snapshot), rows, f"rows of snapshot {snapshot} of {there}, {keep} of which were to stay"
            )
    _of_a_host_that_is_behind(table.lake)
    with shifted(2 * A_DAY):
        found = _expire(table, keep=1, retention=A_DAY)
    expect(found.removed, (), "files that a host deleted within the retention, whose clock is two days ahead")
    for snapshot, rows in snapshots.items():
        which = "which is younger than the retention, after an expiry by a host whose clock is two days ahead"
        expect(_rows(table, snapshot, which), rows, f"rows of snapshot {snapshot}, {which}")


def _of_a_host_that_is_behind(lake: Lake) -> None:
    """A snapshot is as old as the commit that took its place, by the clock of the storage. The first ones here
    are of a host whose clock is two days behind, and each was the newest a moment ago."""
    kept = {}
    with shifted(-2 * A_DAY):
        table = lake.create(name="db.behind")
    for epoch, clock in enumerate((-2 * A_DAY, -2 * A_DAY, 0)):
        with shifted(clock):
            snapshot = table.round(token(epoch), [ids_of(epoch)], WriteMode.OVERWRITE).snapshot_id
        assert snapshot is not None, "a round tells the snapshot that it made"
        kept[snapshot] = _rows(table, snapshot)
    _expire(table, keep=1, retention=A_DAY)
    which = "which was the newest a moment ago by the clock of the storage, where a day is the retention"
    for snapshot, rows in kept.items():
        expect(_rows(table, snapshot, which), rows, f"rows of snapshot {snapshot}, {which}")


def test_listing_ends_nothing(table: Table, snapshots: Mapping[int, pa.Table]) -> None:
    """Whoever only looks has changed nothing, and sees what would go."""
    if not snapshots:
        return
    files = table.lake.files()
    found = _expire(table, keep=1, delete=False)
    expect(found.removed, (), "files that are deleted by who only lists what has expired")
    expect(table.lake.files(), files, "the files of a warehouse after somebody listed what has expired")
    for snapshot, rows in snapshots.items():
        expect(_rows(table, snapshot), rows, f"rows of snapshot {snapshot} after somebody listed what has expired")
    done = _expire(table, keep=1)
    assert done is not None, "what has expired was listed, and can't be deleted"
    expect(
        {each.path for each in found.files}, {each.path for each in done.files}, "files that were listed, and deleted"
    )
