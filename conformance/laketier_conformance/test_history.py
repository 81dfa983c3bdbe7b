"""The snapshots of a table, listed."""

from __future__ import annotations

import pytest

from laketier.spi import Feature, support_of
from laketier_conformance.lake import Table

pytestmark = pytest.mark.needs(Feature.HISTORY)


def test_the_newest_come_first(table: Table) -> None:
    snapshots = [table.append(epoch).snapshot_id for epoch in range(3)]
    history = table.history.snapshots(10)
    assert [line.snapshot_id for line in history][:3] == snapshots[::-1]
    assert [line.snapshot_id for line in table.history.snapshots(2)] == snapshots[:0:-1]
    times = [line.committed_at for line in history if line.committed_at is not None]
    assert times == sorted(times, reverse=True)


def test_each_says_what_it_was(table: Table) -> None:
    for epoch in range(3):
        table.append(epoch)
    lines = table.history.snapshots(3)
    for line in lines:
        assert line.operation
        assert line.rows in (None, 5)
        assert line.pipeline in (None, "p")
    for epoch, line in enumerate(reversed(lines)):
        assert line.epoch in (None, epoch)


def test_each_can_be_read(table: Table) -> None:
    """Where the format can read older snapshots at all."""
    snapshots = [table.append(epoch).snapshot_id for epoch in range(3)]
    history = table.history.snapshots(3)
    if support_of(table.lake.plugin.features, Feature.TIME_TRAVEL).full:
        for line in history:
            rows = table.read(snapshot_id=line.snapshot_id).num_rows
            assert rows == 5 * (snapshots.index(line.snapshot_id) + 1)


def test_it_looks_afresh(table: Table) -> None:
    table.append(0)
    history = table.history
    newest = table.append(1).snapshot_id
    assert history.snapshots(1)[0].snapshot_id == newest
