"""Before a discard a driver asks whether a finished commit names the files. One that was cut off in its last
step is none, and every reader sees it."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit
from laketier.registry import hookimpl

CAUGHT_BY = "test_cut_off.py::test_a_discard_of_a_commit_that_was_cut_off"
SAYS = "and what was staged for it was discarded"


class FinishedCommitter(kit.ManifestCommitter):
    def _published(self, paths: Sequence[str]) -> set[str]:
        manifests = self.table.manifests()
        head, finished = manifests.head()
        last = head if finished else manifests.read(head.number - 1)
        return self.table.published(manifests, last).intersection(paths)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("discards-unfinished-commits", committer=FinishedCommitter)
