"""A publish that came too late is tried again by the committer itself, on the table as it is by then."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_stale_states.py::test_a_lease_that_was_taken_over"
SAYS = "a driver publishes whose lease was taken over after it opened: expected Conflict, and no error was raised"


class RepeatingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        try:
            return super().publish(state, results, watermark)
        except spi.Conflict:
            return super().publish(self.open(), results, watermark)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("repeats-what-conflicts", committer=RepeatingCommitter)
