"""Reading: Parquet files, found in whichever place they are, and skipped by what the manifest knows of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from laketier.kit import conform
from laketier.kit.manifests import FileEntry, ManifestSnapshot, ManifestSource
from laketier.kit.parquet_reader import naming_damage, read_batches
from laketier.spi import CorruptTable, LakeSplit, Predicate, columns_of
from laketier_localfile.layout import superseded_path
from laketier_localfile.parquet import footer_digest
from laketier_localfile.pruning import outcomes, ranges_of
from laketier_localfile.settle import locate


@dataclass(frozen=True)
class PublishedFile:
    """A data file as it was published: ``path`` is relative to the table, ``footer`` the digest of its footer."""

    path: str
    bytes: int
    footer: str


@dataclass(frozen=True)
class LocalFileSource(ManifestSource):
    """It finds files in whichever place they are, and moves none."""

    split_payload: ClassVar[type] = PublishedFile

    def prune(
        self, snapshot: ManifestSnapshot, filters: tuple[Predicate, ...]
    ) -> tuple[Sequence[FileEntry], tuple[Predicate, ...]]:
        """The files that may have matching rows, and the filters that are not true for all rows of all of them."""
        if not filters:
            return snapshot.files(), ()
        columns = columns_of(filters)
        kept: list[FileEntry] = []
        unsure: set[int] = set()
        for entry in snapshot.files():
            ranges = ranges_of(entry, snapshot.schema, columns, set(snapshot.written_with(entry).names))
            results = [outcomes(predicate, ranges) for predicate in filters]
            if all(True in result for result in results):
                kept.append(entry)
                unsure |= {i for i, result in enumerate(results) if result != {True}}
        return kept, tuple(predicate for i, predicate in enumerate(filters) if i in unsure)

    def split(self, index: int, entry: FileEntry, snapshot: ManifestSnapshot, wanted: pa.Schema) -> LakeSplit:
        plain = self._plain_path(entry, snapshot) if _has(snapshot.written_with(entry), wanted) else None
        payload = PublishedFile(entry.path, entry.bytes, entry.details["footer"])
        return replace(super().split(index, entry, snapshot, wanted), plain_parquet=plain, payload=payload)

    def read(self, split: LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        published: PublishedFile = split.payload
        where = f"{self.table.location}/{published.path}"
        with _opened(self.table.location, published.path) as file:
            try:
                found = footer_digest(file, published.bytes)
            except CorruptTable as error:
                raise CorruptTable("a data file is damaged", where=where, why=error.what) from error
            if found != published.footer:
                raise CorruptTable(
                    "a data file is not the one that was published",
                    where=where,
                    why="something wrote another file in its place",
                    fix="Restore it from a backup.",
                )
            with naming_damage(where):
                yield from _batches(file, split.rows or 0, schema)

    def _plain_path(self, entry: FileEntry, snapshot: ManifestSnapshot) -> str | None:
        """A path that stays: the final one, or that of a superseded file. A file that is still staged has none."""
        location = self.table.location
        if (snapshot.is_newest and snapshot.settled) or (location / entry.path).exists():
            return str(location / entry.path)
        superseded = location / superseded_path(entry.path)
        return str(superseded) if superseded.exists() else None


def _has(schema: pa.Schema, wanted: pa.Schema) -> bool:
    """Whether a file of ``schema`` has the columns of ``wanted``, and with these types: one may have been widened
    since."""
    there = {field.name: field.type for field in schema}
    return all(field.name in there and there[field.name].equals(field.type) for field in wanted)


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
        there = set(file.schema_arrow.names)
        present = [name for name in schema.names if name in there]
        if not present:
            # Nothing to decode: only the number of rows is asked for, or columns that the file does not have.
            nothing = pa.RecordBatch.from_pylist([{}] * 0) if rows == 0 else _rows_without_columns(rows)
            yield _fit(nothing, schema)
            return
        left = rows
        for batch in read_batches(file, present):
            if left <= 0:
                return
            piece = batch.select(present).slice(0, left)
            left -= piece.num_rows
            yield _fit(piece, schema)


def _rows_without_columns(rows: int) -> pa.RecordBatch:
    return pa.record_batch([pa.nulls(rows)], names=["rows"]).select([])


def _fit(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    return batch if not schema.names else conform(batch, schema)
