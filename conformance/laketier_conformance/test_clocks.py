"""Hosts whose clocks are days off: they cost no row, and stop no round that begins afterwards.

`laketier.spi.host_time` is what is wrong here, in turn for whoever stages, publishes and collects; and in two tests the
clock that Python gives to the plugin's own modules, too. What a library takes from its own clock is not, but in one
test, where libfaketime is there.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from laketier.maintenance.orphans import collect_orphans
from laketier.spi import (
    AddColumn,
    Collected,
    Feature,
    FeatureNotSupported,
    OrphanFile,
    UnknownOutcome,
    Watermark,
    host_time,
    new_attempt_id,
)
from laketier.spi.clocks import shifted
from laketier.tiering import RoundOutcome, TieringRound
from laketier.tiering.horizon import horizon_of, lower_horizon, raise_horizon
from laketier_conformance.children import Child
from laketier_conformance.expect import expect, goes_well, refused
from laketier_conformance.harness import Harness
from laketier_conformance.host_clocks import MISSING, of_another_time, off, packages, shifting_library
from laketier_conformance.lake import QUICK, Table, ids_of, token

DAY = 86_400_000
YEARS = 1000 * DAY
CLOCKS = (-10 * DAY, 0, DAY, 10 * DAY)
NONE = timedelta(0)


def staged(table: Table, tiering: TieringRound, epoch: int, clock: int = 0) -> list[bytes]:
    with shifted(clock):
        return [table.stage(ids_of(epoch), attempt=new_attempt_id(tiering.attempts_after))]


def begun(table: Table, epoch: int) -> TieringRound:
    tiering = TieringRound(table.factory, token=token(epoch), policy=QUICK)
    tiering.begin()
    return tiering


def test_rounds_of_hosts_whose_clocks_differ(table: Table, harness: Harness) -> None:
    """Each epoch by other clocks, later ones by earlier clocks; none is refused, and the newest state holds them all.
    Neither time travel nor the history is led astray."""
    rounds = list(enumerate(itertools.permutations(CLOCKS, 2)))
    plugins = packages(table, harness)
    early = new_attempt_id()
    committer = table.committer(commit_id=early)
    committer.publish(committer.open(), [], Watermark(token(0, "early"), early))
    committer.close()
    snapshots: dict[int, list[int]] = {}
    for epoch, (stager, driver) in rounds:
        tiering = begun(table, epoch)
        messages = staged(table, tiering, epoch, stager)
        how = f"a round, staged {stager} ms and published {driver} ms off the time"
        with off(driver, plugins), goes_well(f"{how}, is published and run again"):
            expect(tiering.commit_messages(messages).outcome, RoundOutcome.PUBLISHED, f"the outcome of {how}")
            expect(table.append(epoch).outcome, RoundOutcome.ALREADY_THERE, f"the outcome of {how}, run again")
        newest = table.info.snapshot_id
        assert newest is not None, "a table has a snapshot after a round"
        snapshots[newest] = [i for before, _ in rounds[: epoch + 1] for i in ids_of(before)]
    with goes_well("a table is read after rounds of hosts whose clocks differ: no clock ends a commit"):
        expect(table.ids, [i for epoch, _ in rounds for i in ids_of(epoch)], "rows after such rounds")
    committer = table.committer()
    with off(YEARS, plugins), suppress(UnknownOutcome):
        state = committer.open()
        told = (
            "a host whose clock is years ahead asks for a commit of today: expected that it is known whatever its age"
        )
        assert state.watermark("early") is not None, f"{told}, found no watermark of its pipeline"
        assert state.landed(early), f"{told}, or UnknownOutcome, and `landed` says that it did not"
    committer.close()
    if table.lake.declares(Feature.TIME_TRAVEL):
        for snapshot, rows in list(snapshots.items())[::3]:
            how = f"snapshot {snapshot} is read after rounds of hosts whose clocks differ"
            with goes_well(f"{how}: no clock ends a snapshot"):
                found = sorted(table.read(snapshot_id=snapshot)["id"].to_pylist())
            expect(found, rows, how)
    _has_its_history(table, snapshots, "of hosts whose clocks differ")
    if table.lake.declares(Feature.ORPHAN_COLLECTION):
        _is_repaired(table, snapshots)
        _has_its_history(table, snapshots, "that was repaired")


def _has_its_history(table: Table, snapshots: Mapping[int, list[int]], told: str) -> None:
    """In the order of its commits, whose moments never go back, and each moment is that of its rows."""
    if not table.lake.declares(Feature.HISTORY):
        return
    history = table.history.snapshots(len(snapshots))
    expect([line.snapshot_id for line in history], list(snapshots)[::-1], f"the history {told}")
    times = [line.committed_at for line in history if line.committed_at is not None]
    expect(times, sorted(times, reverse=True), f"the moments of commits never go back, in a history {told}")
    if table.lake.declares(Feature.TIME_TRAVEL_BY_TIMESTAMP):
        newest_at = {line.committed_at: line.snapshot_id for line in reversed(history)}  # several may have one moment
        for line in history[::3]:
            if line.committed_at is not None:
                found = sorted(table.read(as_of=line.committed_at)["id"].to_pylist())
                expected = snapshots[newest_at[line.committed_at]]
                doing = (
                    f"the moment of snapshot {line.snapshot_id} is read in a history {told}, as of its newest commit"
                )
                expect(found, expected, doing)


def _is_repaired(table: Table, snapshots: Mapping[int, list[int]]) -> None:
    """A format may find that such clocks left something which disturbs others. Then a repair mends what it can, and
    each snapshot, row and watermark is as before."""
    maintenance = table.lake.storage.maintenance(table.info)
    before = list(maintenance.findings())
    mark = table.watermark()
    with suppress(FeatureNotSupported):
        left = list(maintenance.repair())
        after = list(table.lake.storage.maintenance(table.info).findings())
        told = f"after a repair of what clocks left: {before}"
        # Their texts may tell what time it is.
        expect(len(after), len(left), f"the number of findings {told}, and how many the repair says are left")
        expect([each for each in left if not each.fix], [], f"findings without a fix, which a repair mends, {told}")
        newest = max(snapshots, key=lambda each: len(snapshots[each]))
        expect((table.ids, table.watermark()), (snapshots[newest], mark), f"the rows and the watermark {told}")
        if table.lake.declares(Feature.TIME_TRAVEL):
            found = sorted(table.read(snapshot_id=newest)["id"].to_pylist())
            expect(found, snapshots[newest], f"the newest snapshot of before is read {told}")


def test_rounds_of_one_moment(table: Table, harness: Harness) -> None:
    """A clock is coarse, or stands still while it is set: several commits are of one millisecond. Each is a snapshot of
    its own, and the newest is the last one."""
    with off(0, packages(table, harness), stopped=True):
        snapshots = [table.append(epoch).snapshot_id for epoch in range(3)]
    whole = [sorted(i for epoch in range(last + 1) for i in ids_of(epoch)) for last in range(3)]
    assert len({*snapshots}) == 3, f"three commits of one moment are three snapshots, and their ids are {snapshots}"
    expect(table.ids, whole[2], "rows of three commits of one moment")
    if table.lake.declares(Feature.HISTORY):
        listed = table.history.snapshots(3)
        expect([each.snapshot_id for each in listed], snapshots[::-1], "three commits of one moment, the newest first")
        moment = listed[0].committed_at
        if table.lake.declares(Feature.TIME_TRAVEL_BY_TIMESTAMP):
            expect(
                sorted(table.read(as_of=moment)["id"].to_pylist()), whole[2], "rows at the moment of the last of three"
            )
    if table.lake.declares(Feature.TIME_TRAVEL):
        for snapshot, rows in zip(snapshots, whole, strict=True):
            found = sorted(table.read(snapshot_id=snapshot)["id"].to_pylist())
            expect(found, rows, f"rows of snapshot {snapshot} of {snapshots}, which were committed in one moment")
    expect(table.append(3).rows, 5, "the number of rows of the next round after three of one moment")


def test_rounds_of_a_host_whose_whole_clock_is_set_back(
    table: Table, hosts: Callable[[Mapping[str, str]], Child], unproven: Callable[[str, str], None]
) -> None:
    """Also to libraries of other languages, and to a database: whoever orders commits by what those tell takes the
    newest for an old one. A server may turn such a host away: a certificate is too young, a signature too old."""
    if shifting_library() is None:
        unproven("clocks that libraries read", MISSING)
        return
    table.append(0)
    back = hosts(of_another_time(-10))
    seen = back.ask(table.lake, "tell", table="db.t", what="rows")
    if "told" not in seen:
        unproven("clocks that libraries read", f"a process whose clock is ten days behind can't read the table: {seen}")
        return
    asked: dict[str, Any] = {"table": "db.t", "pipeline": "p"}
    told = "a round of a host whose whole clock is ten days behind"
    for epoch, outcome in ((1, "PUBLISHED"), (1, "ALREADY_THERE"), (2, "PUBLISHED")):
        answer = back.ask(table.lake, "round", epoch=epoch, tasks=[ids_of(epoch)], **asked)
        expect(answer.get("outcome", answer), outcome, f"the outcome of epoch {epoch}, {told}")
        rows = [i for before in range(epoch + 1) for i in ids_of(before)]
        expect(table.ids, rows, f"rows after epoch {epoch}, {told}")
    snapshot = table.info.snapshot_id
    expect(table.append(2).outcome, RoundOutcome.ALREADY_THERE, f"the outcome of a replay after {told}")
    expect(table.append(3).outcome, RoundOutcome.PUBLISHED, f"the outcome of the next round after {told}")
    rows = [i for epoch in range(4) for i in ids_of(epoch)]
    expect(table.ids, rows, f"rows of the next round after {told}")
    if table.lake.declares(Feature.HISTORY):
        history = table.history.snapshots(2)
        expect([line.snapshot_id for line in history], [table.info.snapshot_id, snapshot], f"the history after {told}")


@pytest.mark.needs(Feature.ADD_COLUMN)
def test_changes_of_hosts_whose_clocks_differ(table: Table, harness: Harness) -> None:
    """Columns are added by hosts of other clocks than those of the rounds between. None is refused, and what comes next
    is neither taken for older nor lost."""
    plugins = packages(table, harness)
    for epoch, (changer, driver) in enumerate([(0, 0), (10 * DAY, -10 * DAY), (-10 * DAY, 0), (DAY, -10 * DAY)]):
        with off(changer, plugins):
            table.lake.storage.catalog().alter_table(table.path, [AddColumn(pa.field(f"c{epoch}", pa.int64()))])
        with off(driver, plugins):
            what = f"a round {driver} ms off the time, after a change {changer} ms off"
            expect(table.append(epoch).outcome, RoundOutcome.PUBLISHED, f"the outcome of {what}")
            expect(table.append(epoch).outcome, RoundOutcome.ALREADY_THERE, f"the outcome of a replay of {what}")
    expect(table.ids, [i for each in range(4) for i in ids_of(each)], "rows after changes of hosts whose clocks differ")
    expect(table.info.schema.names[-4:], [f"c{each}" for each in range(4)], "columns that such hosts added")
    if table.lake.declares(Feature.HISTORY):
        times = [line.committed_at for line in table.history.snapshots(20) if line.committed_at is not None]
        expect(times, sorted(times, reverse=True), "the moments of commits never go back, whatever the clocks do")


def test_the_storage_tells_the_time(table: Table, harness: Harness) -> None:
    """Or the format says that it can't. It follows what was written before, whatever this host takes the time to be."""
    committer = table.committer()
    try:
        with off(10 * DAY, packages(table, harness)):
            first = committer.storage_time()
        assert first is None or abs(first - host_time()) < 60_000, (
            f"the storage tells the time, and not this host's clock, ten days ahead: found {first}"
        )
        files = table.lake.files()
        time.sleep(0.02)
        second = committer.storage_time()
        expect(table.lake.files(), files, "files after the storage was asked for its time")
        assert first is None or second >= first, f"the storage's time goes on: {first}, and later {second}"
    finally:
        committer.close()


