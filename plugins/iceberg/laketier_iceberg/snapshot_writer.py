"""Writes the manifests of one snapshot, and the list of them. Nothing points at them yet. Driver.

Their names hold a random id, so no two attempts share a file.
"""

from __future__ import annotations

import itertools
import logging
import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pyiceberg.manifest import (
    DataFile,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriter,
    write_manifest,
    write_manifest_list,
)
from pyiceberg.table import Table, TableProperties
from pyiceberg.table.snapshots import Operation, SnapshotSummaryCollector, Summary, update_snapshot_summaries
from pyiceberg.utils.bin_packing import ListPacker
from pyiceberg.utils.properties import property_as_bool, property_as_int

from laketier_iceberg.table_properties import manifest_codec

log = logging.getLogger(__name__)


class SnapshotWriter:
    """One attempt to add a snapshot on top of ``table`` as it was loaded."""

    def __init__(self, table: Table) -> None:
        self.snapshot_id = table.metadata.new_snapshot_id()
        self._table = table
        self._metadata = table.metadata
        self._attempt = uuid.uuid4()
        self._locations = table.location_provider()
        self._compression: Any = manifest_codec(table.metadata.properties, ".".join(table.name()))
        self._numbers = itertools.count()
        self._paths: list[str] = []

    def added(self, files: Sequence[DataFile]) -> list[ManifestFile]:
        """A manifest of new files, all of the table's default spec; none where there are no files."""
        if not files:
            return []
        with self._manifest(self._metadata.default_spec_id) as writer:
            for file in files:
                status = ManifestEntryStatus.ADDED
                # Without sequence numbers: readers take them from the manifest list.
                writer.add(ManifestEntry.from_args(status=status, snapshot_id=self.snapshot_id, data_file=file))
        return [writer.to_manifest_file()]

    def removed(self, entries: Iterable[ManifestEntry]) -> list[ManifestFile]:
        """Manifests that say of live entries that they are gone, one for each partition spec."""
        by_spec: dict[int, list[ManifestEntry]] = defaultdict(list)
        for entry in entries:
            by_spec[entry.data_file.spec_id].append(entry)
        made = []
        for spec_id, gone in by_spec.items():
            with self._manifest(spec_id) as writer:
                for entry in gone:
                    writer.delete(entry)
            made.append(writer.to_manifest_file())
        return made

    def without(self, manifest: ManifestFile, entries: Iterable[ManifestEntry], paths: Collection[str]) -> ManifestFile:
        """``manifest``, whose live entries are ``entries``, rewritten: of the files ``paths`` it says that they are
        gone."""
        with self._manifest(manifest.partition_spec_id) as writer:
            for entry in entries:
                if entry.data_file.file_path in paths:
                    writer.delete(entry)
                else:
                    writer.existing(entry)
        return writer.to_manifest_file()

    def merged(self, manifests: Sequence[ManifestFile]) -> list[ManifestFile]:
        """The same entries in fewer manifests, the newest of ``manifests`` first, if the table's ``commit.manifest*``
        says so. The rules are those of Java Iceberg and pyiceberg. Manifests of deletes stay as they are."""
        properties = self._metadata.properties
        data = [manifest for manifest in manifests if manifest.content == ManifestContent.DATA]
        if not data or not property_as_bool(
            properties, TableProperties.MANIFEST_MERGE_ENABLED, TableProperties.MANIFEST_MERGE_ENABLED_DEFAULT
        ):
            return list(manifests)
        size = property_as_int(
            properties, TableProperties.MANIFEST_TARGET_SIZE_BYTES, TableProperties.MANIFEST_TARGET_SIZE_BYTES_DEFAULT
        )
        least = property_as_int(
            properties, TableProperties.MANIFEST_MIN_MERGE_COUNT, TableProperties.MANIFEST_MIN_MERGE_COUNT_DEFAULT
        )
        assert size is not None
        assert least is not None
        packer: ListPacker[ManifestFile] = ListPacker(target_weight=size, lookback=1, largest_bin_first=False)
        kept: list[ManifestFile] = []
        for spec_id in sorted({manifest.partition_spec_id for manifest in data}, reverse=True):
            own = [manifest for manifest in data if manifest.partition_spec_id == spec_id]
            for group in packer.pack_end(own, lambda manifest: manifest.manifest_length):
                # The newest manifests wait until there are enough of them. Older ones are merged once they fill a bin.
                is_waiting = data[0] in group and len(group) < least
                kept += group if len(group) == 1 or is_waiting else [self._merge(spec_id, group)]
        return kept + [manifest for manifest in manifests if manifest.content != ManifestContent.DATA]

    def manifest_list(self, manifests: Sequence[ManifestFile], parent: int | None, sequence_number: int) -> str:
        """Write the list of the snapshot's manifests. Returns its location."""
        path = self._new_path(f"snap-{self.snapshot_id}-0-{self._attempt}.avro")
        with write_manifest_list(
            format_version=self._metadata.format_version,
            output_file=self._table.io.new_output(path),
            snapshot_id=self.snapshot_id,
            parent_snapshot_id=parent,
            sequence_number=sequence_number,
            avro_compression=self._compression,
        ) as writer:
            writer.add_manifests(list(manifests))
        return path

    def summary(
        self, operation: Operation, added: Iterable[DataFile], removed: Iterable[DataFile], own: Mapping[str, str]
    ) -> Summary:
        """What the snapshot did, with the table's totals after it. ``own``: more keys."""
        limit = self._metadata.properties.get(
            TableProperties.WRITE_PARTITION_SUMMARY_LIMIT, TableProperties.WRITE_PARTITION_SUMMARY_LIMIT_DEFAULT
        )
        schema, specs = self._metadata.schema(), self._metadata.specs()
        collector = SnapshotSummaryCollector(partition_summary_limit=int(limit))
        for file in added:
            collector.add_file(file, schema, specs[self._metadata.default_spec_id])
        for file in removed:
            collector.remove_file(file, schema, specs[file.spec_id])
        current = self._metadata.current_snapshot()
        return update_snapshot_summaries(
            Summary(operation=operation, **collector.build(), **own), None if current is None else current.summary
        )

    def forget(self) -> None:
        """Delete what was written. Only when it is certain that the snapshot did not land and never will."""
        self._delete(self._paths)

    def _delete(self, paths: Iterable[str]) -> None:
        for path in paths:
            try:
                self._table.io.delete(path)
            except Exception as error:  # noqa: BLE001 - best effort: orphan collection finds what is left
                log.warning("manifest %s of no snapshot could not be deleted: %s", path, error)

    def _merge(self, spec_id: int, manifests: Sequence[ManifestFile]) -> ManifestFile:
        with self._manifest(spec_id) as writer:
            for manifest in manifests:
                for entry in manifest.fetch_manifest_entry(self._table.io, discard_deleted=False):
                    own = entry.snapshot_id == self.snapshot_id
                    if entry.status != ManifestEntryStatus.DELETED:
                        (writer.add if own else writer.existing)(entry)
                    elif own:  # what older snapshots removed is said in their own manifests
                        writer.delete(entry)
        # Those of this attempt are in none but the merged one, and no snapshot ever names them.
        own_paths = {manifest.manifest_path for manifest in manifests}.intersection(self._paths)
        self._paths = [path for path in self._paths if path not in own_paths]
        self._delete(own_paths)
        return writer.to_manifest_file()

    @contextmanager
    def _manifest(self, spec_id: int) -> Iterator[ManifestWriter]:
        path = self._new_path(f"{self._attempt}-m{next(self._numbers)}.avro")
        with write_manifest(
            format_version=self._metadata.format_version,
            spec=self._metadata.specs()[spec_id],
            schema=self._metadata.schema(),
            output_file=self._table.io.new_output(path),
            snapshot_id=self.snapshot_id,
            avro_compression=self._compression,
        ) as writer:
            yield writer

    def _new_path(self, name: str) -> str:
        path = self._locations.new_metadata_location(name)
        self._paths.append(path)
        return path
