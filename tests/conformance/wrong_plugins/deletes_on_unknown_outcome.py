"""When the answer of a commit is lost, the staged files are cleaned up at once, although the commit may have landed."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.kit import staged
from laketier.registry import hookimpl

CAUGHT_BY = "test_unknown_outcomes.py::test_an_error_at_each_failpoint_of_the_format"
SAYS = "a data file is missing, because"


class TidyCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        try:
            commit = super().publish(state, results, watermark)
            kit.failpoint("publish.after_link")
        except Exception:
            # `ManifestCommitter.discard` would look first, and keep what is published.
            own = staged.own_paths(results, self.table.layout.attempt_of, where=str(self.table.location))
            staged.remove(self.table.folder, own)
            raise
        return commit


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("deletes-on-unknown-outcome", committer=TidyCommitter)
