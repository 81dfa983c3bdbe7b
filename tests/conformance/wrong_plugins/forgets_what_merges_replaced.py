"""A staged file is looked for among the live files, and among those that overwrites took away. What a merge replaced is
published again."""

from __future__ import annotations

from crooked import CrookedPlugin
from remembering_results import KnowingCommitter, live

from laketier import kit
from laketier.kit.manifests import files_at
from laketier.registry import hookimpl

CAUGHT_BY = "test_old_results.py::test_newer_rows_took_its_place"
SAYS = "handed over again as a batch: expected 10 rows, found 15"


class MergingCommitter(KnowingCommitter):
    def known(self, state: kit.ManifestState) -> set[str]:
        known, numbers = live(state), range(state.head.number)
        resets = [number for number in numbers if state.manifests.read(number + 1).resets]
        return known.union(entry.path for number in resets for entry in files_at(state.manifests, number))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("forgets-what-merges-replaced", committer=MergingCommitter)
