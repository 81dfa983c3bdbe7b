"""Only pipelines need a compare-and-set, says the author: a batch without one is put onto whatever is there."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_overwrite.py::test_rows_that_came_meanwhile_are_not_lost_unseen[batch]"
SAYS = "an overwrite is published against a state that another commit made stale: expected Conflict"


class RebasingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        return super().publish(self.open() if watermark is None else state, results, watermark)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("rebases-batches", committer=RebasingCommitter)
