"""The snapshots of a table, listed."""

from __future__ import annotations

import pytest

from laketier.spi import Feature, ScanRequest, WriteMode, host_time
from laketier_conformance.expect import expect
from laketier_conformance.lake import Table, ids_of, token

pytestmark = [pytest.mark.needs(Feature.HISTORY), pytest.mark.usefixtures("far_from_utc")]


def test_the_newest_come_first(table: Table) -> None:
    begun = host_time()
    snapshots = [table.append(epoch).snapshot_id for epoch in range(3)]
    ended = host_time()
    history = table.history.snapshots(10)
    expect(
        [line.snapshot_id for line in history][:3],
        snapshots[::-1],
        "the newest snapshots of the history, the newest first",
    )
    expect(
        [line.snapshot_id for line in table.history.snapshots(2)],
        snapshots[:0:-1],
        "the two newest snapshots of the history",
    )
    expect(list(table.history.snapshots(0)), [], "the newest 0 snapshots of the history")
    times = [line.committed_at for line in history if line.committed_at is not None]
    expect(times, sorted(times, reverse=True), "the moments of the snapshots, the newest first")
    for at in times[:3]:
        assert begun - 60_000 < at < ended + 60_000, (
            f"a snapshot says when it was committed, in ms since the epoch: found {at}, and it was {begun} to {ended}"
        )


def test_each_says_what_it_was(table: Table) -> None:
    """Epochs of one task, of two and of three."""
    epochs = [[ids_of(epoch, task) for task in range(epoch + 1)] for epoch in range(3)]
    for epoch, tasks in enumerate(epochs):
        table.append(epoch, *tasks)
    lines = table.history.snapshots(3)
    for line, tasks in zip(lines, reversed(epochs), strict=True):
        assert line.operation, "a snapshot says which operation made it"
        rows = sum(map(len, tasks))
        assert line.rows in (None, rows), (
            f"a snapshot says how many rows its commit appended, or nothing: expected {rows} or None, found {line.rows}"
        )
        assert line.pipeline in (None, "p"), (
            f"a snapshot says which pipeline made it, or nothing: found {line.pipeline!r}"
        )
    for epoch, line in enumerate(reversed(lines)):
        assert line.epoch in (None, epoch), (
            f"a snapshot says which epoch made it, or nothing: found {line.epoch}, and it was {epoch}"
        )
    known = [line.rows for line in lines if line.rows is not None]
    assert len(known) in (0, len(lines)), (
        "a format that says of one epoch how many rows it appended says it of each: found "
        f"{[line.rows for line in lines]}, the newest first"
    )


def test_each_says_who_made_it(table: Table) -> None:
    """Epochs of two pipelines, and a batch of none."""
    table.append(0, pipeline="a")
    table.append(0, ids_of(1), pipeline="b")
    table.round(None, [ids_of(2)])
    table.append(1, ids_of(3), pipeline="a")
    told = [(line.pipeline, line.epoch) for line in table.history.snapshots(4)]
    made = [("a", 1), (None, None), ("b", 0), ("a", 0)]
    expect(told, made, "pipeline and epoch of the newest snapshots, the newest first, the second of a batch of nobody")


def test_each_can_be_read(table: Table) -> None:
    """Where the format can read older snapshots at all."""
    snapshots = [table.append(epoch).snapshot_id for epoch in range(3)]
    history = table.history.snapshots(3)
    if table.lake.declares(Feature.TIME_TRAVEL):
        # Those of before the first round, such as the table's creation, have no rows.
        for line in table.history.snapshots(10):
            plan = table.source.plan(ScanRequest(snapshot_id=line.snapshot_id))
            expect(plan.snapshot_id, line.snapshot_id, "the snapshot of a plan of a listed one")
            rows = table.read(snapshot_id=line.snapshot_id).num_rows
            wanted = 5 * (snapshots.index(line.snapshot_id) + 1) if line.snapshot_id in snapshots else 0
            expect(rows, wanted, f"the number of rows of the listed snapshot {line.snapshot_id}")
    times = [line.committed_at for line in history]
    if table.lake.declares(Feature.TIME_TRAVEL_BY_TIMESTAMP):
        assert None not in times, (
            "a format by which one can travel to the moment of a snapshot says when each was committed: found "
            f"{times}, the newest first"
        )
        for line in history:
            if times.count(line.committed_at) == 1:
                rows = table.read(as_of=line.committed_at).num_rows
                wanted = 5 * (snapshots.index(line.snapshot_id) + 1)
                expect(rows, wanted, f"rows of snapshot {line.snapshot_id}, by the moment at which it was committed")


def test_no_snapshot_is_left_out(table: Table) -> None:
    """Neither one without rows, nor those of before an overwrite, as long as they can be read."""
    made = [table.append(0).snapshot_id, table.append(1, []).snapshot_id]
    if table.lake.declares(Feature.OVERWRITE):
        made.append(table.round(token(2), [ids_of(2)], WriteMode.OVERWRITE).snapshot_id)
    made.append(table.round(None, [ids_of(3)]).snapshot_id)
    made = list(dict.fromkeys(made))  # a commit without rows may tell the one before
    listed = [line.snapshot_id for line in table.history.snapshots(20)]
    if table.lake.declares(Feature.TIME_TRAVEL):
        for snapshot in made:
            table.source.plan(ScanRequest(snapshot_id=snapshot))
        expect([each for each in listed if each in made], made[::-1], "the snapshots that can be read, as listed")
    expect(listed[:1], made[-1:], "the newest snapshot of the history")
    expect(len(set(listed)), len(listed), "snapshots that are listed, each once")


def test_it_looks_afresh(table: Table) -> None:
    table.append(0)
    history = table.history
    history.snapshots(1)
    newest = table.append(1).snapshot_id
    expect(history.snapshots(1)[0].snapshot_id, newest, "the newest snapshot of a history that was opened before it")
