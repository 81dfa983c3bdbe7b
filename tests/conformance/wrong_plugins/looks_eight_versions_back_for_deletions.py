"""Who updates rows lists their ids as deleted, and appends them. A reader looks for deletions in the newest eight
versions, as files are put together more often than that where the author works."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from leaving import deletions
from sequenced import SequencedSource, UpdatingByIdsHarness

from laketier.registry import hookimpl

CAUGHT_BY = "test_foreign_updates.py::test_rows_that_others_updated_stay_so"
SAYS = "a table of which others updated rows, after 10 commits of others: each id is there once: expected 15 rows"
VERSIONS = 8


class Harness(UpdatingByIdsHarness):
    pass


class ShortSightedSource(SequencedSource):
    def gone(self, path: str) -> pa.Array:
        head, _ = self.table.manifests().current()
        first = max(self.came_with(path), head.number - VERSIONS)
        return pa.array([int(each) for each, at in deletions(self.table).items() if at >= first], pa.int64())


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("looks-eight-versions-back-for-deletions", source=ShortSightedSource)
