"""Reading: data files, found in whichever place they are, and skipped by what the manifest knows of them."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from laketier.kit import conform
from laketier.kit.looks import is_there
from laketier.kit.manifests import FileEntry, ManifestSnapshot, ManifestSource, has_expired, whole_file
from laketier.kit.manifests.folding import Room
from laketier.kit.parquet_reader import naming_damage
from laketier.spi import CorruptTable, LakeSplit, LaketierError, Predicate, SnapshotNotFound, columns_of
from laketier_localfile.adopted import fitted_batches
from laketier_localfile.claims import digest_of, format_of
from laketier_localfile.file_formats.interface import FileFormat, Wanted
from laketier_localfile.file_formats.known import file_format
from laketier_localfile.layout import LAYOUT, attempt_of, superseded_path
from laketier_localfile.names import PARQUET
from laketier_localfile.outside import outside_of, with_constants, without
from laketier_localfile.place import in_s3
from laketier_localfile.pruning import outcomes, ranges_of
from laketier_localfile.settle import locate
from laketier_localfile.stretch import Stretch


@dataclass(frozen=True)
class PublishedFile:
    """A data file as it was published: ``path`` is relative to the table, ``digest`` what its ``file_format`` checks.
    ``written``: those of the columns that are read which the file has, as it was written with: a schema in Arrow's own
    encoding, as base64. ``fitted``: the file was adopted, and its columns are not quite those. ``end``: where the
    stretch of the file that is read ends, which begins at ``start`` and has ``bytes`` bytes and that ``digest``; 0 for
    all of a finished file. ``head``: see `Stretch`."""

    path: str
    bytes: int
    digest: str
    file_format: str
    written: str
    fitted: bool = False
    start: int = 0
    end: int = 0
    head: int = 0


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
        fields = snapshot.descriptor.partition_by
        for entry in snapshot.files():
            written = set(snapshot.written_with(entry).names)
            try:
                ranges = ranges_of(entry, snapshot.schema, columns, written, fields)
            except (ValueError, TypeError, ArithmeticError) as error:
                raise CorruptTable(
                    "the manifest says of a data file what is no value of its columns",
                    where=self.table.store.where(entry.path),
                    why=repr(error),
                    fix="Another program than laketier wrote the manifest: restore it from a backup.",
                ) from error
            results = [outcomes(predicate, ranges) for predicate in filters]
            if all(True in result for result in results):
                kept.append(entry)
                unsure |= {i for i, result in enumerate(results) if result != {True}}
        return kept, tuple(predicate for i, predicate in enumerate(filters) if i in unsure)

    def split(self, index: int, entry: FileEntry, snapshot: ManifestSnapshot, wanted: pa.Schema) -> LakeSplit:
        has_all, there = snapshot.remembered(
            (entry.schema, tuple(wanted.names)),
            lambda: _shared(without(snapshot.written_with(entry), outside_of(snapshot.descriptor)), wanted),
        )
        room = snapshot.remembered("folding", lambda: Room.from_plain(snapshot.head.folding))
        chosen, fitted = format_of(entry.details), bool(entry.details.get("fitted"))
        # Any commit may fold a small file and move it away, and whoever opens it by its path would not find it.
        stays = room is None or not room.settings.is_small(entry)
        is_plain = chosen == PARQUET and not fitted and has_all and stays
        end = entry.bytes if entry.is_open else 0
        file = PublishedFile(entry.path, entry.bytes, digest_of(entry.details), chosen, there, fitted, end=end)
        return whole_file(index, entry, file, self._plain_path(entry, snapshot) if is_plain else None)

    def arrived_split(self, index: int, entry: FileEntry, snapshot: ManifestSnapshot, wanted: pa.Schema) -> LakeSplit:
        split, growth = self.split(index, entry, snapshot, wanted), entry.growth
        if growth is None:
            return split
        payload = replace(
            split.payload,
            bytes=growth.upto - growth.bytes,
            digest=growth.digest,
            start=growth.bytes,
            end=growth.upto,
            head=growth.head,
        )
        return replace(split, rows=entry.arrived_rows, bytes=payload.bytes, files=(), payload=payload)

    def read(self, split: LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        published: PublishedFile = split.payload
        where = self.table.store.where(published.path)
        chosen = file_format(published.file_format, where=where)
        written = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(published.written)))
        # A plan of changes has all columns, and is read by some.
        asked = pa.schema([field for field in written if field.name in set(schema.names)])
        outside = {name: text for name, text in split.partition if name in schema.names and name not in written.names}
        wanted = Wanted(without(schema, tuple(outside)), asked, split.rows or 0)
        stretch = Stretch(published.start, published.end, published.head) if published.end else None
        with self._opened(published, chosen) as file:
            _check(file if stretch is None else stretch.bytes_of(file), published, chosen, where=where)
            with naming_damage(where):
                if published.fitted:
                    yield from fitted_batches(file, published.path, published.bytes, chosen, split, schema)
                    return
                for batch in _batches(file, published.path, chosen, stretch, wanted):
                    yield with_constants(batch, outside, schema) if outside else batch

    def _opened(self, published: PublishedFile, chosen: FileFormat) -> pa.NativeFile:
        """The data file, wherever it is. A file that is digested from end to end is fetched as a whole."""
        bucket = in_s3(self.table.place)
        if bucket is None:
            found = _opened(self.table.location, published.path)
            if found is None:
                raise self._missing(published.path)
            return found
        from laketier_localfile.s3.settle import places

        checked = places(LAYOUT.data_path(published.path, where="a split", adopted=True))
        try:
            return bucket.open(*checked) if chosen.tells_by_ranges else bucket.fetch(*checked)
        except FileNotFoundError as error:
            raise self._missing(published.path) from error

    def _missing(self, path: str) -> LaketierError:
        where = self.table.store.where(path)
        try:
            expired = has_expired(self.table.manifests(), path)
        except (LaketierError, OSError):
            expired = False
        if expired:
            return SnapshotNotFound(
                "the snapshot expired while it was read",
                where=where,
                why="`laketier maintain expire` deleted a file that none of the snapshots needs which are left",
                fix="Read a newer snapshot. Let expiry leave snapshots for longer than any read takes (--older-than).",
            )
        return CorruptTable(
            "a data file of the snapshot is missing",
            where=where,
            why="something deleted it, or this host does not see the driver's warehouse",
            fix="Restore it from a backup, or put lake.warehouse on a file system that all hosts share.",
        )

    def _plain_path(self, entry: FileEntry, snapshot: ManifestSnapshot) -> str | None:
        """A path that stays: the final one, or that of a superseded file. A file that is still staged has none."""
        location = snapshot.remembered("folder", lambda: self.table.store.folder)
        if location is None:
            return None  # Spark would ask the store with settings of its own
        if snapshot.is_newest and snapshot.settled:
            return f"{location}/{entry.path}"
        if is_there(location / entry.path):
            return str(location / entry.path)
        superseded = location / superseded_path(entry.path)
        return str(superseded) if is_there(superseded) else None


def _shared(written: pa.Schema, wanted: pa.Schema) -> tuple[bool, str]:
    """Whether a file that was ``written`` so has all of ``wanted``, and those of its columns that are wanted, for
    `PublishedFile.written`."""
    names = set(wanted.names)
    there = pa.schema([field for field in written if field.name in names])
    return _has(written, wanted), base64.b64encode(there.serialize()).decode("ascii")


def _has(schema: pa.Schema, wanted: pa.Schema) -> bool:
    """Whether a file of ``schema`` has the columns of ``wanted``, and with these types: one may have been widened
    since."""
    there = {field.name: field.type for field in schema}
    return all(field.name in there and there[field.name].equals(field.type) for field in wanted)


def _opened(location: Path, name: str) -> pa.NativeFile | None:
    """The data file ``name``, wherever it is. It is opened once: a round may move it, but what is open stays."""
    while (path := locate(location, name)) is not None:
        try:
            return pa.OSFile(str(path))
        except FileNotFoundError:
            continue  # it moved on, which it does twice at most
    return None


def _check(file: pa.NativeFile, published: PublishedFile, chosen: FileFormat, *, where: str) -> None:
    """Refuse bytes that are not those that were published. Raises `CorruptTable`."""
    try:
        is_it = chosen.check(file, published.bytes, published.digest)
    except CorruptTable as error:
        raise CorruptTable("a data file is damaged", where=where, why=error.what) from error
    if not is_it:
        raise CorruptTable(
            "a data file is not the one that was published",
            where=where,
            why="something wrote another file in its place",
            fix="Restore it from a backup.",
        )


def _batches(
    file: pa.NativeFile, path: str, chosen: FileFormat, stretch: Stretch | None, wanted: Wanted
) -> Iterator[pa.RecordBatch]:
    """The rows of a file, without the values that its partition alone has."""
    if not wanted.written.names:
        yield _without_columns(wanted.rows, wanted.schema)
        return
    if stretch is None:
        batches = chosen.read(file, path, wanted)
    else:
        batches = chosen.read_open(stretch.rows_of(file), path, wanted)
    is_foreign = attempt_of(path) is None
    for batch in batches:
        if is_foreign:
            batch.validate(full=True)  # text that is no UTF-8 is Arrow's all the same
        yield batch


def _without_columns(rows: int, schema: pa.Schema) -> pa.RecordBatch:
    """Nothing to decode: only the number of rows is asked for, or columns that the file does not have."""
    if not rows:  # nor is a column missing then that the table declares not null
        return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)
    return conform(pa.record_batch([pa.nulls(rows)], names=["rows"]).select([]), schema)
