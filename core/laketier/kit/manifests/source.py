"""Reading a table of files and manifests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from laketier.kit.manifests.chain import manifest_as_of, manifest_at
from laketier.kit.manifests.file_entry import FileEntry
from laketier.kit.manifests.snapshot import ManifestSnapshot
from laketier.kit.manifests.table import ManifestState, ManifestTable
from laketier.kit.many_objects import making_many_objects
from laketier.kit.scans import cut_to_limit
from laketier.spi.features import Feature, support_of
from laketier.spi.predicate import Predicate
from laketier.spi.source import LakeSource, LakeSplit, ScanPlan, ScanRequest


@dataclass(frozen=True)
class ManifestFile:
    """A data file. ``path``: relative to the table."""

    path: str


def whole_file(index: int, entry: FileEntry, payload: object, plain_parquet: str | None = None) -> LakeSplit:
    """The split of all rows of a data file, for `ManifestSource.split`. Driver. ``payload``: what the reader needs of
    it, of ``split_payload``. ``plain_parquet``: its path, where any reader of Parquet may read it instead."""
    return LakeSplit(
        index=index,
        rows=entry.rows,
        bytes=entry.bytes,
        bucket=-1 if entry.bucket is None else entry.bucket,
        partition=entry.partition,
        plain_parquet=plain_parquet,
        files=(entry.path,),
        payload=payload,
    )


@dataclass(frozen=True)
class ManifestSource(LakeSource):
    """Reads a `ManifestTable`: one split per data file of a snapshot, pinned by its manifest. Needs read access only.

    An author derives it and writes `read`. A split's payload is a `ManifestFile`; a format that needs more overrides
    `split` and ``split_payload``. Where the format has `Feature.LIMIT_PUSHDOWN`, a split may be cut: ``split.limit``
    says how many of the file's first rows are read. Time travel is refused unless ``features`` have it.
    """

    split_payload: ClassVar[type] = ManifestFile

    table: ManifestTable

    def prune(
        self, snapshot: ManifestSnapshot, filters: tuple[Predicate, ...]
    ) -> tuple[Sequence[FileEntry], tuple[Predicate, ...]]:
        """Return the files of ``snapshot`` that may hold matching rows, and the filters that the reader has to
        apply. Driver. The default returns all files and all filters."""
        return snapshot.files(), filters

    def split(self, index: int, entry: FileEntry, snapshot: ManifestSnapshot, wanted: pa.Schema) -> LakeSplit:
        """The split of one whole file of which ``wanted`` is read. Driver."""
        return whole_file(index, entry, ManifestFile(entry.path))

    def arrived_split(self, index: int, entry: FileEntry, snapshot: ManifestSnapshot, wanted: pa.Schema) -> LakeSplit:
        """The split of the rows that the commit of ``entry`` added to its file. Driver. A format whose files stay open
        across commits overrides it."""
        return self.split(index, entry, snapshot, wanted)

    @making_many_objects()
    def plan(self, request: ScanRequest) -> ScanPlan:
        snapshot = self._snapshot(request)
        wanted = request.projected(snapshot.schema, where=self.table.store.root)
        kept, remaining = self.prune(snapshot, request.filters)
        splits = [self.split(index, entry, snapshot, wanted) for index, entry in enumerate(kept)]
        limits = support_of(self.table.features, Feature.LIMIT_PUSHDOWN).full
        if request.limit is not None and not remaining and limits:
            splits = cut_to_limit(splits, request.limit)
        return ScanPlan(
            snapshot_id=snapshot.manifest.number,
            schema=wanted,
            splits=tuple(splits),
            remaining=remaining,
        )

    def _snapshot(self, request: ScanRequest) -> ManifestSnapshot:
        if (seen := request.seen(ManifestState)) is not None:
            return ManifestSnapshot(seen.manifests, seen.head, seen.head, settled=False)
        manifests = self.table.manifests()
        head, settled = manifests.current()
        manifest = head
        if request.snapshot_id is not None:
            self.table.require(Feature.TIME_TRAVEL)
            manifest = manifest_at(manifests, request.snapshot_id, head)
        elif request.as_of is not None:
            self.table.require(Feature.TIME_TRAVEL_BY_TIMESTAMP)
            manifest = manifest_as_of(manifests, request.as_of, head)
        return ManifestSnapshot(manifests, head, manifest, settled)
