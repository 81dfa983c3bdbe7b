"""More wrong sources, as authors of queues, polled tables and landing zones write them: see `altered_notes`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa

from altered_notes import RIGHT, WRONG, plugin_of, whole_splits, wrong
from laketier.spi import (
    BadRecord,
    BucketBounds,
    LogOffsets,
    LogRange,
    LogSplit,
    OnBadRecord,
    StorageError,
    TableLog,
    fail_on_bad_record,
)
from laketier_conformance.expect import NotShown
from laketier_source_conformance.system import CannotBe
from notes import NotesLog, NotesSource, Row, meta_of

__all__ = ["RIGHT", "WRONG", "plugin_of"]


# -- shards ------------------------------------------------------------------------------------------------------------


@wrong("test_offsets.py::test_a_long_gap_is_passed_over", "what came after")
class EndsAtAnEmptyPage(NotesLog):
    """Of ten offsets: a page without records is taken for the end."""

    def plan(self, wanted: LogRange) -> Sequence[LogSplit]:
        super().plan(wanted)
        return whole_splits(wanted)

    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        for start in range(split.start, split.end, 10):
            page = list(super().records(replace(split, start=start, end=min(start + 10, split.end))))
            if not page:
                return
            yield from page


@wrong("test_late.py::test_a_bucket_that_is_closed_keeps_its_rows", "closed")
class ForgetsClosedShards(NotesLog):
    """Only those that still get records are listed."""

    def bounds(self) -> Mapping[str, BucketBounds]:
        closed = self.meta().get("closed", [])
        return {bucket: each for bucket, each in super().bounds().items() if bucket not in closed}


@wrong("test_late.py::test_a_bucket_that_is_closed_keeps_its_rows", "closed")
class ForgetsSmallClosedShards(NotesLog):
    """Of a few records: a shard is closed once it is full, so they are taken for none."""

    def bounds(self) -> Mapping[str, BucketBounds]:
        closed = self.meta().get("closed", [])
        return {bucket: each for bucket, each in super().bounds().items() if bucket not in closed or each.latest > 3}


@wrong("test_histories.py::test_a_stamp_tells_no_other_history_where_there_is_none[expire_all]", "is asked for after")
class StampsWhatExpired(NotesLog):
    """It has to look at the last record that was read, and says that it can't."""

    def stamp(self, position: LogOffsets) -> str | None:
        for bucket, end in position.items():
            self.refuse_expired(bucket, max(end - 1, 0))
        return super().stamp(position)


@wrong("test_histories.py::test_a_stamp_tells_no_other_history_where_there_is_none[compact]", "another history")
class StampsTheNewestThatIsLeft(NotesLog):
    """Of the records before a position. A compaction may take that one away."""

    def stamp(self, position: LogOffsets) -> str | None:
        found = [
            line["u"]
            for bucket, end in position.items()
            for line in self.lines(bucket)
            if line["o"] < end and not line.get("gap")
        ]
        return "-".join([*found[-1:], str(len(found))]) if found else None


@wrong("test_histories.py::test_a_stamp_tells_no_other_history_where_there_is_none[rename_column]", "another history")
class StampsItsColumns(NotesLog):
    """The whole row, by the names that its columns have today."""

    def stamp(self, position: LogOffsets) -> str | None:
        found = super().stamp(position)
        names = meta_of(self.folder)["columns"]
        return None if found is None else f"{found}-{'-'.join(names)}"


@wrong("test_offsets.py::test_a_dozen_buckets_are_told_apart", "a dozen buckets")
class TakesANameForAPlace(NotesLog):
    """Of names that are sorted, "10" comes before "2"."""

    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        named = sorted(self.meta()["buckets"])[int(split.bucket)]
        return super().records(replace(split, bucket=named))


@wrong("test_expired.py::test_records_that_expire_while_they_are_read_are_not_lost_in_silence", "and no error")
class LooksOnceForWhatExpired(NotesLog):
    """Before its first page. What expires until the last one is fetched is not missed."""

    def refuse_expired(self, bucket: str, start: int) -> None:
        return

    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        super().refuse_expired(split.bucket, split.start)
        for start in range(split.start, split.end, 2):
            page = list(super().lines(split.bucket))
            for line in page:
                if start <= line["o"] < min(start + 2, split.end) and not line.get("gap"):
                    yield BadRecord(bucket=split.bucket, offset=line["o"], error="", value=line["v"].encode())

    def plan(self, wanted: LogRange) -> Sequence[LogSplit]:
        return whole_splits(wanted)


