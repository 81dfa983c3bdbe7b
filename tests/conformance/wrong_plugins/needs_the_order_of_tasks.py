"""Attempts have the time in front. Results that come in another order are refused as damaged."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_rounds.py::test_results_come_in_any_order"
SAYS = "are published in another order than that of their attempts: expected no error"


class OddCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        if list(results) != sorted(results, key=lambda result: result.attempt[:12]):
            raise spi.CorruptTable("the results are not in their order")
        return super().publish(state, results, watermark)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("needs-the-order-of-tasks", committer=OddCommitter)
