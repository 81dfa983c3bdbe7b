"""An overwrite is not asked whether its files were published before, as it takes all files away. One that was handed
over again brings back rows that were overwritten."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_overwrite.py::test_an_overwrite_publishes_no_old_result"
SAYS = "rows of a result that an overwrite took away, and that a later overwrite was handed again: expected []"


class TrustingCommitter(kit.ManifestCommitter):
    def _refuse_named(self, state: kit.ManifestState, results: Sequence[spi.WriteResult]) -> None:
        if self.context.mode is not spi.WriteMode.OVERWRITE:
            super()._refuse_named(state, results)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("overwrites-with-what-was-published", committer=TrustingCommitter)