@wrong("test_bad_records.py::test_decode_gives_the_rows_that_a_read_gives", "the row at their offset")
class ReadsAgainInsteadOfDecoding(NotesLog):
    """A dead letter has an offset, so why keep its bytes? They may have expired by then, or been corrected."""

    def decode(
        self, records: Sequence[BadRecord], *, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        for each in records:
            split = LogSplit(bucket=each.bucket, start=each.offset, end=each.offset + 1)
            yield from self.read(split, on_bad_record=on_bad_record)


@wrong("test_expired.py::test_a_log_whose_records_all_expired_goes_on", "has again")
class ListsNoShardThatIsEmpty(NotesLog):
    def bounds(self) -> Mapping[str, BucketBounds]:
        return {bucket: each for bucket, each in super().bounds().items() if each.earliest < each.latest}


@wrong("test_late.py::test_appends_of_one_moment_are_told_apart", "each once")
class CountsByTheMoment(NotesLog):
    """Offsets are milliseconds. What comes in one that was read is lost."""

    def bounds_of(self, bucket: str, meta: Mapping[str, Any]) -> BucketBounds:
        moments = [line["at"] for line in self.lines(bucket)]
        return BucketBounds(min(moments, default=0), max(moments, default=-1) + 1)

    def refuse_expired(self, bucket: str, start: int) -> None:
        return

    def plan(self, wanted: LogRange) -> Sequence[LogSplit]:
        return whole_splits(wanted)

    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        for line in self.lines(split.bucket):
            if split.start <= line["at"] < split.end and not line.get("gap"):
                yield BadRecord(bucket=split.bucket, offset=line["at"], error="", value=line["v"].encode())


# -- tables that are polled --------------------------------------------------------------------------------------------


@wrong("test_late.py::test_rows_beside_an_open_transaction_cost_none", "each once")
class CountsToTheHighestId(NotesLog):
    """Ids are given when a row is inserted, and rows are seen when their transaction is committed: in another order."""

    def bounds_of(self, bucket: str, meta: Mapping[str, Any]) -> BucketBounds:
        seen = [line for line in self.lines(bucket) if line.get("tx") in (None, *meta["committed"])]
        newest = seen[-1] if seen else {"o": -1, "at": None}
        return BucketBounds(meta["expired"].get(bucket, 0), newest["o"] + 1, newest["at"])

    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        self.refuse_expired(split.bucket, split.start)
        committed, last = self.meta()["committed"], -1
        for line in self.lines(split.bucket):
            last = line["o"]
            if split.start <= last < split.end and not line.get("gap") and line.get("tx") in (None, *committed):
                yield BadRecord(bucket=split.bucket, offset=last, error="", value=line["v"].encode(), at=line["at"])
        if last + 1 < split.end:
            raise StorageError("the table ends early", where=str(self.folder))


@wrong("test_expired.py::test_a_log_whose_records_all_expired_goes_on", "the latest offset")
class BeginsAgainWhereTheTableIsEmpty(NotesLog):
    """The highest id of no rows is none."""

    def bounds_of(self, bucket: str, meta: Mapping[str, Any]) -> BucketBounds:
        return super().bounds_of(bucket, meta) if any(True for _ in self.lines(bucket)) else BucketBounds(0, 0)


@wrong("test_same_rows.py::test_rows_that_are_equal_are_all_there", "equal")
class SelectsDistinctRows(NotesLog):
    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        seen: set[bytes | None] = set()
        for record in super().records(split):
            if record.value not in seen:
                seen.add(record.value)
                yield record


@wrong("test_tables.py::test_keys_and_partitions_are_columns_of_the_table", "`primary_key`")
class SpellsItsKeyInAnotherCase(NotesSource):
    def open(self, name: str, options: Any) -> TableLog:
        log: Any = super().open(name, options)
        return replace(log, described=replace(log.described, primary_key=("ID",)))


@wrong("test_offsets.py::test_the_time_of_the_newest_record_is_no_earlier_than_a_record", "`latest_at`")
class TellsTheTimeOfTheOldest(NotesLog):
    """How far behind a table is would grow with its age."""

    def bounds_of(self, bucket: str, meta: Mapping[str, Any]) -> BucketBounds:
        oldest = next((line["at"] for line in self.lines(bucket)), None)
        return replace(super().bounds_of(bucket, meta), latest_at=oldest)


# -- queues ------------------------------------------------------------------------------------------------------------


@wrong("test_bad_records.py::test_a_bad_record_keeps_its_key", "key")
class LeavesOutKeys(NotesLog):
    def rows(self, records: Iterator[BadRecord], on_bad_record: OnBadRecord) -> Iterator[tuple[Row, BadRecord]]:
        return super().rows((replace(record, key=None) for record in records), on_bad_record)


@wrong("test_bad_records.py::test_a_bad_record_keeps_its_key", "the records that it got")
class DecodesWithoutKeys(NotesLog):
    def decode(
        self, records: Sequence[BadRecord], *, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        return super().decode([replace(each, key=None) for each in records], on_bad_record=on_bad_record)


@wrong("test_same_rows.py::test_a_driver_that_knows_a_range_by_its_text_reads_the_same_rows", "by its text")
class KnowsItsPositionsByHeart(NotesLog):
    """Its process keeps the position of each offset that `bounds` told; what is not known begins at the newest."""

    def bounds(self) -> Mapping[str, BucketBounds]:
        found = super().bounds()
        _POSITIONS.update((bucket, offset) for bucket, each in found.items() for offset in (each.earliest, each.latest))
        return found

    def plan(self, wanted: LogRange) -> Sequence[LogSplit]:
        unknown = {bucket for bucket, end in wanted.end.items() if (bucket, end) not in _POSITIONS}
        return [
            replace(split, payload="newest") if split.bucket in unknown else split for split in super().plan(wanted)
        ]

    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        return iter(()) if split.payload == "newest" else super().records(split)


_POSITIONS: set[tuple[str, int]] = set()


# -- landing zones -----------------------------------------------------------------------------------------------------


@wrong("test_late.py::test_a_record_that_comes_late_moves_no_other", "late")
class NumbersFilesByTheirNames(NotesLog):
    """One whose name sorts before others moves them, and is never read itself."""

    def lines(self, bucket: str) -> Iterator[dict[str, Any]]:
        every = list(super().lines(bucket))
        offsets = [line["o"] for line in every]
        every.sort(key=lambda line: not line.get("late"))
        return ({**line, "o": offset} for line, offset in zip(every, offsets, strict=True))


@wrong("test_histories.py::test_an_input_that_is_replaced_is_told", "replaced")
class KnowsFilesByTheirSizes(NotesLog):
    """Another file of the same name and size is taken for the same."""

    def refuse_replaced(self, line: Mapping[str, Any]) -> None:
        return


# -- connections -------------------------------------------------------------------------------------------------------


@wrong("test_connections.py::test_a_connection_that_breaks_costs_and_doubles_no_row[reset-each time]", "and no error")
class TakesAResetForTheEnd(NotesLog):
    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        with suppress(StorageError):
            yield from super().records(split)


@wrong("test_connections.py::test_a_connection_that_breaks_costs_and_doubles_no_row[end-once]", "and no error")
class ReadsLinesAsTheyCome(NotesLog):
    """Python's client of HTTP says nothing where an answer that is read line by line ends early."""

    def opened(self, bucket: str) -> Any:
        return self.answer(bucket) if self.url else super().opened(bucket)

    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        for line in self.lines(split.bucket):
            if split.start <= line["o"] < split.end and not line.get("gap"):
                yield BadRecord(bucket=split.bucket, offset=line["o"], error="", value=line["v"].encode())


@wrong("test_connections.py::test_a_connection_that_breaks_costs_and_doubles_no_row[reset-once]", "each once")
class BeginsAgainAfterAReset(NotesLog):
    """With what was read before already given away."""

    def opened(self, bucket: str) -> Any:
        return self.answer(bucket) if self.url else super().opened(bucket)

    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        try:
            yield from super().records(split)
        except StorageError:
            yield from super().records(split)


@wrong("test_connections.py::test_bounds_by_a_connection_that_breaks_are_an_error_or_right[end]", "after")
class CountsTheLinesThatCame(NotesLog):
    def opened(self, bucket: str) -> Any:
        return self.answer(bucket) if self.url else super().opened(bucket)


@wrong("test_connections.py::test_a_system_that_stalls_costs_no_row", "and no error")
class TakesATimeoutForTheEnd(NotesLog):
    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        try:
            yield from super().records(split)
        except StorageError as error:
            if "timed out" not in str(error):
                raise


# -- answers of the suite's own ----------------------------------------------------------------------------------------


@wrong("test_same_rows.py::test_each_row_is_read_once", "which is the suite's own")
class SaysThatItCannotBe(NotesLog):
    """By the error with which the suite says that a system can't have what a test needs."""

    def __getstate__(self) -> Any:
        raise CannotBe("pickle: its connection can't be pickled")


@wrong("test_same_rows.py::test_each_row_is_read_once", "which is the suite's own")
class SaysThatItIsNotShown(NotesLog):
    def __getstate__(self) -> Any:
        raise NotShown("pickle", "its connection can't be pickled")


# -- several readers ---------------------------------------------------------------------------------------------------


@wrong("test_lives.py::test_logs_of_one_source_are_read_by_turns", "by turns")
class SharesTheReaderOfItsSource(NotesSource):
    """Its logs have one cursor for each bucket, which a task's copy has not."""

    def open(self, name: str, options: Any) -> TableLog:
        log: Any = super().open(name, options)
        self.cursors: dict[str, Iterator[BadRecord]] = getattr(self, "cursors", {})
        return _WithACursor(log.folder, log.described, self.cursors)


class _WithACursor(NotesLog):
    def __init__(self, folder: Any, described: Any, cursors: dict[str, Iterator[BadRecord]] | None = None) -> None:
        super().__init__(folder, described)
        object.__setattr__(self, "cursors", cursors)

    def __reduce__(self) -> Any:
        return _WithACursor, (self.folder, self.described)

    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        if self.__dict__["cursors"] is None:
            yield from super().records(split)
            return
        cursors = self.__dict__["cursors"]
        cursors[split.bucket] = super().records(split)
        while (record := next(cursors[split.bucket], None)) is not None:
            yield record
