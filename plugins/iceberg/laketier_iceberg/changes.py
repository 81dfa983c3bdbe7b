"""The table as a log: what each snapshot of the branch ``main`` appended. Driver.

A version is a sequence number: the metadata gives one to each commit, and they only grow. Of the manifests, only those
that the snapshots of a range added are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from laketier.kit.scans import check_versions
from laketier.spi import (
    Feature,
    FeatureNotSupported,
    LakeChanges,
    Passthrough,
    ScanPlan,
    SnapshotNotFound,
    TablePath,
    VersionBounds,
    pass_over,
)
from laketier_iceberg.connection import CatalogSettings
from laketier_iceberg.history import History
from laketier_iceberg.loading import load
from laketier_iceberg.manifests import naming_damaged_manifests
from laketier_iceberg.plain import plain_files
from laketier_iceberg.resolution import Resolution
from laketier_iceberg.spec import FORMAT
from laketier_iceberg.splits import split_of
from laketier_iceberg.types import to_arrow

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile, ManifestFile
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot


@dataclass(frozen=True)
class Chain:
    """The retained snapshots of ``main``, the newest first. Raises `FeatureNotSupported` for a table of version 1,
    whose snapshots have no numbers."""

    metadata: TableMetadata
    snapshots: tuple[Snapshot, ...]

    @classmethod
    def of(cls, metadata: TableMetadata, where: str) -> Chain:
        """Of metadata that was just loaded."""
        if metadata.format_version < 2:
            raise FeatureNotSupported(
                Feature.INCREMENTAL_READ.value,
                format=FORMAT,
                reason=f"{where} is of version 1, whose snapshots have no sequence numbers",
                fix="Upgrade it to version 2.",
            )
        return cls(metadata, tuple(History(metadata).ancestors()))

    @property
    def bounds(self) -> VersionBounds:
        """Sequence numbers from the oldest retained snapshot's. After a rollback, ``latest`` is lower than before."""
        if not self.snapshots:
            return VersionBounds(earliest=1, latest=1)
        newest, oldest = self.snapshots[0], self.snapshots[-1]
        return VersionBounds(earliest=number(oldest), latest=number(newest) + 1, latest_at=newest.timestamp_ms)

    def at(self, version: int) -> int | None:
        """The id of the snapshot that was current at a version. Raises `SnapshotNotFound`."""
        bounds = self.bounds
        if not 0 <= version < bounds.latest:
            raise SnapshotNotFound(
                f"the table has no snapshot with sequence number {version}, or not any more",
                fix=f"The newest one has {bounds.latest - 1}.",
            )
        found = next((snapshot for snapshot in self.snapshots if number(snapshot) <= version), None)
        if found is None and bounds.earliest > 1:
            raise SnapshotNotFound(
                f"the snapshot with sequence number {version} has expired",
                fix=f"The oldest one has {bounds.earliest}.",
            )
        return None if found is None else found.snapshot_id

    def between(self, start: int, end: int, where: str) -> list[Snapshot]:
        """The snapshots of ``start`` to ``end`` (exclusive), the oldest first. Raises `OffsetsExpired`, and
        `SnapshotNotFound` when the table has not come to ``end``, or not any more."""
        expire = "Expire snapshots later than rounds lag behind."
        check_versions(start, end, self.bounds, where=where, noun="sequence number", fix=expire)
        return [snapshot for snapshot in reversed(self.snapshots) if start <= number(snapshot) < end]

    def stamp(self, version: int) -> str | None:
        """The id of the snapshot of ``main`` that got the number: 63 random bits. Also of one that a rollback took out
        of the history, as that is told otherwise (`is_rolled_back`)."""
        known = {entry.snapshot_id for entry in self.metadata.snapshot_log}
        known |= {snapshot.snapshot_id for snapshot in self.snapshots}
        found = [s.snapshot_id for s in self.metadata.snapshots if number(s) == version and s.snapshot_id in known]
        return str(found[0]) if len(found) == 1 else None

    def is_rolled_back(self, start: int) -> bool:
        """Whether what ended at ``start`` is no part of the history any more: the snapshot before it was of ``main``
        and is not an ancestor, or is gone although older ones are there."""
        before = next((snapshot for snapshot in self.snapshots if number(snapshot) < start), None)
        if before is None or number(before) == start - 1:
            return False
        retained = next((s for s in self.metadata.snapshots if number(s) == start - 1), None)
        return retained is None or any(e.snapshot_id == retained.snapshot_id for e in self.metadata.snapshot_log)


@dataclass(frozen=True)
class IcebergChanges(LakeChanges):
    """A version is a sequence number."""

    settings: CatalogSettings
    path: TablePath
    io: Passthrough

    def versions(self) -> VersionBounds:
        return self._chain().bounds

    def snapshot_at(self, version: int) -> int | None:
        return self._chain().at(version)

    def stamp(self, version: int) -> str | None:
        return self._chain().stamp(version)

    def plan(self, start: int, end: int, *, skip_changes: bool = False) -> ScanPlan:
        from pyiceberg.table import FileScanTask

        table = load(self.settings, self.path)
        schema = table.schema()
        where = str(self.path)
        wanted = to_arrow(schema, where=where)
        resolution = Resolution(table.metadata, schema, wanted, where)
        with naming_damaged_manifests(table, reversed(table.snapshots()), where):
            files = list(appended(table, start, end, where, skip_changes=skip_changes))
        plain = plain_files(table.metadata, schema, files, self.io)
        splits = (split_of(index, FileScanTask(file), resolution, plain) for index, file in enumerate(files))
        return ScanPlan(snapshot_id=None, schema=wanted, splits=tuple(splits))

    def _chain(self) -> Chain:
        return Chain.of(load(self.settings, self.path).metadata, str(self.path))


def appended(table: Table, start: int, end: int, where: str, *, skip_changes: bool) -> Iterator[DataFile]:
    """The data files that the snapshots of a range added, in their order. Raises also `RowsChanged`."""
    from pyiceberg.table.snapshots import Operation

    chain = Chain.of(table.metadata, where)
    snapshots = chain.between(start, end, where)
    if start and snapshots and chain.is_rolled_back(start):
        pass_over(start - 1, "rolled back", where=where, skip_changes=skip_changes)
    for snapshot in snapshots:
        operation = None if snapshot.summary is None else snapshot.summary.operation
        if operation is Operation.APPEND:
            yield from _added(table, snapshot)
        elif operation is not Operation.REPLACE:
            named = "unknown" if operation is None else operation.value
            pass_over(number(snapshot), named, where=where, skip_changes=skip_changes)


def number(snapshot: Snapshot) -> int:
    """Its sequence number; 0 for one of a table that was of version 1 then."""
    return snapshot.sequence_number or 0


def _added(table: Table, snapshot: Snapshot) -> Iterator[DataFile]:
    """A manifest that was merged holds files of older snapshots too, as existing ones."""
    from pyiceberg.manifest import ManifestContent, ManifestEntryStatus

    manifests: list[ManifestFile] = [
        manifest
        for manifest in snapshot.manifests(table.io)
        if manifest.added_snapshot_id == snapshot.snapshot_id and manifest.content == ManifestContent.DATA
    ]
    for manifest in manifests:
        for entry in manifest.fetch_manifest_entry(table.io):
            if entry.status == ManifestEntryStatus.ADDED and entry.snapshot_id in (None, snapshot.snapshot_id):
                yield entry.data_file
