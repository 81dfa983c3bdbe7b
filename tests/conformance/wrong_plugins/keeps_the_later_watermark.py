"""Of two watermarks of a pipeline the one of the later moment is kept, so that a slow driver can't set it back."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_state.py::test_the_watermark_is_the_one_that_was_published_last"
SAYS = "10 was published last: the watermark: expected (10,"


class ComparingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        before = None if watermark is None else state.watermark(watermark.token.pipeline)
        if before is not None and watermark is not None and before.committed_at > watermark.committed_at:
            watermark = None
        return super().publish(state, results, watermark)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("keeps-the-later-watermark", committer=ComparingCommitter)
