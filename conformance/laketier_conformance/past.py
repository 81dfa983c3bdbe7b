"""What the older snapshots of a table hold, and whether all that is listed can be read."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from laketier.spi import Feature, OffsetsExpired, SnapshotNotFound
from laketier_conformance.expect import expect, told
from laketier_conformance.lake import Lake, Table, read_plan
from laketier_conformance.seen import MOST, ids_in

_OLDEST, _NEWEST = 3, 2
"""So many of the listed snapshots are read: what goes too early is of the oldest ones, or of the one before the newest.
"""


@dataclass(frozen=True)
class Past:
    """What is listed of one table is looked at again and again. ``known``: the ids in each snapshot that was read."""

    lake: Lake
    name: str
    known: dict[int, list[int]] = field(default_factory=dict)

    def note(self, happened: str) -> None:
        """Keep in mind what is there before something is done. ``happened``, for messages: what was done before."""
        table = self.lake.table(self.name)
        for each in self._listed(table):
            if each not in self.known:
                self._has_its_rows(table, each, happened)

    def is_whole(self, happened: str) -> None:
        """Each snapshot that is listed has the rows that it had, or is refused as one that ended; and the changes that
        are told can be read. ``happened``, for messages: what was done before."""
        table = self.lake.table(self.name)
        for each in self._listed(table):
            self._has_its_rows(table, each, happened)
        if self.lake.declares(Feature.INCREMENTAL_READ):
            _are_readable(table, happened)

    def _listed(self, table: Table) -> list[int]:
        if not self.lake.declares(Feature.HISTORY, Feature.TIME_TRAVEL):
            return []
        listed = [line.snapshot_id for line in table.history.snapshots(MOST)]
        return [*dict.fromkeys([*listed[:_NEWEST], *listed[-_OLDEST:]])]

    def _has_its_rows(self, table: Table, snapshot: int, happened: str) -> None:
        try:
            found = ids_in(table, snapshot)
        except SnapshotNotFound:
            return
        except Exception as error:  # noqa: BLE001 - reported
            pytest.fail(
                f"{happened}: snapshot {snapshot} is listed, and can't be read: expected its rows, or SnapshotNotFound "
                f"as it has ended, found {told(error)}. End a snapshot for readers before a file of it is deleted"
            )
        expect(
            found, self.known.setdefault(snapshot, found), f"{happened}: ids in snapshot {snapshot}, which is listed"
        )


def _are_readable(table: Table, happened: str) -> None:
    bounds = table.changes.versions()
    try:
        read_plan(table.source, table.changes.plan(bounds.earliest, bounds.latest, skip_changes=True))
    except OffsetsExpired:
        return
    except Exception as error:  # noqa: BLE001 - reported
        pytest.fail(
            f"{happened}: the changes from version {bounds.earliest} to {bounds.latest}, which are told, can't be "
            f"read: expected their rows, or OffsetsExpired, found {told(error)}"
        )
