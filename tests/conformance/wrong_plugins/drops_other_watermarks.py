"""An overwrite starts the table afresh, and with it the memory of every other pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_overwrite.py::test_watermarks_of_others_stay"
SAYS = "the horizon of orphan collection after an overwrite: expected Watermark"


class AmnesicCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        assert isinstance(state, kit.ManifestState)
        if self.context.mode is spi.WriteMode.OVERWRITE:
            state = replace(state, head=replace(state.head, watermarks={}))
        return super().publish(state, results, watermark)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("drops-other-watermarks", committer=AmnesicCommitter)
