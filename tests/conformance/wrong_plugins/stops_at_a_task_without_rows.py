"""Results are taken until one has no files: behind that there are none."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_rounds.py::test_tasks_without_rows_beside_others"
SAYS = "rows of tasks beside others that have none"


class OddCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        from itertools import takewhile

        return super().publish(state, list(takewhile(lambda result: result.files, results)), watermark)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("stops-at-a-task-without-rows", committer=OddCommitter)