@pytest.mark.needs(Feature.ORPHAN_COLLECTION)
@pytest.mark.parametrize("collector", CLOCKS)
def test_a_live_round_and_a_collector(table: Table, collector: int) -> None:
    """Without grace: what stagers of any clock staged is published whole, or refused and published when run again."""
    for epoch, (stager, driver) in enumerate(itertools.product(CLOCKS, (-10 * DAY, 10 * DAY))):
        tiering = begun(table, epoch)
        messages = staged(table, tiering, epoch, stager)
        table.lake.let_age()
        with shifted(collector):
            collect_orphans(table.lake.storage, table.info, grace=NONE)
        with shifted(driver):
            try:
                tiering.commit_messages(messages)
            except Collected:
                again = begun(table, epoch)
                outcome = again.commit_messages(staged(table, again, epoch, stager)).outcome
                assert outcome is RoundOutcome.PUBLISHED, (
                    "a round that was refused once, and is staged again, is published"
                )
    expect(
        table.ids,
        [i for epoch in range(2 * len(CLOCKS)) for i in ids_of(epoch)],
        f"rows after rounds beside a collector whose clock is {collector} ms off",
    )


@pytest.mark.needs(Feature.ORPHAN_COLLECTION)
@pytest.mark.parametrize("collector", [DAY, 10 * DAY])
def test_a_collector_ahead_deletes_nothing_that_is_young(table: Table, collector: int) -> None:
    young = table.staged(ids_of(0))
    with shifted(collector):
        collected = collect_orphans(table.lake.storage, table.info, grace=timedelta(hours=1))
    expect(
        (collected.removed, collected.horizon),
        ((), None),
        f"what a collector removed of young files, and its horizon, with a clock {collector} ms ahead",
    )
    expect(
        table.commit([young], token(0)).outcome,
        RoundOutcome.PUBLISHED,
        "the outcome of a round whose files a collector saw young",
    )
    expect(table.ids, ids_of(0), "rows of a round whose files a collector saw young")


