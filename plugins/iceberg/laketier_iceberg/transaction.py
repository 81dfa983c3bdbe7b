"""Staging a snapshot and publishing it once: the only module that uses private names of pyiceberg (0.12).

pyiceberg's own `Transaction.commit_transaction` may not be used: with retries it appends a replayed epoch again, and
without them it deletes the manifests of a commit that landed although its answer was an error.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyiceberg.manifest import DataFile, ManifestContent, ManifestEntry, ManifestEntryStatus, ManifestFile
from pyiceberg.table import Table, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    AssertCurrentSchemaId,
    AssertDefaultSpecId,
    AssertRefSnapshotId,
    AssertTableUUID,
    RemoveSnapshotRefUpdate,
    RemoveSnapshotsUpdate,
    TableRequirement,
    TableUpdate,
    update_table_metadata,
)
from pyiceberg.table.update.snapshot import _FastAppendFiles, _MergeAppendFiles

from laketier_iceberg.removal import delete_old_metadata
from laketier_iceberg.times import next_time

log = logging.getLogger(__name__)

MAIN = "main"


class _Transaction(Transaction):
    """A transaction that computes its metadata once per change.

    pyiceberg copies the whole metadata, with every snapshot, at each look; a commit takes fifteen looks. Nobody
    changes what it returns.
    """

    _seen: tuple[TableUpdate, ...] = ()
    _metadata: TableMetadata | None = None

    @property
    def table_metadata(self) -> TableMetadata:
        """The table's metadata with the staged updates."""
        if not self._updates:
            return self._table.metadata
        if self._metadata is None or self._seen is not self._updates:
            self._seen = self._updates
            self._metadata = update_table_metadata(self._table.metadata, self._updates)
        return self._metadata


class _ReplaceAll(_FastAppendFiles):
    """Removes every data file and adds the new ones, in one snapshot."""

    def _existing_manifests(self) -> list[ManifestFile]:
        # Delete files stay listed: they are older than what is added, so they apply to none of it.
        return [manifest for manifest in self._manifests_before() if manifest.content == ManifestContent.DELETES]

    def _deleted_entries(self) -> list[ManifestEntry]:
        entries = []
        for manifest in self._manifests_before():
            if manifest.content != ManifestContent.DATA:
                continue
            for entry in manifest.fetch_manifest_entry(io=self._io, discard_deleted=True):
                self._deleted_data_files.add(entry.data_file)
                entries.append(
                    ManifestEntry.from_args(
                        status=ManifestEntryStatus.DELETED,
                        snapshot_id=self._snapshot_id,
                        sequence_number=entry.sequence_number,
                        file_sequence_number=entry.file_sequence_number,
                        data_file=entry.data_file,
                    )
                )
        return entries

    def _manifests_before(self) -> list[ManifestFile]:
        if self._parent_snapshot_id is None:
            return []
        snapshot = self._transaction.table_metadata.snapshot_by_id(self._parent_snapshot_id)
        return [] if snapshot is None else snapshot.manifests(io=self._io)


@dataclass(frozen=True)
class Leaving:
    """The data files that leave with a snapshot. ``paths`` as the metadata spells them. ``manifests``: the path of each
    manifest that lists one of them → all its live entries."""

    paths: frozenset[str] = frozenset()
    manifests: Mapping[str, Sequence[ManifestEntry]] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Table, paths: Collection[str]) -> Leaving:
        """Those of ``paths`` that are live in the current snapshot. Reads its manifests, the newest first, until each
        is found."""
        snapshot = table.metadata.current_snapshot()
        missing = set(paths)
        found: dict[str, Sequence[ManifestEntry]] = {}
        for manifest in () if snapshot is None else snapshot.manifests(table.io):
            if not missing:
                break
            if manifest.content != ManifestContent.DATA:
                continue
            entries = manifest.fetch_manifest_entry(table.io, discard_deleted=True)
            here = missing.intersection(entry.data_file.file_path for entry in entries)
            if here:
                found[manifest.manifest_path] = entries
                missing -= here
        return cls(frozenset(paths) - missing, found)


NOTHING = Leaving()


