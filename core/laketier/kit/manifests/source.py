"""Reading a table of files and manifests: plans, history, and the table as a log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from laketier.kit.manifests.log import ManifestLog
from laketier.kit.manifests.manifest import FileEntry, Manifest
from laketier.kit.manifests.rollup import files_at
from laketier.kit.manifests.snapshot import ManifestSnapshot
from laketier.kit.manifests.table import ManifestState, ManifestTable
from laketier.kit.scans import check_versions, cut_to_limit
from laketier.spi.features import Feature, support_of
from laketier.spi.predicate import Predicate
from laketier.spi.source import (
    LakeSource,
    LakeSplit,
    ScanPlan,
    ScanRequest,
    SnapshotInfo,
    VersionBounds,
    pass_over,
)

_APPENDS = ("append", "create", "alter")


@dataclass(frozen=True)
class ManifestSource(LakeSource):
    """Reads a `ManifestTable`: one split per data file of a snapshot, pinned by its manifest. Needs read access only.

    An author derives it and writes `read`. A split's payload has the ``path`` of the entry, relative to the table;
    `split` adds to it. Where the format has `Feature.LIMIT_PUSHDOWN`, a split may be cut: ``split.rows`` says how many
    of the file's first rows it has. Time travel and following the table are refused unless ``features`` have them.
    """

    table: ManifestTable

    def prune(
        self, snapshot: ManifestSnapshot, filters: tuple[Predicate, ...]
    ) -> tuple[Sequence[FileEntry], tuple[Predicate, ...]]:
        """The files of ``snapshot`` that may have rows which match, and the filters that the reader has to apply.
        Driver. By default all of both."""
        return snapshot.files(), filters

    def split(self, index: int, entry: FileEntry, snapshot: ManifestSnapshot, wanted: pa.Schema) -> LakeSplit:
        """The split of one whole file of which ``wanted`` is read. Driver."""
        return LakeSplit(
            index=index,
            rows=entry.rows,
            bytes=entry.bytes,
            bucket=-1 if entry.bucket is None else entry.bucket,
            partition=entry.partition,
            files=(entry.path,),
            payload={"path": entry.path},
        )

    def plan(self, request: ScanRequest) -> ScanPlan:
        snapshot = self._snapshot(request)
        wanted = request.projected(snapshot.schema, where=str(self.table.location))
        kept, remaining = self.prune(snapshot, request.filters)
        splits = [self.split(index, entry, snapshot, wanted) for index, entry in enumerate(kept)]
        limits = support_of(self.table.features, Feature.LIMIT_PUSHDOWN).full
        cut = None if request.limit is None or remaining or not limits else cut_to_limit(splits, request.limit)
        return ScanPlan(
            snapshot_id=snapshot.manifest.number,
            schema=wanted,
            splits=tuple(splits if cut is None else cut),
            remaining=remaining,
            limit_done=cut is not None,
        )

    def history(self, limit: int) -> list[SnapshotInfo]:
        self.table.require(Feature.TIME_TRAVEL)
        manifests = self.table.manifests()
        head, _ = manifests.current()
        numbers = range(head.number, max(head.number - limit, -1), -1)
        return [_info(head if number == head.number else manifests.at(number, head)) for number in numbers]

    def versions(self) -> VersionBounds:
        """Every manifest is kept, so all versions can be read."""
        self.table.require(Feature.INCREMENTAL_READ)
        return _bounds(self.table.manifests().current()[0])

    def plan_changes(self, start: int, end: int, *, skip_changes: bool = False) -> ScanPlan:
        self.table.require(Feature.INCREMENTAL_READ)
        manifests = self.table.manifests()
        head, settled = manifests.current()
        snapshot = ManifestSnapshot(manifests, head, head, settled)
        splits = [
            replace(self.split(index, entry, snapshot, snapshot.schema), plain_parquet=None)
            for index, entry in enumerate(_appended(manifests, head, start, end, skip_changes=skip_changes))
        ]
        return ScanPlan(snapshot_id=end - 1, schema=snapshot.schema, splits=tuple(splits))

    def _snapshot(self, request: ScanRequest) -> ManifestSnapshot:
        if (seen := request.seen(ManifestState)) is not None:
            return ManifestSnapshot(seen.manifests, seen.head, seen.head, settled=False)
        manifests = self.table.manifests()
        head, settled = manifests.current()
        manifest = head
        if request.snapshot_id is not None:
            self.table.require(Feature.TIME_TRAVEL)
            manifest = manifests.at(request.snapshot_id, head)
        elif request.as_of is not None:
            self.table.require(Feature.TIME_TRAVEL_BY_TIMESTAMP)
            manifest = manifests.as_of(request.as_of, head)
        return ManifestSnapshot(manifests, head, manifest, settled)


def _bounds(head: Manifest) -> VersionBounds:
    return VersionBounds(earliest=0, latest=head.number + 1, latest_at=head.at)


def _appended(
    manifests: ManifestLog, head: Manifest, start: int, end: int, *, skip_changes: bool
) -> Iterator[FileEntry]:
    """The files that the manifests ``start`` to ``end`` (exclusive) added. Raises `RowsChanged` and
    `SnapshotNotFound`."""
    where = str(manifests.location)
    check_versions(start, end, _bounds(head), where=where, noun="snapshot")
    for number in range(start, end):
        manifest = manifests.at(number, head)
        replaces_nothing = manifest.kind == "upsert" and not manifest.removed
        if manifest.kind in _APPENDS or replaces_nothing or (manifest.resets and not files_at(manifests, number - 1)):
            yield from manifest.added
        else:
            pass_over(number, manifest.kind, where=where, skip_changes=skip_changes)


def _info(manifest: Manifest) -> SnapshotInfo:
    marks = (manifest.watermark(pipeline) for pipeline in manifest.watermarks)
    mine = next((mark for mark in marks if mark is not None and mark.commit_id == manifest.commit_id), None)
    return SnapshotInfo(
        snapshot_id=manifest.number,
        committed_at=manifest.at,
        operation=manifest.kind,
        rows=sum(entry.rows for entry in manifest.added),
        pipeline=None if mine is None else mine.token.pipeline,
        epoch=None if mine is None else mine.token.epoch,
    )
