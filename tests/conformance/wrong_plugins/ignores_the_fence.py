"""The lease of the driver is not stored with the watermark, so an older driver is never refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_decision_table.py::test_row[lower-fence]"
SAYS = (
    "epoch {'epoch': 1, 'fence': 1} is run after ({'epoch': 0, 'fence': 2},): expected Fenced, and no error was raised"
)


class UnfencedCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        if watermark is not None:
            watermark = replace(watermark, token=replace(watermark.token, fence=0))
        return super().publish(state, results, watermark)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("ignores-the-fence", committer=UnfencedCommitter)
