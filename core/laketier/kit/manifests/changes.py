"""The rows that each manifest appended, so that a table of files and manifests can be read as a log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from laketier.kit.manifests.chain import files_before, manifest_at, onward
from laketier.kit.manifests.file_entry import FileEntry
from laketier.kit.manifests.log import ManifestLog
from laketier.kit.manifests.manifest import Manifest
from laketier.kit.manifests.snapshot import ManifestSnapshot
from laketier.kit.manifests.source import ManifestSource
from laketier.kit.scans import check_versions
from laketier.spi.changes import LakeChanges, VersionBounds, pass_over
from laketier.spi.features import Feature
from laketier.spi.source import ScanPlan

_APPENDS = ("append", "create", "alter", "adopt", "rebuild", "expire")


@dataclass(frozen=True)
class ManifestChanges(LakeChanges):
    """A version is the number of a manifest. ``source`` makes the splits. Refused unless
    ``features`` have it."""

    source: ManifestSource

    def versions(self) -> VersionBounds:
        return _bounds(self._manifests().current()[0])

    def stamp(self, version: int) -> str | None:
        """The manifest's digest, by the chain that ends with the newest one."""
        manifests = self._manifests()
        head, _ = manifests.current()
        if not head.earliest <= version <= head.number:
            return None
        return manifest_at(manifests, version, head).sha256

    def plan(self, start: int, end: int, *, skip_changes: bool = False) -> ScanPlan:
        manifests = self._manifests()
        head, settled = manifests.current()
        snapshot = ManifestSnapshot(manifests, head, head, settled)
        splits = [
            replace(self.source.arrived_split(index, entry, snapshot, snapshot.schema), plain_parquet=None)
            for index, entry in enumerate(_appended(manifests, head, start, end, skip_changes=skip_changes))
        ]
        return ScanPlan(snapshot_id=end - 1, schema=snapshot.schema, splits=tuple(splits))

    def _manifests(self) -> ManifestLog:
        self.source.table.require(Feature.INCREMENTAL_READ)
        return self.source.table.manifests()


def _bounds(head: Manifest) -> VersionBounds:
    return VersionBounds(earliest=head.earliest, latest=head.number + 1, latest_at=head.at)


def _appended(
    manifests: ManifestLog, head: Manifest, start: int, end: int, *, skip_changes: bool
) -> Iterator[FileEntry]:
    """The files that the manifests ``start`` to ``end`` (exclusive) added. Raises `RowsChanged`, `SnapshotNotFound` and
    `CorruptTable`."""
    where = manifests.store.root
    check_versions(start, end, _bounds(head), where=where, noun="snapshot")
    for manifest in onward(manifests, start, end, head):
        number = manifest.number
        replaces_nothing = manifest.kind == "upsert" and not manifest.replaced
        if manifest.kind in _APPENDS or replaces_nothing or (manifest.resets and not files_before(manifests, manifest)):
            yield from manifest.arrived
        else:
            pass_over(number, manifest.kind, where=where, skip_changes=skip_changes)
