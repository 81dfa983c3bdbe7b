"""An upsert is for one pipeline, whose watermark it stores with those of the others. One for none stores none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_upsert.py::test_appends_and_upserts_take_turns"
SAYS = "the watermarks of two pipelines after an upsert of a batch: expected"


class LoneCommitter(kit.ManifestCommitter):
    def _checked(
        self, state: kit.ManifestState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> Any:
        added, removed, watermarks, finished = super()._checked(state, results, watermark)
        is_upsert = self.context.mode is spi.WriteMode.UPSERT
        return added, removed, {} if is_upsert and watermark is None else watermarks, finished


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("upserts-for-nobody", committer=LoneCommitter)
