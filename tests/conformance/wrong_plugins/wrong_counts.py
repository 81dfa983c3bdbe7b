"""A commit tells how many rows the table has, not how many it added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.kit.manifests import files_at
from laketier.registry import hookimpl

CAUGHT_BY = "test_rounds.py::test_the_counts_are_those_of_the_files"
SAYS = "rows that the committer counts: those of its own commit: expected 7, found 17"


class MiscountingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        commit = super().publish(state, results, watermark)
        now = self.open()
        return replace(commit, rows=sum(entry.rows for entry in files_at(now.manifests, now.head.number)))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("wrong-counts", committer=MiscountingCommitter)
