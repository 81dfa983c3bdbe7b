"""When the answer of a commit is lost, the staged files are cleaned up at once, although the commit may have landed."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin
from feather_lake.plugin import Committer

from laketier import kit, spi
from laketier.registry import hookimpl


class TidyCommitter(Committer):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        try:
            commit = super().publish(state, results, watermark)
            kit.failpoint("publish.after_link")
        except Exception:
            self.discard(results)
            raise
        return commit


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("deletes-on-unknown-outcome", committer=TidyCommitter)
