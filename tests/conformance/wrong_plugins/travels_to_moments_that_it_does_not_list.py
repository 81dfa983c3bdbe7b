"""The history tells no moments, and a reader can ask for the rows of any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_history.py::test_each_can_be_read"
SAYS = "says when each was committed"


class DatelessHistory(kit.ManifestHistory):
    def snapshots(self, limit: int) -> Sequence[spi.SnapshotInfo]:
        return [replace(line, committed_at=None) for line in super().snapshots(limit)]


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("travels-to-moments-that-it-does-not-list", history=DatelessHistory)
