"""Reading: one split per data file of a snapshot, pinned by its manifest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from laketier.kit import conform
from laketier.spi import (
    CorruptTable,
    LakeSource,
    LakeSplit,
    Predicate,
    ScanPlan,
    ScanRequest,
    SnapshotInfo,
    VersionBounds,
    columns_of,
)
from laketier_localfile.changes import appended, bounds
from laketier_localfile.committer import LocalFileState
from laketier_localfile.layout import superseded_path
from laketier_localfile.log import ManifestLog
from laketier_localfile.manifest import FileEntry, Manifest
from laketier_localfile.parquet import footer_digest
from laketier_localfile.pruning import outcomes, ranges_of
from laketier_localfile.rollup import files_at
from laketier_localfile.settle import locate


@dataclass(frozen=True)
class LocalFileSource(LakeSource):
    """Needs read access only: it finds files in whichever place they are, and moves none."""

    location: str

    def plan(self, request: ScanRequest) -> ScanPlan:
        if (seen := request.seen(LocalFileState)) is not None:
            manifests, head, settled = seen.manifests, seen.head, False
        else:
            manifests = ManifestLog.open(Path(self.location))
            head, settled = manifests.current()
        manifest = _snapshot(manifests, head, request)
        schema = manifests.metadata(manifest).schema
        wanted = request.projected(schema, where=self.location)
        written_with = _WrittenWith(manifests)
        kept, remaining = _prune(files_at(manifests, manifest.number), schema, request.filters, written_with)
        limit = None if remaining else request.limit
        in_place = settled and manifest.number == head.number
        splits: list[LakeSplit] = []
        rows = 0
        for entry in kept:
            if limit is not None and rows >= limit:
                break
            take = entry.rows if limit is None else min(entry.rows, limit - rows)
            plain = take == entry.rows and written_with.has(entry, wanted)
            splits.append(self._split(len(splits), entry, take, plain=plain, in_place=in_place))
            rows += take
        return ScanPlan(
            snapshot_id=manifest.number,
            schema=wanted,
            splits=tuple(splits),
            remaining=remaining,
            limit_done=request.limit is not None and not remaining,
        )

    def read(self, split: LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        name, size, footer = split.payload["path"], int(split.payload["bytes"]), split.payload["footer"]
        with _opened(Path(self.location), name) as file:
            try:
                found = footer_digest(file, size)
            except CorruptTable as error:
                raise CorruptTable("a data file is damaged", where=f"{self.location}/{name}", why=error.what) from error
            if found != footer:
                raise CorruptTable(
                    "a data file is not the one that was published",
                    where=f"{self.location}/{name}",
                    why="something wrote another file in its place",
                    fix="Restore it from a backup.",
                )
            yield from _batches(file, split.rows or 0, schema)

    def history(self, limit: int) -> list[SnapshotInfo]:
        manifests = ManifestLog.open(Path(self.location))
        head, _ = manifests.current()
        numbers = range(head.number, max(head.number - limit, -1), -1)
        return [_snapshot_info(head if number == head.number else manifests.at(number, head)) for number in numbers]

    def versions(self) -> VersionBounds:
        return bounds(ManifestLog.open(Path(self.location)))

    def plan_changes(self, start: int, end: int, *, skip_changes: bool = False) -> ScanPlan:
        manifests = ManifestLog.open(Path(self.location))
        head, _ = manifests.current()
        entries = appended(manifests, head, start, end, skip_changes=skip_changes)
        splits = tuple(
            self._split(index, entry, entry.rows, plain=False, in_place=False) for index, entry in enumerate(entries)
        )
        return ScanPlan(snapshot_id=end - 1, schema=manifests.metadata(head).schema, splits=splits)

    def _split(self, index: int, entry: FileEntry, take: int, *, plain: bool, in_place: bool) -> LakeSplit:
        return LakeSplit(
            index=index,
            rows=take,
            bytes=entry.bytes,
            bucket=-1 if entry.bucket is None else entry.bucket,
            partition=entry.partition,
            plain_parquet=self._plain_path(entry, in_place=in_place) if plain else None,
            files=(entry.path,) if take == entry.rows else (),
            payload={"path": entry.path, "bytes": str(entry.bytes), "footer": entry.footer},
        )

    def _plain_path(self, entry: FileEntry, *, in_place: bool) -> str | None:
        """A path that stays: the final one, or that of a superseded file. A file that is still staged has none."""
        location = Path(self.location)
        if in_place or (location / entry.path).exists():
            return str(location / entry.path)
        superseded = location / superseded_path(entry.path)
        return str(superseded) if superseded.exists() else None


def _snapshot_info(manifest: Manifest) -> SnapshotInfo:
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


class _WrittenWith:
    """The columns that the files of a snapshot were written with."""

    def __init__(self, manifests: ManifestLog) -> None:
        self._manifests = manifests
        self._schemas: dict[int, pa.Schema] = {}

    def columns(self, entry: FileEntry) -> set[str]:
        return set(self._schema(entry).names)

    def has(self, entry: FileEntry, wanted: pa.Schema) -> bool:
        """Whether the file has the columns of ``wanted``, and with these types: one may have been widened since."""
        schema = self._schema(entry)
        return all(f.name in schema.names and schema.field(f.name).type.equals(f.type) for f in wanted)

    def _schema(self, entry: FileEntry) -> pa.Schema:
        if entry.schema not in self._schemas:
            self._schemas[entry.schema] = self._manifests.metadata(self._manifests.read(entry.schema)).schema
        return self._schemas[entry.schema]


def _snapshot(manifests: ManifestLog, head: Manifest, request: ScanRequest) -> Manifest:
    if request.snapshot_id is not None:
        return manifests.at(request.snapshot_id, head)
    return head if request.as_of is None else manifests.as_of(request.as_of, head)


def _prune(
    entries: Sequence[FileEntry], schema: pa.Schema, filters: tuple[Predicate, ...], written_with: _WrittenWith
) -> tuple[list[FileEntry], tuple[Predicate, ...]]:
    """The files that may have matching rows, and the filters that are not true for all rows of all of them."""
    if not filters:
        return list(entries), ()
    columns = columns_of(filters)
    kept: list[FileEntry] = []
    unsure: set[int] = set()
    for entry in entries:
        ranges = ranges_of(entry, schema, columns, written_with.columns(entry))
        results = [outcomes(predicate, ranges) for predicate in filters]
        if all(True in result for result in results):
            kept.append(entry)
            unsure |= {i for i, result in enumerate(results) if result != {True}}
    return kept, tuple(predicate for i, predicate in enumerate(filters) if i in unsure)


def _opened(location: Path, name: str) -> pa.NativeFile:
    """The data file ``name``, wherever it is. It is opened once: a round may move it, but what is open stays."""
    while (path := locate(location, name)) is not None:
        try:
            return pa.OSFile(str(path))
        except FileNotFoundError:
            continue  # it moved on, which it does twice at most
    raise CorruptTable(
        "a data file of the snapshot is missing",
        where=str(location / name),
        why="something deleted it, or this host does not see the driver's warehouse",
        fix="Restore it from a backup, or put lake.warehouse on a file system that all hosts share.",
    )


def _batches(data: pa.NativeFile, rows: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(data) as file:
        present = [name for name in schema.names if name in file.schema_arrow.names]
        if not present:
            # Nothing to decode: only the number of rows is asked for, or columns that the file does not have.
            nothing = pa.RecordBatch.from_pylist([{}] * 0) if rows == 0 else _rows_without_columns(rows)
            yield _fit(nothing, schema)
            return
        left = rows
        for batch in file.iter_batches(columns=present):
            if left <= 0:
                return
            piece = batch.select(present).slice(0, left)
            left -= piece.num_rows
            yield _fit(piece, schema)


def _rows_without_columns(rows: int) -> pa.RecordBatch:
    return pa.record_batch([pa.nulls(rows)], names=["rows"]).select([])


def _fit(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    return batch if not schema.names else conform(batch, schema)
