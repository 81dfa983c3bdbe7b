"""More wrong sources, which lose what no small table has, or alter what they read: see `altered_notes`."""

from __future__ import annotations

import hashlib
import json
import time
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, ClassVar

import pyarrow as pa

from altered_notes import Right, whole_splits, wrong
from altered_polls import RIGHT, WRONG, plugin_of
from laketier.spi import (
    BadRecord,
    BucketBounds,
    FindUnstorable,
    LogOffsets,
    LogRange,
    LogSplit,
    OnBadRecord,
    TableLog,
    fail_on_bad_record,
)
from notes import NotesLog, NotesSource, Row, meta_of

__all__ = ["RIGHT", "WRONG", "plugin_of"]


# -- pages -------------------------------------------------------------------------------------------------------------


@wrong("test_many.py::test_more_tables_than_a_page_has_are_listed", "leaves out 100 of them")
class ListsAThousandNames(NotesSource):
    """As a store does, whose answer says at its end that there are more."""

    def list_tables(self) -> Sequence[str]:
        return super().list_tables()[:1000]


@wrong("test_tables.py::test_tables_of_names_alike_are_each_listed", "those that are not listed")
class GoesOnBehindANameInAnyCase(NotesSource):
    """Page by page. Names that differ in their case count as one where a page ends."""

    def list_tables(self) -> Sequence[str]:
        left, found = list(super().list_tables()), list[str]()
        while left:
            page = sorted(left, key=str.casefold)[:2]
            found += page
            left = [name for name in left if name.casefold() > page[-1].casefold()]
        return sorted(found)


@wrong("test_tables.py::test_tables_of_names_alike_are_each_listed", "those that are not listed")
class StripsNames(NotesSource):
    """As of lines of text. A name that ends with a blank is another table's."""

    def list_tables(self) -> Sequence[str]:
        return sorted({name.strip() for name in super().list_tables()})


@wrong("test_many.py::test_more_buckets_than_a_page_has_are_read", "has 100 of them")
class ListsAHundredShards(NotesLog):
    def bounds(self) -> Mapping[str, BucketBounds]:
        return dict(islice(super().bounds().items(), 100))


