"""The log of one table: its files in the order of the ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.parquet import read_metadata

from laketier.codecs.decoding import BadValue
from laketier.codecs.parquet_pages import check_chunks
from laketier.codecs.said import said
from laketier.connectors.files.files import Files, LandedFile, LandedPart
from laketier.connectors.files.folder import Folder, FolderListing
from laketier.connectors.files.identity import known_otherwise, renamed
from laketier.connectors.files.ledger import Ledger
from laketier.connectors.files.local import Astray, escaped
from laketier.connectors.files.notices import Notices
from laketier.connectors.files.options import FileFormat, LandingTableOptions, Order
from laketier.connectors.files.places import Places
from laketier.connectors.files.readers import FileReader, UnreadableFile, decode_lines
from laketier.connectors.files.table import table_of
from laketier.connectors.files.whereabouts import BUCKET, check_unchanged, exchanged, found_at
from laketier.connectors.parquet_parts import row_group_ranges
from laketier.kit.storage_errors import naming_storage_errors
from laketier.spi import (
    BadRecord,
    BucketBounds,
    CorruptTable,
    FeatureNotSupported,
    FindUnstorable,
    LogOffsets,
    LogRange,
    LogSplit,
    LogTable,
    OnBadRecord,
    StorageError,
    TableLog,
    fail_on_bad_record,
    host_time,
)


class LandingLog(TableLog):
    """See `TableLog`. One bucket; an offset is a file. The ledger stays on the driver."""

    def __init__(self, folder: Folder, options: LandingTableOptions, table: LogTable, ledger: Ledger | None) -> None:
        self._folder = folder
        self._options = options
        self._table = table
        self._ledger = ledger
        self._notices = Notices(table.name, options)
        self._places = Places()

    @classmethod
    def of(cls, folder: Folder, options: LandingTableOptions, ledger: Ledger) -> LandingLog:
        """Open it. Raises `ConfigError` when its columns can't be told."""
        return cls(folder, options, table_of(folder, options, ledger), ledger)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_ledger": None}

    @property
    def table(self) -> LogTable:
        return self._table

    def bounds(self) -> Mapping[str, BucketBounds]:
        """Discovers: files that are new are taken before their number is told. ``earliest`` is the first file that
        is still there. Raises also `OffsetsRewritten` for a file that changed, unless on-rewritten is ``ignore``."""
        ledger = self._on_driver()
        with naming_storage_errors("the landing zone was listed", setting="the source's options"):
            taken, earliest = self._discover(ledger)
            if earliest > ledger.gone_before and self._folder.is_local:
                # A file that is renamed while its folder is listed may be missing in the listing. Once more, then.
                before = earliest
                taken, earliest = self._discover(ledger)
                earliest = min(before, earliest)
            ledger.gone_before = earliest
            if self._folder.is_local:
                self._places = self._places.without(ledger.folder, earliest)
        latest_at = int(taken.mtimes.max()) // 1_000_000 if len(taken) else None
        return {BUCKET: BucketBounds(earliest, len(taken), latest_at)}

    def _discover(self, ledger: Ledger) -> tuple[Files, int]:
        """Take what is new: the files taken, and the first of them that is still there."""
        while True:
            # In this order: what the ledger holds by now landed before, and so is listed unless it was deleted.
            ledger.refresh()
            taken = ledger.files
            number = self._folder.number
            listing = self._folder.listed()
            if self._folder.number != number:
                raise exchanged(self._folder)
            listing.refuse_table(self._folder.open()[1])
            listed = listing.files
            places = listed.places_in(taken)
            self._notices.rewritten(listed, places, taken)
            moved, ordinals = renamed(listed, places, taken)
            self._notices.renamed(listed, moved, taken, ordinals)
            places[moved] = ordinals
            there = places[places >= 0]
            new = self._in_order(self._new_of(listing, places, taken))
            if number is not None:
                self._places = Places.noted(ledger.folder, number, there, len(taken) if len(new) else None)
            if len(new):
                self._notices.late(new, taken)
                if not ledger.append(new, after=len(taken)):
                    continue
            earliest = int(there.min()) if len(there) else len(taken)
            elsewhere = None if number is None else self._places.first_elsewhere(number)
            if elsewhere is not None:  # what is elsewhere is not deleted, and a plan that needs it says so
                earliest = min(earliest, max(elsewhere, self._places.gone))
            return (Files.concat([taken, new]) if len(new) else taken), earliest

    def stamp(self, position: LogOffsets) -> str | None:
        """See `TableLog.stamp`: that of the files before it. A ledger that was put back takes those that it lost again,
        in an order that late files change."""
        ledger, end = self._on_driver(), position.get(BUCKET, 0)
        if end > len(ledger):  # whoever asks need not have looked at the zone before
            with naming_storage_errors("the ledger of the landing zone was read", setting="the source's options"):
                ledger.refresh()
        return ledger.stamp(end)

    def plan(self, wanted: LogRange) -> Sequence[LogSplit]:
        """A split for each file, more for a large Parquet file. Raises also `OffsetsRewritten`, and `CorruptTable`
        when the ledger does not hold the range."""
        ledger = self._on_driver()
        start, end = wanted.start.get(BUCKET, 0), wanted.end.get(BUCKET, 0)
        with naming_storage_errors("files of the landing zone were looked at", setting="the source's options"):
            if end > len(ledger):
                ledger.refresh()
            if end > len(ledger):
                raise CorruptTable(
                    f"the ledger holds {len(ledger)} files, and the range ends at {end}",
                    where=str(ledger.folder),
                    fix="Restore the ledger that the range was made from.",
                )
            entries = ledger.files.entries(start, end)
            self._places = Places.of(ledger.folder)
            now = found_at(self._folder, entries, self._places, start, self._table.name)
            places = [entry.path if found is None else found.path for entry, found in zip(entries, now, strict=True)]
            both = enumerate(zip(entries, places, strict=True), start)
            return [split for at, (entry, place) in both for split in self._splits(at, entry, place)]

    def read(
        self, split: LogSplit, *, columns: Sequence[str] | None = None, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        """See `TableLog.read`. The file is looked at before and after, so rows of one that is rewritten meanwhile
        don't count. One that is renamed is read all the same. Raises also `OffsetsRewritten`."""
        yield from self._rows(split, self._table.projected(columns), on_bad_record)

    def read_storable(
        self, split: LogSplit, find_unstorable: FindUnstorable, *, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        """See `TableLog.read_storable`. Of formats whose records are no lines, a row is told without its bytes. Raises
        also `OffsetsRewritten`."""
        if not self._options.format.is_text:
            raise FeatureNotSupported(
                "telling the records of rows",
                format=f"a file of {self._options.format.value}",
                reason="its rows are no records of their own",
            )
        return self._rows(split, self._table.schema, on_bad_record, find_unstorable)

    def _rows(
        self,
        split: LogSplit,
        schema: pa.Schema,
        on_bad_record: OnBadRecord,
        find_unstorable: FindUnstorable | None = None,
    ) -> Iterator[pa.RecordBatch]:
        part: LandedPart = split.payload
        entry, place = part.entry, part.place
        groups = None if part.groups is None else range(part.groups[0], part.groups[1] + 1)
        _, folder = self._folder.open()

        def bad(error: str, value: bytes | None) -> None:
            at = entry.mtime_ns // 1_000_000
            on_bad_record(BadRecord(bucket=split.bucket, offset=split.start, error=error, value=value, at=at))

        looked = False

        def bad_line(number: int, value: bytes | None, error: str) -> None:
            nonlocal looked
            if not looked:  # of two writers' bytes lines are made that nobody wrote
                looked = True
                self._check(entry, place, split.start)
            bad(f"line {number} of {path}: {error}", value)

        reader = FileReader(self._table.schema, self._options, self._folder.is_local)
        why, was_read = None, False
        with naming_storage_errors("a file of the landing zone was read", setting="the source's options"):
            if entry.inode and self._folder.look_at([place]) == [None]:
                place = self._check(entry, entry.path, split.start)
            path = escaped(f"{folder}/{place}")
            try:
                with self._folder.opened(place) as (file, found):
                    check_unchanged([entry], [found], split.start, self._table.name)
                    yield from reader.read(file, place, entry.size, schema, groups, bad_line, find_unstorable)
                was_read = True
            except FileNotFoundError:
                pass  # told below
            except (UnreadableFile, Astray) as error:
                why = said(error)
            self._check(entry, place, split.start)
        if why is None and not was_read:
            raise StorageError("the file was missing for a moment", where=path, fix="It exists now. Try again.")
        if why is not None:
            bad(f"{path} can't be read: {why}", None)

    def decode(
        self, records: Sequence[BadRecord], *, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        """See `TableLog.decode`. A record whose bytes were not kept, as it is a whole file, still is none."""
        if self._options.format is FileFormat.CSV and self._options.header:
            raise FeatureNotSupported(
                "the replay of dead letters",
                format="CSV with a header",
                reason="a dead letter is one line, and the header says what is in it",
                fix="Land the corrected rows in a new file.",
            )
        yield from decode_lines(records, self._table.schema, self._options, on_bad_record)

    def _on_driver(self) -> Ledger:
        if self._ledger is None:
            raise RuntimeError("a log that was pickled is for reading; bounds and plan belong to the driver's")
        return self._ledger

    def _new_of(self, listing: FolderListing, places: Any, taken: Files) -> Files:
        """Those that are not known, and are no known file under another name. What is left out is told, once."""
        otherwise = known_otherwise(listing.files, listing.shared, places, taken)
        why = {escaped(path): f"it is the file {escaped(name)} by another name" for path, name in otherwise.values()}
        self._notices.left_out({**listing.refused, **why})
        return listing.files.take(np.array([at for at in np.flatnonzero(places < 0) if at not in otherwise], np.int64))

    def _in_order(self, files: Files) -> Files:
        if self._options.min_age and len(files):
            now = host_time() * 1_000_000
            self._notices.ahead(files, now)
            files = files.take(np.flatnonzero(files.mtimes <= now - int(self._options.min_age * 1e9)))
        keys = [("mtime", "ascending"), ("path", "ascending")]
        if self._options.order is Order.NAME:
            keys = keys[1:]
        columns = pa.table({"path": files.paths, "mtime": files.mtimes})
        return files.take(pc.sort_indices(columns, sort_keys=keys).to_numpy())

    def _check(self, entry: LandedFile, place: str, offset: int) -> str:
        """Where the file is now that was at ``place``. Raises `OffsetsExpired` and `OffsetsRewritten`."""
        wanted = [replace(entry, path=place)]
        [found] = found_at(self._folder, wanted, self._places, offset, self._table.name)
        return place if found is None else found.path

    def _splits(self, ordinal: int, entry: LandedFile, place: str) -> Iterator[LogSplit]:
        part = LandedPart(entry, place)
        whole = LogSplit(bucket=BUCKET, start=ordinal, end=ordinal + 1, bytes=entry.size, payload=part)
        if self._options.format is not FileFormat.PARQUET or entry.size <= self._options.split_bytes:
            yield whole
            return
        try:
            with self._folder.opened(place) as (file, _):
                footer = read_metadata(file)
                check_chunks(file, entry.size, footer)
        except (pa.ArrowException, Astray, BadValue, FileNotFoundError):
            yield whole  # which the task then finds to be bad
            return
        parts = row_group_ranges(footer, entry.size, self._options.split_bytes)
        some = [replace(whole, bytes=size, payload=replace(part, groups=(at, to))) for at, to, _, size in parts]
        yield from some or [whole]  # without rows, too: each offset has a split
