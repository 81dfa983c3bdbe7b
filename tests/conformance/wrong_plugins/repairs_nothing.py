"""A repair says that nothing is left to mend, and the next look finds what it found before."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_clocks.py::test_rounds_of_hosts_whose_clocks_differ"
SAYS = "the number of findings after a repair of what clocks left"
MINUTE = 60_000


class Maintenance(kit.ManifestMaintenance):
    def findings(self) -> Sequence[spi.TableFinding]:
        newest = kit.ManifestHistory(self.table).snapshots(1)
        if not newest or (newest[0].committed_at or 0) <= spi.host_time() + MINUTE:
            return ()
        return (spi.TableFinding("the newest commit is of tomorrow", "a clock was ahead: readers wait for that day"),)

    def repair(self) -> Sequence[spi.TableFinding]:
        return ()


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("repairs-nothing", maintenance=Maintenance)
