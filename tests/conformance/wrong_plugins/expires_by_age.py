"""Each commit expires what is older than a week by the clock of its host."""

from __future__ import annotations

import time
from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_clocks.py::test_rounds_of_hosts_whose_clocks_differ"
SAYS = "no clock ends a "
WEEK = 7 * 86_400_000


class ExpiringCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        done = super().publish(state, results, watermark)
        assert isinstance(state, kit.ManifestState)
        for number in range(state.head.metadata_at + 1, done.snapshot_id):
            path = state.manifests.path(number)
            if path.exists() and path.stat().st_mtime * 1000 < time.time() * 1000 - WEEK:
                path.unlink()
        return done


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("expires-by-age", committer=ExpiringCommitter)
