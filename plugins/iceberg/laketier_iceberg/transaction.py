"""Staging a snapshot and publishing it once: the only module that uses private names of pyiceberg (0.12).

pyiceberg's own `Transaction.commit_transaction` may not be used: with retries it appends a replayed epoch again, and
without them it deletes the manifests of a commit that landed although its answer was an error.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyiceberg.manifest import DataFile, ManifestContent, ManifestEntry, ManifestEntryStatus, ManifestFile
from pyiceberg.table import Table, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update import (
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
from pyiceberg.table.update.snapshot import _FastAppendFiles

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
            self.table.catalog._delete_old_metadata(self.table.io, before, landed.metadata)
        except Exception as error:  # noqa: BLE001 - it landed: nothing that fails now may make that unknown
            log.warning("old metadata files could not be deleted, orphan collection will find them: %s", error)

    def forget(self) -> None:
        """Delete the manifests. Only when it is certain that the snapshot did not land and never will."""
        for path in (*self._producer._written_manifests, *self._producer._written_manifest_lists):
            try:
                self.table.io.delete(path)
            except Exception as error:  # noqa: BLE001 - best effort: orphan collection finds what is left
                log.warning("manifest %s of a lost attempt could not be deleted: %s", path, error)


def stage(table: Table, files: Iterable[DataFile], summary: Mapping[str, str], *, replace: bool) -> StagedSnapshot:
    """Write the manifests of a snapshot on top of ``table`` as it was loaded. Files are added to what is there, or
    replace all of it. A snapshot comes out also without files: a commit of properties alone is no compare-and-set."""
    transaction = _Transaction(table)
    if replace:
        operation = Operation.OVERWRITE if table.metadata.current_snapshot() is not None else Operation.APPEND
        producer: Any = _ReplaceAll(
            operation=operation, transaction=transaction, io=table.io, snapshot_properties=dict(summary)
        )
    else:
        producer = transaction._append_snapshot_producer(dict(summary))
    for file in files:
        producer.append_data_file(file)
    sequence = table.metadata.next_sequence_number()
    producer.commit()
    return StagedSnapshot(table, transaction, producer.snapshot_id, sequence, producer)
