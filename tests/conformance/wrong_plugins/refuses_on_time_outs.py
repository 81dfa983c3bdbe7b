"""A time-out of the store is told as a refusal: nothing was written, says the author, as there was no answer."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_unknown_outcomes.py::test_a_time_out_is_no_conflict[pipeline]"
SAYS = "a step of publish timed out and no other commit came: publish said StagedFileLost"


class GivingUpCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        try:
            return super().publish(state, results, watermark)
        except TimeoutError as error:
            raise spi.StagedFileLost("the files could not be published", where=str(self.table.location)) from error


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("refuses-on-time-outs", committer=GivingUpCommitter)
