"""A commit stores the watermark that it was given. A batch without a pipeline was given none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_rounds.py::test_a_batch_without_a_pipeline"
SAYS = "a pipeline has a watermark after batches without one"


class NoneCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        assert isinstance(state, kit.ManifestState)
        if watermark is None:
            state = replace(state, head=replace(state.head, watermarks={}))
        return super().publish(state, results, watermark)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("forgets-watermarks-in-batches", committer=NoneCommitter)
