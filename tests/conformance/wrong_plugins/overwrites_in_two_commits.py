"""An overwrite is two commits: one empties the table, and the next one has the new rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_operations.py::test_an_operation_is_cut_off[overwrite]"
SAYS = "a part is there"


class EmptyingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        if self.context.mode is not spi.WriteMode.OVERWRITE:
            return super().publish(state, results, watermark)
        super().publish(state, [], None)
        context = replace(self.context, mode=spi.WriteMode.APPEND)
        return type(self)(self.table, context).publish(self.open(), results, watermark)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("overwrites-in-two-commits", committer=EmptyingCommitter)
