"""Files that take the place of others are committed by a way of their own, which knows one watermark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_upsert.py::test_appends_and_upserts_take_turns"
SAYS = "the outcome of an append that is run again beside an upsert"


class UpsertingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        assert isinstance(state, kit.ManifestState)
        if self.context.mode is spi.WriteMode.UPSERT:
            state = replace(state, head=replace(state.head, watermarks={}))
        return super().publish(state, results, watermark)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("forgets-others-when-it-upserts", committer=UpsertingCommitter)
