"""Forgetting a pipeline clears all properties that begin with its name, to catch those of its fence and its record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_pipelines.py::test_forgetting_a_pipeline_forgets_no_other"
SAYS = "pipeline 'orders' alone was forgotten"


class SweepingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        assert isinstance(state, kit.ManifestState)
        if watermark is not None and watermark.forgotten:
            name = watermark.token.pipeline
            others = {key: mark for key, mark in state.head.watermarks.items() if not key.startswith(name)}
            state = replace(state, head=replace(state.head, watermarks=others))
        return super().publish(state, results, watermark)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("forgets-by-prefix", committer=SweepingCommitter)
