"""Whether a result was published before is looked for in the newest ten commits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_depth.py::test_commits_of_others_hide_nothing"
SAYS = "commits of others came, and its result was handed over again"


class HurriedCommitter(kit.ManifestCommitter):
    def _refuse_named(self, state: kit.ManifestState, results: Sequence[spi.WriteResult]) -> None:
        lately = max(state.head.number - 10, 0)
        super()._refuse_named(state, [replace(each, after=max(each.after or 0, lately)) for each in results])


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("looks-for-old-results-in-ten-commits", committer=HurriedCommitter)