class _ReplaceSome(_MergeAppendFiles):
    """Removes some data files and adds the new ones, in one snapshot.

    Only manifests that list files which leave are written anew; the next commit drops those that list no live file.
    pyiceberg's own overwrite keeps those for ever, and never merges manifests. Files of positional deletes stay listed:
    they may be about other files too, and what they say of a file that is gone means nothing.
    """

    leaving: Leaving

    def _deleted_entries(self) -> list[ManifestEntry]:
        # For the summary. The entries themselves are in the manifests that are written anew.
        entries = (entry for entries in self.leaving.manifests.values() for entry in entries)
        self._deleted_data_files |= {e.data_file for e in entries if e.data_file.file_path in self.leaving.paths}
        return []

    def _existing_manifests(self) -> list[ManifestFile]:
        return [
            self._without(manifest, self.leaving.manifests[manifest.manifest_path])
            if manifest.manifest_path in self.leaving.manifests
            else manifest
            for manifest in super()._existing_manifests()
        ]

    def _without(self, manifest: ManifestFile, entries: Iterable[ManifestEntry]) -> ManifestFile:
        with self.new_manifest_writer(self.spec(manifest.partition_spec_id)) as writer:
            for entry in entries:
                if entry.data_file.file_path in self.leaving.paths:
                    writer.delete(entry)
                else:
                    writer.existing(entry)
        return writer.to_manifest_file()


@dataclass
class StagedSnapshot:
    """A snapshot whose manifests are written and which nothing points at yet."""

    table: Table
    transaction: Transaction
    snapshot_id: int
    sequence_number: int
    _producer: Any

    def set_properties(self, properties: Mapping[str, str]) -> None:
        """Set table properties in the same commit."""
        self.transaction.set_properties(dict(properties))

    def expire(self, snapshot_ids: Sequence[int], refs: Iterable[str]) -> None:
        """Remove refs and snapshots from the metadata in the same commit."""
        updates: list[TableUpdate] = [RemoveSnapshotRefUpdate.model_validate({"ref-name": name}) for name in refs]
        if snapshot_ids:
            updates.append(RemoveSnapshotsUpdate.model_validate({"snapshot-ids": list(snapshot_ids)}))
        if updates:
            self.transaction._stage(tuple(updates))

    @property
    def metadata(self) -> Any:
        """The table's metadata as it would be."""
        return self.transaction.table_metadata

    def publish(self) -> None:
        """The atomic step, once. Raises what the catalog raises, and deletes nothing."""
        before = self.table.metadata
        current = before.current_snapshot()
        requirements: tuple[TableRequirement, ...] = (
            AssertTableUUID(uuid=before.table_uuid),
            AssertRefSnapshotId.model_validate(
                {"ref": MAIN, "snapshot-id": None if current is None else current.snapshot_id}
            ),
            AssertCurrentSchemaId.model_validate({"current-schema-id": before.current_schema_id}),
            AssertDefaultSpecId.model_validate({"default-spec-id": before.default_spec_id}),
        )
        landed = self.table.catalog.commit_table(self.table, requirements, self.transaction._updates)
        try:
            # Only if the table's write.metadata.delete-after-commit.enabled says so.
            delete_old_metadata(self.table.io, before, landed.metadata)
        except Exception as error:  # noqa: BLE001 - it landed: nothing that fails now may make that unknown
            log.warning("old metadata files could not be deleted, orphan collection will find them: %s", error)

    def forget(self) -> None:
        """Delete the manifests. Only when it is certain that the snapshot did not land and never will."""
        for path in (*self._producer._written_manifests, *self._producer._written_manifest_lists):
            try:
                self.table.io.delete(path)
            except Exception as error:  # noqa: BLE001 - best effort: orphan collection finds what is left
                log.warning("manifest %s of a lost attempt could not be deleted: %s", path, error)


def stage(
    table: Table, files: Sequence[DataFile], summary: Mapping[str, str], *, replace: bool, leaving: Leaving = NOTHING
) -> StagedSnapshot:
    """Write the manifests of a snapshot on top of ``table`` as it was loaded. Files are added to what is there, or
    replace all of it, or what is ``leaving``. A snapshot comes out also without files: a commit of properties alone is
    no compare-and-set."""
    transaction = _Transaction(table)
    if replace:
        operation = Operation.OVERWRITE if table.metadata.current_snapshot() is not None else Operation.APPEND
        producer: Any = _ReplaceAll(
            operation=operation, transaction=transaction, io=table.io, snapshot_properties=dict(summary)
        )
    elif leaving.paths:
        operation = Operation.OVERWRITE if files else Operation.DELETE
        producer = _ReplaceSome(
            operation=operation, transaction=transaction, io=table.io, snapshot_properties=dict(summary)
        )
        producer.leaving = leaving
    else:
        producer = transaction._append_snapshot_producer(dict(summary))
    for file in files:
        producer.append_data_file(file)
    sequence = table.metadata.next_sequence_number()
    producer.commit()
    at = next_time(table.metadata)
    transaction._updates = tuple(
        AddSnapshotUpdate(snapshot=update.snapshot.model_copy(update={"timestamp_ms": at}))
        if isinstance(update, AddSnapshotUpdate)
        else update
        for update in transaction._updates
    )
    return StagedSnapshot(table, transaction, producer.snapshot_id, sequence, producer)
