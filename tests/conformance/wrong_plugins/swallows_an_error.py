"""A failing commit is logged, and reported as a success."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_unknown_outcomes.py::test_an_error_at_each_failpoint_of_the_format"
SAYS = "an error at publish.before_manifest was swallowed"


class SwallowingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        try:
            return super().publish(state, results, watermark)
        except (RuntimeError, spi.NotBegun):
            rows = sum(result.rows for result in results)
            return spi.LakeCommitResult(snapshot_id=state.snapshot_id or 0, rows=rows, files=1, bytes=1)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("swallows-an-error", committer=SwallowingCommitter)
