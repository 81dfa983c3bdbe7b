"""A format whose columns are no part of a snapshot: a change of them makes none, and who reads the newest snapshot by
its number gets the columns of now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lasting import LastingHarness, lasting
from richer import RicherSource

from laketier import kit, spi
from laketier.kit.manifests import ManifestSnapshot
from laketier.kit.manifests.chain import manifest_at, onward
from laketier.kit.manifests.log import ManifestLog
from laketier.kit.manifests.manifest import Manifest
from laketier.registry import hookimpl


class Harness(LastingHarness):
    pass


def _back(manifests: ManifestLog, manifest: Manifest) -> int:
    """The number of the last one that was no change of columns."""
    while manifest.kind == "alter":
        manifest = manifest_at(manifests, manifest.number - 1, manifest)
    return manifest.number


class ReshapedCatalog(kit.ManifestCatalog):
    def load_table(self, path: spi.TablePath) -> spi.TableInfo:
        info = super().load_table(path)
        manifests = self.table_type(self.store(path)).manifests()
        return replace(info, snapshot_id=_back(manifests, manifests.current()[0]))


class ReshapedSource(RicherSource):
    def _snapshot(self, request: spi.ScanRequest) -> ManifestSnapshot:
        found = super()._snapshot(request)
        if request.snapshot_id is None:
            return found
        manifest = found.manifest
        for each in onward(found.manifests, manifest.number + 1, found.head.number + 1, found.head):
            if each.kind != "alter":
                break
            manifest = each
        return ManifestSnapshot(found.manifests, found.head, manifest, settled=False)


class ReshapedHistory(kit.ManifestHistory):
    def snapshots(self, limit: int) -> Sequence[spi.SnapshotInfo]:
        return [line for line in super().snapshots(1 << 20) if line.operation != "alter"][:limit]


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return lasting("reshaped", catalog=ReshapedCatalog, source=ReshapedSource, history=ReshapedHistory)
