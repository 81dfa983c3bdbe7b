"""A commit is looked for among those whose files the table has: from the last overwrite on. Of one before it, `landed`
says that it never was, and whoever lost the answer to it publishes its rows again."""

from __future__ import annotations

from lasting import LastingHarness, lasting
from richer import RicherTable

from laketier import kit, spi
from laketier.kit.manifests.chain import back_from
from laketier.registry import hookimpl

CAUGHT_BY = "test_series.py::test_any_series[plain]"
SAYS = "whether the commit of step"


class Harness(LastingHarness):
    pass


class ShortState(kit.ManifestState):
    def landed(self, commit_id: str) -> bool:
        for manifest in back_from(self.manifests, self.head, down_to=0):
            if manifest.commit_id == commit_id:
                return True
            if manifest.resets:
                break
        return False


class ShortTable(RicherTable):
    def open(self) -> kit.ManifestState:
        found = super().open()
        return ShortState(found.manifests, found.head, found.metadata)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return lasting("looks-back-to-the-last-overwrite", table=ShortTable)
