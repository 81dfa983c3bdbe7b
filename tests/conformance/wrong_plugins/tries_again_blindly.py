"""A commit that timed out is made again, on what the table is by then."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin
from remembering_results import UnaskingCommitter

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_unknown_outcomes.py::test_a_time_out_is_no_conflict[batch]"
SAYS = "commits of one publish, a step of which timed out: expected 1, found 2"


class StubbornCommitter(UnaskingCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        try:
            return super().publish(state, results, watermark)
        except TimeoutError:
            return super().publish(self.open(), results, watermark)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("tries-again-blindly", committer=StubbornCommitter)
