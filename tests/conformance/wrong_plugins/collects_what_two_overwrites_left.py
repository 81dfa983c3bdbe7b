"""Its collector reads the commits back to the last overwrite but one: older files are of no use to anybody, it says.
But each snapshot can still be read, and those from before two overwrites lose their files."""

from __future__ import annotations

from lasting import LastingHarness, lasting
from richer import RicherTable

from laketier import spi
from laketier.kit.manifests import Manifest, ManifestLog
from laketier.kit.manifests.chain import back_from
from laketier.registry import hookimpl

CAUGHT_BY = "test_series.py::test_any_series[plain]"
SAYS = "expected no error, found CorruptTable"
MOST = 2


class Harness(LastingHarness):
    pass


class ForgettingTable(RicherTable):
    def published(self, manifests: ManifestLog, head: Manifest) -> set[str]:
        found: set[str] = set()
        overwrites = 0
        for manifest in back_from(manifests, head, down_to=0):
            found |= {entry.path for entry in manifest.added}
            overwrites += manifest.resets
            if overwrites == MOST:
                break
        return found


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return lasting("collects-what-two-overwrites-left", table=ForgettingTable)
