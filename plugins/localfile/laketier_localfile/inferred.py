"""Reading of a table whose manifests are lost, by what its files tell: for readers who ask for it, never for writers.

Nobody knows then which of the files count. A commit that was cut off may have some of its files in place, and others
staged. So the rows are those of all files in place, and the reader is told.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from laketier.kit.manifests import FileEntry, Manifest, ManifestLog, ManifestSnapshot
from laketier.kit.manifests.manifest import REBUILT
from laketier.spi import (
    CorruptTable,
    FeatureNotSupported,
    ScanPlan,
    ScanRequest,
    SchemaChange,
    TableDescriptor,
    TableInfo,
    TablePath,
)
from laketier_localfile.catalog import LocalFileCatalog
from laketier_localfile.layout import IN_PROGRESS, LAYOUT
from laketier_localfile.lying_place import lying_place_of
from laketier_localfile.rebuilding import what_is_left
from laketier_localfile.source import LocalFileSource

log = logging.getLogger(__name__)

INFERRED = "inferred"
"""The uuid of such a table: no commit is checked against it."""
_FIX = (
    "Restore the folder of manifests from a backup, with all that was written since; or run `laketier schema rebuild`, "
    "which makes it again from the files."
)


@dataclass(frozen=True)
class InferredFiles:
    """The handle of such a table."""

    descriptor: TableDescriptor
    entries: list[FileEntry]


@dataclass(frozen=True)
class LenientCatalog(LocalFileCatalog):
    """Loads also what is left of a table. Changes none of it."""

    def create_table(self, path: TablePath, descriptor: TableDescriptor) -> TableInfo:
        return self._strict.create_table(path, descriptor)

    def alter_table(self, path: TablePath, changes: Sequence[SchemaChange]) -> TableInfo:
        self._strict.load_table(path)  # tells a lost table from none
        return self._strict.alter_table(path, changes)

    @property
    def _strict(self) -> LocalFileCatalog:
        return LocalFileCatalog(self.table_type, self.warehouse, self.manifests_per_rollup, self.options)

    def load_table(self, path: TablePath) -> TableInfo:
        try:
            return super().load_table(path)
        except CorruptTable as error:
            place = lying_place_of(self.store(path))
            left = what_is_left(self, place, durable=False)
            staged = sum(1 for _ in place.store.files(IN_PROGRESS))
            log.warning(
                "%s is read by inference, as lake.localfile.require-metadata is false: %s. Its rows are those of all "
                "%s files in place; %s staged files are left out. Whether these are the rows of whole commits is not "
                "known. Writers are refused until you run `laketier schema rebuild %s`.%s",
                place.where,
                error.what,
                f"{len(left.entries):,}",
                f"{staged:,}",
                path,
                "".join(f" {sentence}" for sentence in left.told),
            )
            info = TableInfo(path, left.descriptor, INFERRED, place.where)
            return info.with_handle(InferredFiles(left.descriptor, left.entries))


def refuse_inferred(table: TableInfo) -> None:
    """Raise `CorruptTable` for a table that is known by inference alone."""
    if table.table_uuid == INFERRED:
        raise CorruptTable(
            "the table's manifests are lost, and only its rows can be read",
            where=table.location,
            why="nobody knows which commits its files are of",
            fix=_FIX,
        )


@dataclass(frozen=True)
class InferredSource(LocalFileSource):
    """Reads what is in place. There is no snapshot but that."""

    files: InferredFiles

    def plan(self, request: ScanRequest) -> ScanPlan:
        # Without a number, whoever names the rows of this plan names its files.
        return replace(super().plan(request), snapshot_id=None)

    def _snapshot(self, request: ScanRequest) -> ManifestSnapshot:
        if request.snapshot_id is not None or request.as_of is not None:
            raise FeatureNotSupported(
                "an older snapshot of a table that is read by inference", format=LAYOUT.format, reason=_FIX
            )
        manifests = ManifestLog(self.table.store, LAYOUT, INFERRED, 2)
        head = Manifest(
            table_uuid=INFERRED,
            number=0,
            previous="",
            at=0,
            commit_id="",
            kind="rebuild",
            metadata_at=0,
            added=tuple(self.files.entries),
            metadata=self.files.descriptor,
            origin=REBUILT,
        )
        return InferredSnapshot(manifests, head, head, settled=True)


@dataclass(frozen=True)
class InferredSnapshot(ManifestSnapshot):
    """One manifest, which nobody wrote."""

    @cached_property
    def descriptor(self) -> TableDescriptor:
        found = self.head.metadata
        if found is None:
            raise AssertionError("an inferred table has a description")
        return found

    def files(self) -> list[FileEntry]:
        return list(self.head.added)

    def written_with(self, entry: FileEntry) -> pa.Schema:
        return self.schema
