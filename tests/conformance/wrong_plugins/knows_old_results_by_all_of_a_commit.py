"""What is handed over again is known by the commit whose files these are. Some of them alone are those of no commit,
and become those of the newer one: the snapshots that had them have them no more."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin
from moves_rows_to_the_newer_commit import MovedSource, MovingCommitter

from laketier import kit, spi
from laketier.kit.manifests.chain import back_from
from laketier.registry import hookimpl

CAUGHT_BY = "test_old_results.py::test_an_overwrite_took_its_rows_away"
SAYS = "rows of the snapshot of before 1 results of a batch, of which nothing has come since, were handed over again"


class WholeCommitter(MovingCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        assert isinstance(state, kit.ManifestState)
        named = {file.path for result in results for file in result.files}
        commits = [{entry.path for entry in each.added} for each in back_from(state.manifests, state.head, down_to=0)]
        if named in commits:
            return kit.ManifestCommitter.publish(self, state, results, watermark)
        return super().publish(state, results, watermark)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("knows-old-results-by-all-of-a-commit", committer=WholeCommitter, source=MovedSource)