@wrong("test_many.py::test_many_bad_records_are_each_told", "of 120 bad records")
class TellsAHundredBadRecords(NotesLog):
    """So that no log is flooded. The others are lost."""

    def read(
        self, split: LogSplit, *, columns: Sequence[str] | None = None, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        told = list[BadRecord]()

        def tell(record: BadRecord) -> None:
            told.append(record)
            if len(told) <= 100:
                on_bad_record(record)

        return super().read(split, columns=columns, on_bad_record=tell)

    def plan(self, wanted: LogRange) -> Sequence[LogSplit]:
        super().plan(wanted)
        return whole_splits(wanted)


@wrong("test_many.py::test_pages_behind_a_gap_are_read_once", "has gaps before and behind")
class CountsAPageForItsOffsets(NotesLog):
    """The next page begins as many offsets later as this one had records."""

    def plan(self, wanted: LogRange) -> Sequence[LogSplit]:
        super().plan(wanted)
        return whole_splits(wanted)

    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        start = split.start
        while page := list(islice(super().records(replace(split, start=start)), 1000)):
            yield from page
            start += len(page)
            if len(page) < 1000:
                return


@wrong("test_many.py::test_a_read_that_takes_a_day_gives_each_row", "goes on by a day")
class EndsAfterAnHour(NotesLog):
    """So that no read hangs for ever."""

    def plan(self, wanted: LogRange) -> Sequence[LogSplit]:
        super().plan(wanted)
        return whole_splits(wanted)

    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        began = time.time()
        for record in super().records(split):
            if time.time() > began + 3600:
                return
            yield record


@wrong("test_offsets.py::test_a_bucket_that_is_not_there_is_refused", "would be lost in silence")
class TakesABucketThatIsGoneForAnEmptyOne(NotesLog):
    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        if split.bucket in self.meta()["buckets"]:
            yield from super().records(split)


@wrong("test_late.py::test_what_is_still_written_is_read_once_it_is_whole", "to which somebody is writing")
class CountsALineThatIsStillWritten(NotesLog):
    """As a bad record. The whole line gets its offset later, and is taken for read."""

    def lines(self, bucket: str) -> Iterator[dict[str, Any]]:
        with self.opened(bucket) as file:
            for offset, line in enumerate(file):
                value = line.decode()
                digest = hashlib.sha256(value.encode()).hexdigest()
                half = {"o": offset, "v": value, "d": digest, "at": time.time_ns() // 1_000_000}
                yield json.loads(line) if line.endswith(b"\n") else half


# -- values and records ------------------------------------------------------------------------------------------------


@wrong("test_reading.py::test_texts_are_read_as_they_were_written", "came otherwise")
class NormalisesTexts(NotesLog):
    """Of two spellings of a letter it makes one."""

    def row(self, value: bytes) -> Row:
        row = dict(super().row(value))
        return {
            name: unicodedata.normalize("NFC", each) if isinstance(each, str) else each for name, each in row.items()
        }


@wrong("test_reading.py::test_texts_are_read_as_they_were_written", "came otherwise")
class TakesWordsForNull(NotesLog):
    """As libraries of tables do with files of text."""

    def row(self, value: bytes) -> Row:
        row = dict(super().row(value))
        return {name: None if each in ("NULL", "NaN", "N/A") else each for name, each in row.items()}


@wrong("test_bad_records.py::test_records_that_are_equal_are_each_decoded", "taken to be replayed")
class DecodesEqualRecordsOnce(NotesLog):
    def decode(
        self, records: Sequence[BadRecord], *, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        return super().decode(list({each.value: each for each in records}.values()), on_bad_record=on_bad_record)


@wrong("test_bad_records.py::test_decode_gives_the_rows_that_a_read_gives", "and told to be bad")
class CutsTheBytesOfBadRecords(NotesLog):
    """A column of text has its most. What is left can't be replayed."""

    def read_storable(
        self, split: LogSplit, find_unstorable: FindUnstorable, *, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        def tell(record: BadRecord) -> None:
            on_bad_record(replace(record, value=record.value and record.value[:65_535]))

        return super().read_storable(split, find_unstorable, on_bad_record=tell)


@wrong("test_bad_records.py::test_a_range_of_a_bad_record_alone_tells_it", "is read by itself")
class CountsBadRecordsFromTheStart(NotesLog):
    """Of a split, as if no offset were missing. Two pages have dead letters of one offset."""

    def plan(self, wanted: LogRange) -> Sequence[LogSplit]:
        super().plan(wanted)
        return whole_splits(wanted)

    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        for at, record in enumerate(super().records(split)):
            yield replace(record, offset=split.start + at)


@wrong("test_many.py::test_many_bad_records_are_each_told", "of 120 bad records")
class EndsAtAPageOfBadRecords(NotesLog):
    """A page without rows is taken for the one behind the last."""

    def plan(self, wanted: LogRange) -> Sequence[LogSplit]:
        super().plan(wanted)
        return whole_splits(wanted)

    def rows(self, records: Iterator[BadRecord], on_bad_record: OnBadRecord) -> Iterator[tuple[Row, BadRecord]]:
        while page := list(islice(records, 100)):
            found = list(super().rows(iter(page), on_bad_record))
            if not found:
                return
            yield from found


@wrong("test_bad_records.py::test_bad_records_are_told_beside_rows_that_can_not_be_stored", "are decoded")
class TellsByPlacesBeforeBadRecords(NotesLog):
    """Of a page, it looks a row that is refused up among all records, the bad ones too."""

    def batches(
        self, records: Iterator[BadRecord], on_bad_record: OnBadRecord
    ) -> Iterator[tuple[pa.RecordBatch, list[BadRecord]]]:
        page = list(records)
        if found := list(self.rows(iter(page), on_bad_record)):
            yield self.batch(found)[0], page[: len(found)]


@wrong("test_reading.py::test_texts_are_read_as_they_were_written", "came otherwise")
class TakesDigitsForNumbers(NotesLog):
    """As a sheet does, and zip codes lose their zeros."""

    def row(self, value: bytes) -> Row:
        row = dict(super().row(value))
        return {
            name: str(int(each)) if isinstance(each, str) and each.isdecimal() else each for name, each in row.items()
        }


@wrong("test_reading.py::test_values_at_the_limits_of_their_types", "and are not nullable")
class RequiresItsColumns(NotesSource):
    """As a model of the rows does, whose fields have no default. The lake's columns would have no nulls."""

    def open(self, name: str, options: Any) -> TableLog:
        log = super().open(name, options)
        schema = pa.schema([field.with_nullable(False) for field in log.table.schema])
        return self.log_type(self.root / name, replace(log.table, schema=schema), self.url)


# -- histories ---------------------------------------------------------------------------------------------------------


@wrong("test_histories.py::test_a_stamp_tells_no_other_history_where_there_is_none[update_rows]", "another history")
class StampsTheRow(NotesLog):
    """All of the last row that was read, which an UPDATE may change."""

    def stamp(self, position: LogOffsets) -> str | None:
        found = [
            line["d"]
            for bucket, end in position.items()
            for line in self.lines(bucket)
            if line["o"] == end - 1 and not line.get("gap")
        ]
        return "-".join(found) or None


@wrong("test_histories.py::test_a_table_that_is_made_again_has_another_identity", "rows of a new table")
class ReadsByTheNameAlone(NotesLog):
    """Nothing tells a task that the table was made again in the midst of its read."""

    def stamp(self, position: LogOffsets) -> str | None:
        return None


@wrong("test_histories.py::test_a_table_that_is_made_again_has_another_identity", "rows of a new table")
class IdentifiesByWhatItKnew(ReadsByTheNameAlone):
    def identify(self) -> str | None:
        return self.described.table_id


class _IsRefusedByItsServer(ReadsByTheNameAlone):
    """Each of its requests names the table's id. Of another table its client raises an error of its own."""

    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        if self.meta()["id"] != self.described.table_id:
            raise LookupError("UNKNOWN_TOPIC_ID")
        yield from super().records(split)


_MADE_AGAIN = "test_histories.py::test_a_table_that_is_made_again_has_another_identity"
RIGHT["is_refused_by_its_server"] = Right(_IsRefusedByItsServer, "NotesHarness", (_MADE_AGAIN,))


@wrong("test_histories.py::test_an_identity_is_the_same_in_each_process", "whose table is what it was")
class IdentifiesByItsName(NotesLog):
    """And `table_id` is another text: each union read would be refused."""

    def identify(self) -> str | None:
        return self.described.name


@wrong("test_histories.py::test_a_table_that_is_made_again_has_another_identity", "made again is read")
class KeepsAnswersByName(NotesLog):
    """In its process, as a client does that asks for nothing twice."""

    kept: ClassVar[dict[object, list[BadRecord]]] = {}

    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        asked = (self.folder, split.bucket, split.start, split.end)
        if asked not in self.kept:
            self.kept[asked] = list(super().records(split))
        yield from self.kept[asked]


@wrong("test_histories.py::test_a_column_that_is_added_is_read", "after one was added")
class RemembersItsColumns(NotesSource):
    """By the name of the table, so that they are asked for once."""

    def open(self, name: str, options: Any) -> TableLog:
        log = super().open(name, options)
        self.__dict__.setdefault(name, log.table.schema)
        return self.log_type(self.root / name, replace(log.table, schema=self.__dict__[name]), self.url)


@wrong("test_tables.py::test_a_table_stays_the_same_whatever_becomes_of_its_rows[add_bucket]", "`table_id` of a table")
class IsKnownByItsBuckets(NotesSource):
    def table_id(self, name: str, meta: Mapping[str, object]) -> str:
        return f"{super().table_id(name, meta)}-{len(meta_of(self.root / name)['buckets'])}"
