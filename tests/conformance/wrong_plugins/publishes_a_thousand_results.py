"""Of a round's tasks the first thousand are published. Most of its author's had rows."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_rounds.py::test_many_tasks_are_one_commit"
SAYS = "a round of 111 tasks is published, and what the last of them staged is gone: expected Refused"


class CuttingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        return super().publish(state, results[:1000], watermark)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("publishes-a-thousand-results", committer=CuttingCommitter)
