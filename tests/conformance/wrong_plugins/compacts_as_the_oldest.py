"""What a compaction puts together counts as the oldest of it. So deletions that came in between, which it did already,
are applied once more, and take rows with them that had come again."""

from __future__ import annotations

from crooked import CrookedPlugin
from sequenced import CompactingHarness, SequencedSource

from laketier.registry import hookimpl

CAUGHT_BY = "test_lives.py::test_rows_come_again_after_others_deleted_them"
SAYS = "the rows of a table after a compaction of rows that others had deleted, and that came again: expected"


class Harness(CompactingHarness):
    oldest = True


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("compacts-as-the-oldest", source=SequencedSource)
