"""Staging a snapshot and publishing it once, with pyiceberg's public parts.

pyiceberg's own `Transaction.commit_transaction` may not be used: with retries it appends a replayed epoch again, and
without them it deletes the manifests of a commit that landed although its answer was an error.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pyiceberg.manifest import DataFile, ManifestContent, ManifestEntry, ManifestFile
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import Operation, Snapshot
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    AssertCurrentSchemaId,
    AssertDefaultSpecId,
    AssertRefSnapshotId,
    RemoveSnapshotRefUpdate,
    RemoveSnapshotsUpdate,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
    TableUpdate,
    update_table_metadata,
)

from laketier_iceberg.commit import commit
from laketier_iceberg.snapshot_writer import SnapshotWriter
from laketier_iceberg.times import next_time


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


class StagedSnapshot:
    """A snapshot whose manifests are written and which nothing points at yet."""

    def __init__(self, table: Table, snapshot: Snapshot, writer: SnapshotWriter) -> None:
        self.table = table
        self.snapshot = snapshot
        self._writer = writer
        self._updates: tuple[TableUpdate, ...] = (
            AddSnapshotUpdate(snapshot=snapshot),
            _main_at(snapshot.snapshot_id, table.metadata),
        )

    def set_properties(self, properties: dict[str, str]) -> None:
        """Set table properties in the same commit."""
        self._updates += (SetPropertiesUpdate(updates=properties),)

    def expire(self, snapshot_ids: Sequence[int], refs: Iterable[str]) -> None:
        """Remove refs and snapshots from the metadata in the same commit."""
        self._updates += tuple(RemoveSnapshotRefUpdate.model_validate({"ref-name": name}) for name in refs)
        if snapshot_ids:
            self._updates += (RemoveSnapshotsUpdate.model_validate({"snapshot-ids": list(snapshot_ids)}),)

    def metadata(self) -> TableMetadata:
        """The table's metadata as it would be. pyiceberg copies all of it, with every snapshot."""
        return update_table_metadata(self.table.metadata, self._updates)

    def publish(self) -> None:
        """The atomic step, once. Raises what the catalog raises, and deletes no manifest."""
        before = self.table.metadata
        current = before.current_snapshot()
        commit(
            self.table,
            self._updates,
            AssertRefSnapshotId.model_validate(
                {"ref": MAIN_BRANCH, "snapshot-id": None if current is None else current.snapshot_id}
            ),
            AssertCurrentSchemaId.model_validate({"current-schema-id": before.current_schema_id}),
            AssertDefaultSpecId.model_validate({"default-spec-id": before.default_spec_id}),
        )

    def forget(self) -> None:
        """Delete the manifests. Only when it is certain that the snapshot did not land and never will."""
        self._writer.forget()


def stage(
    table: Table, files: Sequence[DataFile], summary: Mapping[str, str], *, replace: bool, leaving: Leaving = NOTHING
) -> StagedSnapshot:
    """Write the manifests of a snapshot on top of ``table`` as it was loaded. Files are added to what is there, or
    replace all of it, or what is ``leaving``. A snapshot comes out also without files: a commit of properties alone is
    no compare-and-set."""
    parent = table.metadata.current_snapshot()
    writer = SnapshotWriter(table)
    # A manifest that lists no live file says what an older snapshot removed, and is left behind.
    before = [] if parent is None else [m for m in parent.manifests(table.io) if _has_live_files(m)]
    if replace:
        kept, gone = _replace_all(table, writer, before)
        operation = Operation.APPEND if parent is None else Operation.OVERWRITE
        manifests = [*writer.added(files), *kept]
    else:
        kept, gone = _replace_some(writer, before, leaving)
        operation = Operation.APPEND if not leaving.paths else Operation.OVERWRITE if files else Operation.DELETE
        manifests = writer.merged([*writer.added(files), *kept])
    parent_id = None if parent is None else parent.snapshot_id
    sequence_number = table.metadata.next_sequence_number()
    snapshot = Snapshot.model_validate(
        {
            "snapshot-id": writer.snapshot_id,
            "parent-snapshot-id": parent_id,
            "manifest-list": writer.manifest_list(manifests, parent_id, sequence_number),
            "sequence-number": sequence_number,
            "summary": writer.summary(operation, files, gone, summary),
            "schema-id": table.metadata.current_schema_id,
            "timestamp-ms": next_time(table.metadata),
        }
    )
    return StagedSnapshot(table, snapshot, writer)


def _replace_all(
    table: Table, writer: SnapshotWriter, before: Sequence[ManifestFile]
) -> tuple[list[ManifestFile], list[DataFile]]:
    """Manifests after which no data file is left, and the files that are gone."""
    data = [manifest for manifest in before if manifest.content == ManifestContent.DATA]
    entries = [entry for manifest in data for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True)]
    # Delete files stay listed: they are older than what is added, so they apply to none of it.
    deletes = [manifest for manifest in before if manifest.content == ManifestContent.DELETES]
    return [*writer.removed(entries), *deletes], [entry.data_file for entry in entries]


def _replace_some(
    writer: SnapshotWriter, before: Sequence[ManifestFile], leaving: Leaving
) -> tuple[list[ManifestFile], list[DataFile]]:
    """Manifests without the files that leave, and these files.

    Only manifests that list files which leave are rewritten; the next commit drops those that list no live file.
    pyiceberg's own overwrite keeps those for ever, and never merges manifests. Files of positional deletes stay listed:
    they may be about other files too, and what they say of a file that is gone means nothing.
    """
    kept = [
        writer.without(manifest, leaving.manifests[manifest.manifest_path], leaving.paths)
        if manifest.manifest_path in leaving.manifests
        else manifest
        for manifest in before
    ]
    listed = (entry.data_file for entries in leaving.manifests.values() for entry in entries)
    return kept, [file for file in listed if file.file_path in leaving.paths]


def _main_at(snapshot_id: int, before: TableMetadata) -> SetSnapshotRefUpdate:
    """Moves ``main`` to a snapshot. What it retains stays as it was: an update without it takes that away."""
    ref = before.refs.get(MAIN_BRANCH)
    retains = {} if ref is None else ref.model_dump(by_alias=True, exclude_none=True)
    return SetSnapshotRefUpdate.model_validate(
        {**retains, "ref-name": MAIN_BRANCH, "type": SnapshotRefType.BRANCH, "snapshot-id": snapshot_id}
    )


def _has_live_files(manifest: ManifestFile) -> bool:
    return manifest.has_added_files() or manifest.has_existing_files()
