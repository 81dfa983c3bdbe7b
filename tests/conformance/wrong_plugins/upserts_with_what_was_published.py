"""An upsert is not asked whether its files were published before, as the core has merged its rows. One that was handed
over again brings back rows that were merged with newer ones."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_upsert.py::test_an_upsert_publishes_no_old_result"
SAYS = "a key is there twice: [(1, 'A'), (1, 'newer'), (2, 'b'), (2, 'b'), (3, 'c')]"


class TrustingCommitter(kit.ManifestCommitter):
    def _refuse_named(self, state: kit.ManifestState, results: Sequence[spi.WriteResult]) -> None:
        if self.context.mode is not spi.WriteMode.UPSERT:
            super()._refuse_named(state, results)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("upserts-with-what-was-published", committer=TrustingCommitter)
