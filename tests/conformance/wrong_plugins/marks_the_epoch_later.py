"""First the data, then the watermark, and nothing in between that a failpoint would name."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.kit.manifests.committer import next_manifest
from laketier.registry import hookimpl

CAUGHT_BY = "test_effects.py::test_a_round_is_killed"
SAYS = "the replay ended as 'published'"


class LateCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        commit = super().publish(state, results, None)
        if watermark is not None:
            after = self.table.open()
            mark = watermark.carried_by(after.head.number + 1).to_json()
            marks = {**after.head.watermarks, watermark.token.pipeline: mark}
            again = next_manifest(after.head, commit_id=self.context.commit_id, kind="append", watermarks=marks)
            after.manifests.append(again)
        return commit


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("marks-the-epoch-later", committer=LateCommitter)
