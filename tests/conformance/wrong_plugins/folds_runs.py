"""The run of a watermark is kept in a column for UUIDs: in small letters, 64 of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_decision_table.py::test_a_watermark_is_stored_as_it_is[odd]"
SAYS = "the token in the stored watermark: expected"


class FoldingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        if watermark is not None:
            run = watermark.token.run.lower()[:64]
            watermark = replace(watermark, token=replace(watermark.token, run=run))
        return super().publish(state, results, watermark)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("folds-runs", committer=FoldingCommitter)
