"""A catalog tells commits in pages of 100, the newest first. The first page is taken for the history."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_depth.py::test_commits_of_others_hide_nothing"
SAYS = "can still be read, and the history of 100 does not have it"


class OnePageHistory(kit.ManifestHistory):
    def snapshots(self, limit: int) -> Sequence[spi.SnapshotInfo]:
        return super().snapshots(min(limit, 100))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("lists-one-page-of-its-history", history=OnePageHistory)
