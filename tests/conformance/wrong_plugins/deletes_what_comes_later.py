"""Rows are deleted by their ids: whatever has such an id is left out, rows among them that came after the deletion."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from leaving import deletions
from sequenced import CompactingHarness, SequencedSource

from laketier.registry import hookimpl

CAUGHT_BY = "test_lives.py::test_rows_come_again_after_others_deleted_them"
SAYS = "the rows of a table after rows came again that others had deleted: expected 15 rows, found 12"


class Harness(CompactingHarness):
    pass


class ForgetfulSource(SequencedSource):
    def gone(self, path: str) -> pa.Array:
        return pa.array([int(each) for each in deletions(self.table)], pa.int64())


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("deletes-what-comes-later", source=ForgetfulSource)
