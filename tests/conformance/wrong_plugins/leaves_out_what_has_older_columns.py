"""A commit that lost a race against a change of columns is made again, without the rows of older columns."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_races.py::test_a_column_comes_before_effects_of_a_round"
SAYS = "another process added a column before"


class Committer(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        try:
            return super().publish(state, results, watermark)
        except spi.Conflict:
            now = self.open()
            if now.schema_fingerprint == state.schema_fingerprint:
                raise
            return super().publish(now, (), watermark)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("leaves-out-what-has-older-columns", committer=Committer)
