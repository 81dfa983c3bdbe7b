"""A format that tells no version of a commit by which no row came or went: its log of changes has rows alone."""

from __future__ import annotations

from dataclasses import replace

from lasting import LastingHarness, lasting

from laketier import kit, spi
from laketier.kit.manifests.chain import files_before, onward
from laketier.registry import hookimpl


class Harness(LastingHarness):
    pass


class StillChanges(kit.ManifestChanges):
    def versions(self) -> spi.VersionBounds:
        bounds, manifests = super().versions(), self._manifests()
        found = [
            each.number
            for each in onward(manifests, bounds.earliest, bounds.latest, manifests.current()[0])
            if each.added or each.removed or (each.resets and files_before(manifests, each))
        ]
        return replace(bounds, latest=max(found, default=bounds.earliest - 1) + 1)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return lasting("still", changes=StillChanges)
