"""A staged file is looked for among the live files of the table. What an overwrite took away is published again."""

from __future__ import annotations

from crooked import CrookedPlugin
from remembering_results import KnowingCommitter, live

from laketier import kit
from laketier.registry import hookimpl

CAUGHT_BY = "test_old_results.py::test_an_overwrite_took_its_rows_away"
SAYS = "handed over again as a batch: expected 5 rows, found 10"


class LiveCommitter(KnowingCommitter):
    def known(self, state: kit.ManifestState) -> set[str]:
        return live(state)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("looks-at-live-files-alone", committer=LiveCommitter)
