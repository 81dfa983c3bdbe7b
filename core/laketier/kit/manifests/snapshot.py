"""One snapshot of a table, as a reader sees it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import pyarrow as pa

from laketier.kit.manifests.chain import written_with
from laketier.kit.manifests.file_entry import FileEntry
from laketier.kit.manifests.log import ManifestLog
from laketier.kit.manifests.manifest import Manifest
from laketier.kit.manifests.rollup import files_at
from laketier.spi.table import TableDescriptor

T = TypeVar("T")


@dataclass(frozen=True)
class ManifestSnapshot:
    """The table at ``manifest``, for a plan. Driver. ``head`` is the newest manifest. ``settled``: whether the commits
    up to ``head`` are finished, and its files are where they stay."""

    manifests: ManifestLog
    head: Manifest
    manifest: Manifest
    settled: bool
    _schemas: dict[int, pa.Schema] = field(default_factory=dict)
    _remembered: dict[Hashable, Any] = field(default_factory=dict)

    def remembered(self, key: Hashable, make: Callable[[], T]) -> T:
        """What ``make`` gives, made once for each ``key``: what a plan needs for each of many files alike."""
        if key not in self._remembered:
            self._remembered[key] = make()
        found: T = self._remembered[key]
        return found

    @property
    def is_newest(self) -> bool:
        """Whether it is the newest snapshot."""
        return self.manifest.number == self.head.number

    @cached_property
    def descriptor(self) -> TableDescriptor:
        """The table's definition at this snapshot."""
        return self.manifests.metadata(self.manifest)

    @property
    def schema(self) -> pa.Schema:
        """The table's columns at this snapshot."""
        return self.descriptor.schema

    def files(self) -> list[FileEntry]:
        """The data files of the snapshot, in the order in which they were added."""
        return files_at(self.manifests, self.manifest.number, self.manifest)

    def written_with(self, entry: FileEntry) -> pa.Schema:
        """The table's columns when a file was written. The file has no other columns, and may have narrower types."""
        if entry.schema == self.manifest.metadata_at:
            return self.schema
        if entry.schema not in self._schemas:
            self._schemas[entry.schema] = written_with(self.manifests, entry.schema, self.manifest).schema
        return self._schemas[entry.schema]
