"""Publish looks at the table again and appends to what it finds, as libraries that rebase on their own do."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_stale_states.py::test_of_two_drivers_one_wins[against-rows-rows]"
SAYS = "the second of two drivers publishes that opened the same state: expected Conflict, and no error was raised"


class RebasingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        return super().publish(self.open(), results, watermark)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("publishes-stale", committer=RebasingCommitter)
