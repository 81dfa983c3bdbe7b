"""The table as a log: what each manifest appended."""

from __future__ import annotations

from collections.abc import Iterator

from laketier.kit.scans import check_versions
from laketier.spi import VersionBounds, pass_over
from laketier_localfile.log import ManifestLog
from laketier_localfile.manifest import FileEntry, Manifest
from laketier_localfile.rollup import files_at

_APPENDS = ("append", "create", "alter")


def bounds(manifests: ManifestLog) -> VersionBounds:
    """Every manifest is kept."""
    head, _ = manifests.current()
    return _bounds_at(head)


def _bounds_at(head: Manifest) -> VersionBounds:
    return VersionBounds(earliest=0, latest=head.number + 1, latest_at=head.at)


def appended(
    manifests: ManifestLog, head: Manifest, start: int, end: int, *, skip_changes: bool
) -> Iterator[FileEntry]:
    """The files that the manifests ``start`` to ``end`` (exclusive) added. Raises `RowsChanged` and
    `SnapshotNotFound`."""
    check_versions(start, end, _bounds_at(head), where=str(manifests.location))
    for number in range(start, end):
        manifest = manifests.at(number, head)
        replaces_nothing = manifest.kind == "upsert" and not manifest.removed
        if manifest.kind in _APPENDS or replaces_nothing or (manifest.resets and not files_at(manifests, number - 1)):
            yield from manifest.added
        else:
            pass_over(number, manifest.kind, where=str(manifests.location), skip_changes=skip_changes)
