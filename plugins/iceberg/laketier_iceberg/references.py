"""The files that a table's metadata names, over all retained snapshots of all refs. Driver."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from laketier_iceberg.locations import Below, decoded
from laketier_iceberg.manifests import naming_damaged_manifests

if TYPE_CHECKING:
    from pyiceberg.manifest import ManifestFile
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata


def may_delete(metadata: TableMetadata) -> bool:
    """Whether the table lets anybody delete files that it does not need: its property ``gc.enabled``."""
    return metadata.properties.get("gc.enabled", "true").lower() != "false"


def locations(table: Table) -> Iterator[str]:
    """Every location that the metadata names. Reads each manifest once, however many snapshots share it. Raises
    `CorruptTable` for one that can't be read."""
    with naming_damaged_manifests(table, table.snapshots(), ".".join(table.name())):
        yield from _locations(table)


def _locations(table: Table) -> Iterator[str]:
    metadata = table.metadata
    yield table.metadata_location
    yield from (entry.metadata_file for entry in metadata.metadata_log)
    yield from (file.statistics_path for file in metadata.statistics)
    yield from (file.statistics_path for file in metadata.partition_statistics)
    manifests: dict[str, ManifestFile] = {}
    for snapshot in metadata.snapshots:
        yield snapshot.manifest_list
        for manifest in snapshot.manifests(table.io):
            manifests.setdefault(manifest.manifest_path, manifest)
    for path, manifest in manifests.items():
        yield path
        # What a snapshot has removed is an entry of an older one, for as long as that is retained.
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
            yield entry.data_file.file_path


@dataclass
class References:
    """The names in the metadata, to compare listed files with."""

    inside: set[str] = field(default_factory=set)
    """Keys (`Below.key`) of files below the table."""
    names_inside: set[str] = field(default_factory=set)
    names_outside: dict[str, str] = field(default_factory=dict)
    """The name of each file that lies elsewhere, and its location."""

    @classmethod
    def of(cls, table: Table, below: Below) -> References:
        """Of a table that was just loaded."""
        found = cls()
        for location in locations(table):
            key = below.key(location)
            name = name_of(location)
            if key is None:
                found.names_outside[name] = location
            else:
                found.inside.add(key)
                found.names_inside.add(name)
        return found

    @property
    def names(self) -> set[str]:
        """Of all files, wherever they lie."""
        return self.names_inside | self.names_outside.keys()


def name_of(location: str) -> str:
    """The last part of a location, by which files are told apart where the way to them is spelled differently."""
    return decoded(location.rpartition("/")[2])
