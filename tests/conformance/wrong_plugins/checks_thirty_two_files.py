"""A look at a file takes a request, so the first thirty-two of a commit are looked at: they were all staged alike."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_rounds.py::test_many_tasks_are_one_commit"
SAYS = "a round of 111 tasks is published, and what the last of them staged is gone: expected Refused"


class FewTable(FeatherTable):
    def check_staged(self, state: kit.ManifestState, results: Sequence[spi.WriteResult]) -> None:
        super().check_staged(state, [result for result in results if result.files][:32])


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("checks-thirty-two-files", table=FewTable)