@pytest.mark.needs(Feature.ORPHAN_COLLECTION)
def test_staged_files_name_their_attempts(table: Table) -> None:
    """By them it is certain that what is deleted can't be published, whatever any clock says."""
    result = table.staged(ids_of(0))
    listed = table.lake.storage.maintenance(table.info).orphans(1 << 53)
    assert {(file.path, result.attempt) for file in result.files} <= {_named(file) for file in listed}, (
        "each staged file is listed as an orphan with the attempt that staged it"
    )


def _named(file: OrphanFile) -> tuple[str, str | None]:
    return file.path, file.attempt


@pytest.mark.needs(Feature.ORPHAN_COLLECTION)
def test_a_horizon_in_the_future(table: Table) -> None:
    """As earlier releases wrote by a clock that was ahead: it stops what was under way and nothing else, and is taken
    back to the storage's now."""
    table.lake.storage.maintenance(table.info)
    tiering = begun(table, 0)
    under_way = staged(table, tiering, 0)
    future = host_time() + 10 * DAY
    raise_horizon(table.factory, table.info.table_uuid, future)
    with refused(Collected, "a round is published that was under way when a horizon came"):
        tiering.commit_messages(under_way)
    again = begun(table, 0)
    expect(
        again.commit_messages(staged(table, again, 0)).outcome,
        RoundOutcome.PUBLISHED,
        "the outcome of a round that began behind a horizon in the future",
    )
    again = begun(table, 1)
    under_way = staged(table, TieringRound(table.factory), 1)
    table.lake.let_age()
    was, now = lower_horizon(table.factory, table.info.table_uuid)
    expect(was, future, "the horizon that was lowered")
    assert abs(now - host_time()) < 60_000, f"a horizon is lowered to about now: found {now}, and it is {host_time()}"
    committer = table.committer()
    expect(horizon_of(committer.open()), now, "the horizon that the table has after it was lowered")
    committer.close()
    with refused(
        Collected, "a round is published that was staged before the horizon was lowered"
    ):  # staged before it was lowered, when files were still deleted
        again.commit_messages(under_way)
    expect(table.append(1).outcome, RoundOutcome.PUBLISHED, "the outcome of a round after the horizon was lowered")
    expect(table.ids, ids_of(0) + ids_of(1), "rows after the horizon was lowered")
