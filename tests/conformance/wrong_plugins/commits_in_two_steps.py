"""First the data, then the watermark: a crash between the two doubles the epoch."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_kills.py::test_killed_at_each_failpoint_of_the_format"
SAYS = "killed at publish.after_manifest_before_renames: the replay ended as"


class TwoStepCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        commit = super().publish(state, results, None)
        kit.failpoint("publish.between_data_and_watermark")
        super().publish(self.open(), [], watermark)
        return commit


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("commits-in-two-steps", committer=TwoStepCommitter)
