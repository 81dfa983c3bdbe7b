"""The moments of snapshots never change, so a process remembers them, by the folder of the table, and asks for the new
ones alone. A table that was dropped and made anew in that folder has the moments of the former one."""

from __future__ import annotations

from lasting import LastingHarness, lasting
from richer import RicherTable

from laketier import spi
from laketier.kit.manifests import Manifest, ManifestLog
from laketier.registry import hookimpl

CAUGHT_BY = "test_series.py::test_any_series[plain]"
SAYS = "the moment of snapshot"
_MOMENTS: dict[str, list[int]] = {}


class Harness(LastingHarness):
    pass


class RememberingLog(ManifestLog):
    def as_of(self, moment: int, head: Manifest) -> Manifest:
        known = _MOMENTS.setdefault(self.store.root, [])
        known += [self.at(number, head).at for number in range(len(known), head.number + 1)]
        found = [number for number, at in enumerate(known) if at <= moment]
        if not found:
            return super().as_of(moment, head)
        return self.at(min(found[-1], head.number), head)


class RememberingTable(RicherTable):
    def manifests(self) -> ManifestLog:
        return RememberingLog.open(self.location, self.layout)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return lasting("remembers-moments-by-place", table=RememberingTable)
