"""All of publish stands under "before the effect", and so does the effect."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_unknown_outcomes.py::test_a_time_out_is_no_conflict[batch]"
SAYS = "publish said NotBegun: it is certain that nothing landed, and the commit did"


class HastyCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        with kit.before_effect(self.table.store.root):
            return super().publish(state, results, watermark)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("calls-all-not-begun", committer=HastyCommitter)
