"""More wrong sources: what they take names and bytes for, and what they do to the process that they are in."""

from __future__ import annotations

import glob
import json
import logging
import os
import signal
import socket
import tempfile
import threading
import time
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from altered_notes import whole_splits, wrong
from altered_pages import RIGHT, WRONG, plugin_of
from laketier.spi import (
    BadRecord,
    BucketBounds,
    FeatureNotSupported,
    FindUnstorable,
    LogOffsets,
    LogRange,
    LogSplit,
    OnBadRecord,
    StorageError,
    TableLog,
    TableNotFound,
    fail_on_bad_record,
)
from notes import NotesLog, NotesSource, Row, values_of

__all__ = ["RIGHT", "WRONG", "plugin_of"]


# -- names -------------------------------------------------------------------------------------------------------------


@wrong("test_tables.py::test_tables_of_names_alike_are_each_listed", "is read beside others")
class FindsFilesByAPattern(NotesLog):
    """A name with a bracket, a star or a question mark is one, and fits the files of another table."""

    def opened(self, bucket: str) -> IO[bytes]:
        found = sorted(glob.glob(f"{self.folder}/{bucket}.log"))
        return Path(found[0]).open("rb") if found else super().opened(bucket)


@wrong("test_tables.py::test_tables_of_names_alike_are_each_listed", "is read beside others")
class CutsNames(NotesSource):
    """At 63 letters, as a database does with its identifiers."""

    def open(self, name: str, options: Any) -> TableLog:
        return super().open(next((each for each in self.list_tables() if each[:63] == name[:63]), name), options)


@wrong("test_tables.py::test_tables_of_names_alike_are_each_listed", "those that are not listed")
class NormalisesNames(NotesSource):
    """A name of another spelling is listed, and there is no table of it."""

    def list_tables(self) -> Sequence[str]:
        return sorted({unicodedata.normalize("NFC", name) for name in super().list_tables()})


@wrong("test_tables.py::test_an_unknown_table_is_not_found[nowhere]", "once more")
class MakesWhatItIsAskedFor(NotesSource):
    """As a broker does, whose client asks for a topic by its name: the next time it is there, and empty."""

    def open(self, name: str, options: Any) -> TableLog:
        try:
            return super().open(name, options)
        except TableNotFound:
            (self.root / name).mkdir()
            meta = {"id": name, "columns": {"id": "int64"}, "former": {}, "expired": {}, "committed": [], "buckets": []}
            (self.root / name / "meta.json").write_text(json.dumps(meta))
            raise


@wrong("test_declaration.py::test_a_secret_is_shown_nowhere", "show its password")
class ShowsItsPasswordWhereNobodyAnswers(NotesSource):
    """Its error has the request as it was sent, with its headers."""

    def list_tables(self) -> Sequence[str]:
        try:
            return super().list_tables()
        except StorageError as error:
            headers = f"Authorization: Bearer {'' if self.password is None else self.password.reveal()}"
            raise StorageError("nobody answers", where=str(self.root), why=f"GET / with {headers}") from error


# -- bytes -------------------------------------------------------------------------------------------------------------


@wrong("test_reading.py::test_texts_are_read_as_they_were_written", "came otherwise")
class PassesOverLargeRecords(NotesLog):
    """Of more than a mebibyte, which is the most of its page."""

    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        return (each for each in super().records(split) if len(each.value or b"") <= 1 << 20)


@wrong("test_bad_bytes.py::test_bytes_of_all_kinds_are_told_as_they_were", "are not told with their bytes, b''")
class PassesOverNothing(NotesLog):
    """A record of no bytes, or of the word null, is taken for the deletion of its key."""

    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        return (each for each in super().records(split) if each.value not in (b"", b"null"))


@wrong("test_bad_bytes.py::test_bytes_of_all_kinds_are_told_as_they_were", "are not told with their bytes, b''")
class TakesNothingForNone(NotesLog):
    """By `value or None`. What has no bytes is not replayed."""

    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        return (replace(each, value=each.value or None) for each in super().records(split))


