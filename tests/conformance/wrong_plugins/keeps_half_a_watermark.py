"""What decides is kept of a watermark; when it was committed is not, as nobody reads it in the author's own code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_decision_table.py::test_a_watermark_is_stored_as_it_is[plain]"
SAYS = "the stored watermark: expected"


class HalfCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        return super().publish(state, results, watermark and replace(watermark, committed_at=0))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("keeps-half-a-watermark", committer=HalfCommitter)
