"""A commit takes at most a hundred files, as the author's catalog did: more of them become several commits."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_rounds.py::test_many_tasks_are_one_commit"
SAYS = "rows after a round of 111 tasks was refused, as what the last of them staged is gone"


class ChunkingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        rows = bytes_ = 0
        while len(results) > 100:
            done = super().publish(state, results[:100], None)
            rows, bytes_, results, state = rows + done.rows, bytes_ + done.bytes, results[100:], self.open()
        done = super().publish(state, results, watermark)
        files = sum(len(result.files) for result in results)
        return spi.LakeCommitResult(
            snapshot_id=done.snapshot_id, rows=rows + done.rows, files=files, bytes=bytes_ + done.bytes
        )


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("commits-in-chunks", committer=ChunkingCommitter)
