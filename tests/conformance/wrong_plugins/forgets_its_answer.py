"""A commit answers nothing, as its method has no ``return``: the rows are there, and nobody learns how many."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_rounds.py::test_the_result_of_a_round_counts"
SAYS = "LakeCommitter.publish answers what its contract says: expected the answer to be LakeCommitResult, found None"


class SilentCommitter(kit.ManifestCommitter):
    def publish(  # type: ignore[override]
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> None:
        super().publish(state, results, watermark)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("forgets-its-answer", committer=SilentCommitter)
