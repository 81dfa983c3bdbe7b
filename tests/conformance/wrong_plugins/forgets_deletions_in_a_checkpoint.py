"""Each tenth commit is a checkpoint, from which readers begin. It lists the files, and not which of their rows were
deleted: these are told by the commits since."""

from __future__ import annotations

from crooked import CrookedPlugin
from leaving import KeepingHarness, LeavingSource

from laketier.registry import hookimpl

CAUGHT_BY = "test_depth.py::test_commits_of_others_change_nothing_that_was_done"
SAYS = "the rows of before, after 36 commits of others"
EVERY = 10


class Harness(KeepingHarness):
    pass


class ForgettingSource(LeavingSource):
    def counts(self, at: int) -> bool:
        return self.table.open().head.number // EVERY == at // EVERY


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("forgets-deletions-in-a-checkpoint", source=ForgettingSource)
