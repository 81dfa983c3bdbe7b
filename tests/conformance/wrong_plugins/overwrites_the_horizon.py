"""An overwrite keeps the watermarks of all pipelines, and takes the horizon of orphan collection for a thing of the
files that are gone. What was collected before may then be published."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_overwrite.py::test_watermarks_of_others_stay"
SAYS = "the horizon of orphan collection after an overwrite: expected Watermark("


class ForgettingCommitter(kit.ManifestCommitter):
    def _checked(
        self, state: kit.ManifestState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> Any:
        added, removed, watermarks, finished = super()._checked(state, results, watermark)
        if self.context.mode is spi.WriteMode.OVERWRITE:
            watermarks.pop(spi.COLLECTOR, None)
        return added, removed, watermarks, finished


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("overwrites-the-horizon", committer=ForgettingCommitter)