@wrong(
    "test_bad_bytes.py::test_bytes_of_all_kinds_are_told_as_they_were", "are not told with their bytes, b'\\xff\\xfe'"
)
class ReplacesBytesThatAreNoText(NotesLog):
    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        for each in super().records(split):
            yield replace(each, value=(each.value or b"").decode(errors="replace").encode())


@wrong("test_bad_bytes.py::test_bytes_of_all_kinds_are_told_as_they_were", "are not told with their bytes, b' '")
class StripsBytes(NotesLog):
    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        return (replace(each, value=(each.value or b"").strip()) for each in super().records(split))


@wrong("test_bad_records.py::test_a_fresh_interpreter_tells_the_same_bad_record", "that another process tells")
class TellsTimesOfItsZone(NotesLog):
    """The client gives a time as the clock of its host shows it."""

    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        for each in super().records(split):
            yield replace(each, at=(each.at or 0) + time.localtime().tm_gmtoff * 1000)


@wrong("test_bad_records.py::test_decode_accounts_for_each_record", "says nothing of")
class DecodesOneRecordOfAnOffset(NotesLog):
    """They are kept by their offsets, which each bucket has."""

    def decode(
        self, records: Sequence[BadRecord], *, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        return super().decode(list({each.offset: each for each in records}.values()), on_bad_record=on_bad_record)


@wrong("test_bad_records.py::test_rows_that_can_be_stored_are_read_as_ever", "once its rows were asked for")
class RefusesOnceItIsRead(NotesLog):
    """Some of its tables have no records of rows. A method with a `yield` raises at its first row."""

    def read_storable(
        self, split: LogSplit, find_unstorable: FindUnstorable, *, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        if "records" not in self.meta():
            raise FeatureNotSupported("telling the records of rows", format="notes", reason="the table has none")
        yield from super().read_storable(split, find_unstorable, on_bad_record=on_bad_record)


# -- pages and histories -----------------------------------------------------------------------------------------------


@wrong("test_many.py::test_a_compaction_in_the_midst_of_a_read_costs_no_other_row", "which leaves them out")
class PagesByTheirNumbers(NotesLog):
    """The third page is what follows twenty records. Of those before it some may be gone by then."""

    def plan(self, wanted: LogRange) -> Sequence[LogSplit]:
        super().plan(wanted)
        return whole_splits(wanted)

    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        had = 0
        while page := list(islice(super().records(split), had, had + 10)):
            yield from page
            had += len(page)


@wrong("test_histories.py::test_a_stamp_is_another_in_another_history", "which a backup had")
class StampsWhatComesNext(NotesLog):
    """The first record that was not read. The newest position has none, so a round stores none."""

    def stamp(self, position: LogOffsets) -> str | None:
        return super().stamp(LogOffsets({bucket: end + 1 for bucket, end in position.items()}))


# -- the process -------------------------------------------------------------------------------------------------------


@wrong("test_lives.py::test_closed_logs_keep_no_descriptors", "threads more go on")
class LeavesAThread(NotesLog):
    """It fetches ahead, and is told to stop at the end of the read: one that is given up has none."""

    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        stop = threading.Event()
        threading.Thread(target=stop.wait, daemon=True).start()
        yield from super().records(split)
        stop.set()


@wrong("test_lives.py::test_closed_logs_keep_no_descriptors", "temporary files more are there")
class LeavesCopies(NotesLog):
    """What it downloads."""

    def opened(self, bucket: str) -> IO[bytes]:
        with super().opened(bucket) as file, tempfile.NamedTemporaryFile(delete=False) as copy:
            copy.write(file.read())
        return Path(copy.name).open("rb")


@wrong("test_lives.py::test_a_source_leaves_its_process_as_it_was", "the working folder")
class ChangesTheWorkingFolder(NotesLog):
    """A path of anybody else means another place then."""

    def opened(self, bucket: str) -> IO[bytes]:
        os.chdir(self.folder)
        return super().opened(bucket)


@wrong("test_lives.py::test_a_source_leaves_its_process_as_it_was", "the time limit of new sockets")
class LimitsAllSockets(NotesLog):
    """A server that waits for its next client is a socket, too."""

    def bounds(self) -> Mapping[str, BucketBounds]:
        socket.setdefaulttimeout(60)
        return super().bounds()


@wrong("test_lives.py::test_a_source_leaves_its_process_as_it_was", "the root logger")
class SetsUpAllLogs(NotesLog):
    """Clients of others write their requests, and with them their passwords."""

    def row(self, value: bytes) -> Row:
        logging.basicConfig(level=logging.DEBUG, force=True)
        return super().row(value)


@wrong("test_lives.py::test_a_source_leaves_its_process_as_it_was", "the mode of new files")
class KeepsItsFilesToItself(NotesLog):
    """And those of the lake with them, which nobody else can read then."""

    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        os.umask(0o077)
        return super().records(split)


@wrong("test_lives.py::test_a_source_leaves_its_process_as_it_was", "AWS_ACCESS_KEY_ID")
class PutsItsKeyIntoTheEnvironment(NotesLog):
    """Where its client looks for it, and the store of the lake does."""

    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        os.environ["AWS_ACCESS_KEY_ID"] = "its own"
        return super().records(split)


@wrong("test_lives.py::test_a_source_leaves_a_process_of_its_own_as_it_was", "in a process that it is new in")
class PutsItsRegionOnce(NotesLog):
    """Where there is none: whoever looks later has it from the beginning."""

    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        os.environ.setdefault("AWS_REGION", "its-own-1")
        return super().records(split)


@wrong("test_lives.py::test_a_source_leaves_its_process_as_it_was", "handlers of signals")
class TakesTheAlarm(NotesLog):
    """For a limit of time of its own."""

    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        signal.signal(signal.SIGALRM, lambda *_: None)
        return super().records(split)


# -- tables that are gone, and records of which a part is --------------------------------------------------------------


@wrong("test_tables.py::test_a_table_that_is_dropped_is_told", "expected None or TableNotFound")
class IdentifiesByAFile(NotesLog):
    """Which went with its table: an error from below tells nobody what became of it."""

    def identify(self) -> str | None:
        return str(json.loads((self.folder / "meta.json").read_bytes())["id"])


@wrong("test_tables.py::test_a_table_that_is_dropped_is_told", "`bounds` is asked for of a table that was dropped")
class TakesADroppedTableForAnEmptyOne(NotesLog):
    """Nothing came, and nothing is to be read: nobody hears that it is gone."""

    def bounds(self) -> Mapping[str, BucketBounds]:
        return super().bounds() if self.folder.exists() else {}


@wrong("test_bad_bytes.py::test_a_record_of_which_one_row_is_none_is_left_out_whole", "one of which is none")
class GivesTheRowsBeforeABadOne(NotesLog):
    """And tells the record. Its replay gives them once more."""

    def rows(self, records: Iterator[BadRecord], on_bad_record: OnBadRecord) -> Iterator[tuple[Row, BadRecord]]:
        for record in records:
            try:
                for value in values_of(record.value or b""):
                    yield self.row(value), record
            except (ValueError, TypeError, KeyError, pa.ArrowException) as error:
                on_bad_record(replace(record, error=str(error) or "no row"))


@wrong("test_bad_records.py::test_a_record_that_still_is_none_is_told_again", "with their times")
class DecodesWithoutTimes(NotesLog):
    def decode(
        self, records: Sequence[BadRecord], *, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        return super().decode(records, on_bad_record=lambda record: on_bad_record(replace(record, at=None)))


@wrong("test_bad_records.py::test_a_record_that_still_is_none_is_told_again", "with the error of before")
class DecodesWithTheErrorOfBefore(NotesLog):
    """Whoever mends the schema step by step reads a reason that was mended long ago."""

    def decode(
        self, records: Sequence[BadRecord], *, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        of = {(each.bucket, each.offset, each.value): each for each in records}
        return super().decode(
            records, on_bad_record=lambda each: on_bad_record(of[each.bucket, each.offset, each.value])
        )


@wrong("test_offsets.py::test_each_append_is_a_range_of_its_own", "as if they were of a snapshot")
class TellsAllAsUnordered(NotesLog):
    """Two changes of a key are refused then, as nobody knows which is newer, and the table stops."""

    def plan(self, wanted: LogRange) -> Sequence[LogSplit]:
        return [replace(each, unordered=True) for each in super().plan(wanted)]
