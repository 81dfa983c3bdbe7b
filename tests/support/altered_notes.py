"""Wrong sources, each by a small alteration of a correct one (`notes`), as their authors might write them.

`WRONG` has each by its name, with the test of the suite that catches it and a part of the sentence that it says.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from laketier.spi import (
    SOURCE_SPI_VERSION,
    BadRecord,
    BucketBounds,
    FindUnstorable,
    LogOffsets,
    LogRange,
    LogSourcePlugin,
    LogSplit,
    OffsetsExpired,
    OnBadRecord,
    StorageError,
    TableLog,
    TableNotFound,
    fail_on_bad_record,
    joined_stamps,
)
from laketier_source_conformance.harness import AtItsBound
from notes import NotesHarness, NotesLog, NotesPlugin, NotesSource, Row, meta_of


@dataclass(frozen=True)
class Wrong:
    """``test``: of the suite; it alone is run. ``says``: a part of its sentence. ``harness``: if not its own."""

    altered: type
    test: str
    says: str
    harness: str | None = None


WRONG: dict[str, Wrong] = {}


def wrong(test: str, says: str, harness: str | None = None) -> Any:
    """Take an altered log, source or plugin into the table."""

    def take(altered: type) -> type:
        name = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in altered.__name__).lstrip("_")
        WRONG[name] = Wrong(altered, test, says, harness)
        return altered

    return take


@dataclass(frozen=True)
class Right:
    """``harness``: in this module. ``tests``: those that once took it for wrong."""

    altered: type
    harness: str
    tests: tuple[str, ...]


RIGHT: dict[str, Right] = {}
"""Sources that are odd, and as the contract asks for."""
_ROUNDS = "test_rounds.py::test_one_round_of_all_is_as_good_as_many"
_OFFSETS = (
    "test_offsets.py::test_compaction_moves_no_offset",
    "test_rounds.py::test_a_gap_is_passed",
    "test_same_rows.py::test_a_range_is_cut_at_each_offset",
)


def plugin_of(name: str) -> LogSourcePlugin:
    altered = (RIGHT if name in RIGHT else WRONG)[name].altered
    if issubclass(altered, NotesPlugin):
        return altered()
    source = altered if issubclass(altered, NotesSource) else type("Source", (NotesSource,), {"log_type": altered})
    return type("Plugin", (NotesPlugin,), {"source_type": source})()


# -- reads that end early, or go too far -------------------------------------------------------------------------------


@wrong("test_same_rows.py::test_each_row_is_read_once", "rows, found")
class LosesTheLastOfASplit(NotesLog):
    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        return itertools.islice(super().records(split), split.end - split.start - 1 or 1)


@wrong("test_offsets.py::test_each_append_is_a_range_of_its_own", "has these rows")
class ReadsTheEndToo(NotesLog):
    """The next range gives that row again."""

    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        yield from super().records(split)
        with suppress(StorageError):
            yield from super().records(replace(split, start=split.end, end=split.end + 1))


@wrong("test_same_rows.py::test_a_range_stays_as_the_log_grows", "more rows came")
class ReadsToTheEndOfTheLog(NotesLog):
    """Who begins at the beginning is taken to want all."""

    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        return super().records(replace(split, end=self.bounds()[split.bucket].latest) if split.start == 0 else split)


@wrong("test_failures.py::test_a_file_that_is_damaged_after_the_plan_costs_no_row[is gone-first]", "and no error")
class TakesAMissingFileForAnEmptyOne(NotesLog):
    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        with suppress(StorageError):
            yield from super().records(split)


@wrong("test_failures.py::test_a_file_that_is_damaged_after_the_plan_costs_no_row[lost its last line-last]", "no error")
class TakesACutFileForItsEnd(NotesLog):
    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        try:
            yield from super().records(split)
        except StorageError as error:
            if "the log ends at" not in str(error):
                raise


class _LooksForNothing(NotesLog):
    """Gives the lines that it finds, and asks neither whether some are missing nor whether they have expired."""

    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        for line in self.lines(split.bucket):
            if split.start <= line["o"] < split.end and not line.get("gap"):
                yield BadRecord(bucket=split.bucket, offset=line["o"], error="", value=line["v"].encode())


@wrong("test_failures.py::test_a_read_of_a_file_that_fails_costs_no_row", "EIO from look")
class TakesAnErrorForTheEnd(_LooksForNothing):
    def lines(self, bucket: str) -> Iterator[dict[str, Any]]:
        try:
            yield from super().lines(bucket)
        except StorageError as error:
            if "Input/output" not in str(error):
                raise


@wrong("test_failures.py::test_a_file_that_ends_early_costs_no_row", "nothing came from look")
class ReadsWhatIsThere(_LooksForNothing):
    """A file that ends early has no more."""


@wrong("test_offsets.py::test_offsets_that_no_reader_sees_are_passed_over", "what came after offsets without records")
class CountsRowsForOffsets(NotesLog):
    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        some = [line for line in self.lines(split.bucket) if not line.get("gap")]
        for offset, line in enumerate(some):
            if split.start <= offset < split.end:
                yield BadRecord(bucket=split.bucket, offset=offset, error="", value=line["v"].encode())


@wrong("test_same_rows.py::test_a_range_is_the_sum_of_its_parts", "which together are its rows")
class ReadsWholeBlocks(NotesLog):
    """A range begins at a block of four records."""

    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        return super().records(replace(split, start=split.start - split.start % 4))


# -- offsets -----------------------------------------------------------------------------------------------------------


@wrong("test_offsets.py::test_rows_of_an_open_transaction_are_not_there_yet", "transaction")
class CountsOpenTransactions(NotesLog):
    def meta(self) -> dict[str, Any]:
        meta = super().meta()
        every = [line.get("tx") for bucket in meta["buckets"] for line in self.lines(bucket)]
        return {**meta, "committed": every}


@wrong("test_offsets.py::test_rows_of_an_open_transaction_are_not_there_yet", "lost are")
class PassesOverOpenTransactions(CountsOpenTransactions):
    """Right at each moment, and lost for good once the transaction is committed."""

    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        committed = meta_of(self.folder)["committed"]
        is_open = {line["o"] for line in self.lines(split.bucket) if line.get("tx") and line["tx"] not in committed}
        return (record for record in super().records(split) if record.offset not in is_open)


@wrong("test_offsets.py::test_a_bucket_may_come_later", "has only")
class RemembersItsBuckets(NotesLog):
    def bounds(self) -> Mapping[str, BucketBounds]:
        known = _KNOWN.setdefault(id(self), tuple(self.meta()["buckets"]))
        return {bucket: each for bucket, each in super().bounds().items() if bucket in known}


_KNOWN: dict[int, tuple[str, ...]] = {}


@wrong("test_offsets.py::test_bounds_stay_while_nothing_is_appended", "once more")
class GivesOffsetsAsItLooks(NotesLog):
    def bounds(self) -> Mapping[str, BucketBounds]:
        return {
            bucket: replace(each, latest=each.latest + next(_LOOKS)) if each.latest else each
            for bucket, each in super().bounds().items()
        }


_LOOKS = itertools.count()


@wrong("test_offsets.py::test_the_time_of_the_newest_record_is_in_milliseconds", "in ms since 1970")
class TellsTimesInSeconds(NotesLog):
    def bounds(self) -> Mapping[str, BucketBounds]:
        return {
            bucket: replace(each, latest_at=None if each.latest_at is None else each.latest_at // 1000)
            for bucket, each in super().bounds().items()
        }


@wrong("test_offsets.py::test_offsets_that_no_reader_sees_are_passed_over", "leaves out bucket")
class PlansNothingForAGap(NotesLog):
    def plan(self, wanted: LogRange) -> Sequence[LogSplit]:
        return [split for split in super().plan(wanted) if any(True for _ in self.records(split))]


@wrong("test_offsets.py::test_the_earliest_offset_stays_while_nothing_expires", "earliest offset")
class ForgetsWhatItPassed(NotesLog):
    """Its earliest offset follows the newest one."""

    def bounds(self) -> Mapping[str, BucketBounds]:
        return {
            bucket: replace(each, earliest=max(each.earliest, each.latest - 5))
            for bucket, each in super().bounds().items()
        }


@wrong("test_offsets.py::test_gaps_anywhere_cost_no_row", "gaps")
class EndsAtAGap(NotesLog):
    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        first = split.start
        for record in super().records(split):
            if record.offset > first + 1:
                return
            first = record.offset
            yield record


@wrong("test_offsets.py::test_compaction_moves_no_offset", "what came after a compaction")
class CountsWhatIsLeft(NotesLog):
    """Offsets are the places among the records that are there now; what is missing at the end is gaps."""

    def lines(self, bucket: str) -> Iterator[dict[str, Any]]:
        every = list(super().lines(bucket))
        some = [line for line in every if not line.get("gap")] + [line for line in every if line.get("gap")]
        return ({**line, "o": every[at]["o"]} for at, line in enumerate(some))


@wrong("test_offsets.py::test_a_range_beyond_the_log_is_refused", "found 4 rows")
class ReadsBeyondTheLog(ReadsWhatIsThere):
    """As well: what was never there is not missed, either."""


@wrong("test_offsets.py::test_bounds_have_buckets_without_rows", "has empty buckets too")
class LeavesOutEmptyBuckets(NotesLog):
    def bounds(self) -> Mapping[str, BucketBounds]:
        return {bucket: each for bucket, each in super().bounds().items() if each.latest}


@wrong("test_same_rows.py::test_a_host_with_another_clock_reads_the_same_rows[ahead]", "4000 days off")
class ReadsTheNewestWeek(NotesLog):
    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        since = time.time() - 7 * 24 * 3600
        return (record for record in super().records(split) if (record.at or 0) > since * 1000)


@wrong("test_same_rows.py::test_a_fresh_interpreter_reads_the_same_rows", "of its own")
class SpreadsRowsByHash(NotesLog):
    """Python's hash of a text is another in each process."""

    def row(self, value: bytes) -> Row:
        row = dict(super().row(value))
        return {**row, "score": float(hash(row["text"]) % 1000)}


@wrong("test_same_rows.py::test_a_fresh_interpreter_reads_the_same_rows", "No such file")
class KeepsARelativePath(NotesSource):
    def open(self, name: str, options: Any) -> TableLog:
        log: Any = super().open(name, options)
        return replace(log, folder=Path(os.path.relpath(log.folder)))


@wrong("test_lives.py::test_closed_logs_keep_no_descriptors", "descriptors more are open")
class KeepsFilesOpen(NotesLog):
    def bounds(self) -> Mapping[str, BucketBounds]:
        _FILES.append((self.folder / "meta.json").open())
        return super().bounds()


_FILES: list[Any] = []


# -- what expired ------------------------------------------------------------------------------------------------------


@wrong("test_expired.py::test_a_range_that_expired_is_refused", "without OffsetsExpired")
class BeginsWhereRecordsAreLeft(NotesLog):
    def refuse_expired(self, bucket: str, start: int) -> None:
        return

    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        first = self.meta()["expired"].get(split.bucket, 0)
        return super().records(replace(split, start=max(split.start, min(first, split.end))))


@wrong("test_expired.py::test_the_earliest_offset_tells_what_expired", "still begins where it did")
class NeverTellsWhatExpired(NotesLog):
    def bounds(self) -> Mapping[str, BucketBounds]:
        return {bucket: replace(each, earliest=0) for bucket, each in super().bounds().items()}


@wrong("test_expired.py::test_what_is_told_to_be_gone_has_no_rows", "told to be gone")
class TellsTooMuchGone(NotesLog):
    """It takes the end for the last offset."""

    def told_gone(self, gone: dict[str, list[tuple[int, int]]]) -> dict[str, list[tuple[int, int]]]:
        return {bucket: [(first, last + 1) for first, last in ranges] for bucket, ranges in gone.items()}


@wrong("test_expired.py::test_what_is_told_to_be_gone_has_no_rows", "what `gone` leaves is read")
class TellsTooLittleGone(NotesLog):
    def told_gone(self, gone: dict[str, list[tuple[int, int]]]) -> dict[str, list[tuple[int, int]]]:
        return {bucket: [(first, last - 1) for first, last in ranges] for bucket, ranges in gone.items()}


@wrong("test_expired.py::test_a_split_whose_records_expired_is_refused", "without OffsetsExpired")
class LooksForWhatExpiredInThePlanAlone(_LooksForNothing):
    """What expires between the plan and the read is passed over."""


# -- batches -----------------------------------------------------------------------------------------------------------


@wrong("test_reading.py::test_chosen_columns_come_as_they_were_asked_for", "gave the columns")
class GivesColumnsInItsOwnOrder(NotesLog):
    def read(self, split: LogSplit, *, columns: Sequence[str] | None = None, **more: Any) -> Iterator[pa.RecordBatch]:
        chosen = None if columns is None else [name for name in self.described.schema.names if name in columns]
        return super().read(split, columns=chosen, **more)


@wrong("test_reading.py::test_values_at_the_limits_of_their_types", "limits of their types")
class ReadsNumbersAsFloats(NotesLog):
    def row(self, value: bytes) -> Row:
        row = dict(super().row(value))
        number = row.get("id")
        return {**row, "id": number if number is None else min(int(float(number)), 2**63 - 1)}


@wrong("test_same_rows.py::test_a_fresh_interpreter_reads_the_same_rows", "of its own")
class CountsFromMidnightOfItsHost(NotesLog):
    """As who takes a moment without a zone for one of this host's zone."""

    def row(self, value: bytes) -> Row:
        row = dict(super().row(value))
        score = row.get("score")
        return {**row, "score": score if score is None else score + time.localtime(0).tm_gmtoff}


@wrong("test_reading.py::test_values_at_the_limits_of_their_types", "limits of their types")
class LeavesOutRowsOfNulls(NotesLog):
    def rows(self, records: Iterator[BadRecord], on_bad_record: OnBadRecord) -> Iterator[tuple[Row, BadRecord]]:
        return ((row, record) for row, record in super().rows(records, on_bad_record) if any(row.values()))


@wrong("test_reading.py::test_batches_have_the_columns_and_types_of_the_table", "of its types")
class GivesOtherTypes(NotesLog):
    def batch(self, some: list[tuple[Row, BadRecord]]) -> tuple[pa.RecordBatch, list[BadRecord]]:
        batch, records = super().batch(some)
        return batch.cast(
            pa.schema([("id", pa.int64()), ("text", pa.large_string()), ("score", pa.float64())])
        ), records


@wrong("test_reading.py::test_each_batch_has_memory_of_its_own", "memory of its own")
class FillsOneBuffer(NotesLog):
    def batch(self, some: list[tuple[Row, BadRecord]]) -> tuple[pa.RecordBatch, list[BadRecord]]:
        import numpy as np

        batch, records = super().batch(some)
        _IDS[: len(some)] = [row["id"] or 0 for row, _ in some]
        ids = pa.Array.from_buffers(pa.int64(), len(some), [None, pa.py_buffer(np.asarray(_IDS))])
        return pa.record_batch([ids, *batch.columns[1:]], schema=batch.schema), records


def _ids() -> Any:
    import numpy as np

    return np.zeros(8, np.int64)


_IDS = _ids()


@wrong("test_lives.py::test_threads_read_splits_of_a_log_at_once", "threads read the splits")
class SharesOneReader(NotesLog):
    """What is read at the moment is kept in the class."""

    current: ClassVar[LogSplit | None] = None

    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        type(self).current = split
        for record in super().records(split):
            _TURN.wait(0.002)
            if type(self).current == split:
                yield record


_TURN = threading.Event()


@wrong("test_reading.py::test_two_reads_of_a_log_go_on_by_turns", "go on by turns")
class HasOneReadAtATime(NotesLog):
    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        mine = next(_READS)
        _NEWEST[0] = mine
        for record in super().records(split):
            if _NEWEST[0] != mine:
                return
            yield record


_READS, _NEWEST = itertools.count(1), [0]


# -- bad records -------------------------------------------------------------------------------------------------------


@wrong("test_bad_records.py::test_a_bad_record_is_told_and_the_read_goes_on[between]", "is told once")
class DropsBadRecords(NotesLog):
    def rows(self, records: Iterator[BadRecord], on_bad_record: OnBadRecord) -> Iterator[tuple[Row, BadRecord]]:
        return super().rows(records, lambda record: None)


@wrong("test_bad_records.py::test_a_bad_record_is_told_and_the_read_goes_on[between]", "the rows around a bad record")
class EndsAtABadRecord(NotesLog):
    def rows(self, records: Iterator[BadRecord], on_bad_record: OnBadRecord) -> Iterator[tuple[Row, BadRecord]]:
        bad: list[BadRecord] = []
        for each in super().rows(records, bad.append):
            if bad:
                break
            yield each
        for record in bad[:1]:
            on_bad_record(record)


@wrong("test_bad_records.py::test_a_bad_record_is_told_and_the_read_goes_on[between]", "its bytes")
class TellsOtherBytes(NotesLog):
    def rows(self, records: Iterator[BadRecord], on_bad_record: OnBadRecord) -> Iterator[tuple[Row, BadRecord]]:
        return super().rows(
            records, lambda record: on_bad_record(replace(record, value=(record.value or b"").replace(b" ", b"")))
        )


@wrong("test_bad_records.py::test_bad_records_have_offsets_of_their_own", "an offset each")
class TellsTheOffsetOfTheSplit(NotesLog):
    def rows(self, records: Iterator[BadRecord], on_bad_record: OnBadRecord) -> Iterator[tuple[Row, BadRecord]]:
        first: list[int] = []

        def bad(record: BadRecord) -> None:
            first.append(record.offset)
            on_bad_record(replace(record, offset=first[0]))

        return super().rows(records, bad)


@wrong("test_same_rows.py::test_a_bad_record_is_told_again_and_the_same", "read again")
class TellsTheTimeOfItsRead(NotesLog):
    def rows(self, records: Iterator[BadRecord], on_bad_record: OnBadRecord) -> Iterator[tuple[Row, BadRecord]]:
        return super().rows(records, lambda record: on_bad_record(replace(record, at=time.time_ns() // 1000)))


@wrong("test_bad_records.py::test_an_error_of_who_takes_bad_records_comes_through", "expected _Stopped")
class SwallowsErrorsOfOthers(NotesLog):
    def rows(self, records: Iterator[BadRecord], on_bad_record: OnBadRecord) -> Iterator[tuple[Row, BadRecord]]:
        def bad(record: BadRecord) -> None:
            with suppress(Exception):
                on_bad_record(record)

        return super().rows(records, bad)


@wrong("test_bad_records.py::test_decode_gives_the_rows_that_a_read_gives", "decode")
class DecodesTheFirstAlone(NotesLog):
    def decode(
        self, records: Sequence[BadRecord], *, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        return super().decode(records[:1], on_bad_record=on_bad_record)


@wrong("test_bad_records.py::test_decode_gives_the_rows_that_a_read_gives", "records of a log are decoded")
class DecodesInAnotherWay(NotesLog):
    def decode(
        self, records: Sequence[BadRecord], *, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        for batch in super().decode(records, on_bad_record=on_bad_record):
            yield batch.set_column(1, batch.schema.field(1), pa.array([text.as_py().upper() for text in batch[1]]))


@wrong("test_bad_records.py::test_a_record_that_still_is_none_is_told_again", "`decode` told")
class DecodesWithOtherOffsets(NotesLog):
    def decode(
        self, records: Sequence[BadRecord], *, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        return super().decode([replace(each, offset=0) for each in records], on_bad_record=on_bad_record)


@wrong("test_bad_records.py::test_rows_that_can_not_be_stored_are_left_out_and_told[first]", "are decoded")
class TellsTheRecordBefore(NotesLog):
    def batches(
        self, records: Iterator[BadRecord], on_bad_record: OnBadRecord
    ) -> Iterator[tuple[pa.RecordBatch, list[BadRecord]]]:
        return ((batch, each[-1:] + each[:-1]) for batch, each in super().batches(records, on_bad_record))


@wrong("test_bad_records.py::test_rows_that_can_not_be_stored_are_left_out_and_told[first]", "rows, found")
class LeavesOutTheWholeBatch(NotesLog):
    def read_storable(
        self, split: LogSplit, find_unstorable: FindUnstorable, *, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        for batch, records in self.batches(self.records(split), on_bad_record):
            found = find_unstorable(batch)
            for at, why in found.items():
                on_bad_record(replace(records[at], error=why))
            if not found:
                yield batch


@wrong("test_bad_records.py::test_a_record_of_several_rows_is_left_out_whole", "beside a record of three")
class LeavesOutTheRowAlone(NotesLog):
    """The replay of its record gives the others again."""

    def read_storable(
        self, split: LogSplit, find_unstorable: FindUnstorable, *, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        for batch, records in self.batches(self.records(split), on_bad_record):
            found = find_unstorable(batch)
            for at, why in found.items():
                on_bad_record(replace(records[at], error=why))
            yield batch.filter(pa.array([at not in found for at in range(batch.num_rows)]))


@wrong("test_bad_bytes.py::test_the_time_of_a_bad_record_is_in_milliseconds", "in ms since 1970")
class TellsTimesOfBadRecordsInSeconds(NotesLog):
    def rows(self, records: Iterator[BadRecord], on_bad_record: OnBadRecord) -> Iterator[tuple[Row, BadRecord]]:
        return super().rows(
            records, lambda record: on_bad_record(replace(record, at=None if record.at is None else record.at // 1000))
        )


@wrong("test_bad_records.py::test_rows_that_can_not_be_stored_are_left_out_and_told[first]", "rows, found")
class NeverAsksWhatCanBeStored(NotesLog):
    def read_storable(self, split: LogSplit, find_unstorable: FindUnstorable, **more: Any) -> Iterator[pa.RecordBatch]:
        return self.read(split, **more)


# -- histories ---------------------------------------------------------------------------------------------------------


@wrong("test_histories.py::test_a_stamp_is_another_in_another_history", "the stamp of")
class StampsOffsets(NotesLog):
    def stamp(self, position: LogOffsets) -> str | None:
        return position.to_text()


@wrong("test_histories.py::test_a_stamp_is_the_same_in_each_process", "the stamp of a position, by")
class StampsByHash(NotesLog):
    def stamp(self, position: LogOffsets) -> str | None:
        return str(hash(super().stamp(position)))


@wrong("test_histories.py::test_a_stamp_is_another_in_another_history", "one bucket beyond the backup")
class StampsTheFirstBucket(NotesLog):
    def stamp(self, position: LogOffsets) -> str | None:
        first = min(position)
        return super().stamp(LogOffsets({first: position[first]}))


@wrong("test_lives.py::test_closing_a_log_closes_no_other_of_its_source", "others of its source")
class ClosesItsSourcesLogs(NotesSource):
    def open(self, name: str, options: Any) -> TableLog:
        if not hasattr(self, "opened"):
            self.opened = _Shared()
        return _OfASource(super().open(name, options), self.opened)


class _Shared:
    closed = False


class _OfASource(NotesLog):
    def __init__(self, log: Any, shared: _Shared) -> None:
        super().__init__(log.folder, log.described)
        object.__setattr__(self, "shared", shared)

    def close(self) -> None:
        self.__dict__["shared"].closed = True

    def bounds(self) -> Mapping[str, BucketBounds]:
        return {} if self.__dict__["shared"].closed else super().bounds()


@wrong("test_histories.py::test_a_stamp_stays_as_the_log_grows", "the stamp of a position")
class StampsTheNewest(NotesLog):
    def stamp(self, position: LogOffsets) -> str | None:
        return super().stamp(LogOffsets({bucket: each.latest for bucket, each in self.bounds().items()}))


@wrong("test_histories.py::test_a_table_that_is_made_again_has_another_identity", "`table_id` is the same")
class IsKnownByItsName(NotesSource):
    def table_id(self, name: str, meta: Mapping[str, Any]) -> str:
        return name


@wrong("test_tables.py::test_a_table_is_the_same_whoever_opens_it", "`table_id`")
class IsAnotherEachTime(NotesSource):
    def table_id(self, name: str, meta: Mapping[str, Any]) -> str:
        return uuid.uuid4().hex


@wrong("test_histories.py::test_a_renamed_column_is_told_by_its_former_name", "`former_names`")
class ForgetsFormerNames(NotesSource):
    def open(self, name: str, options: Any) -> TableLog:
        log: Any = super().open(name, options)
        return replace(log, described=replace(log.described, former_names={}))


# -- tables ------------------------------------------------------------------------------------------------------------


@wrong("test_tables.py::test_tables_are_listed", "in order")
class ListsInAnyOrder(NotesSource):
    def list_tables(self) -> Sequence[str]:
        return sorted(super().list_tables(), reverse=True)


@wrong("test_tables.py::test_a_table_that_is_made_later_is_listed_by_the_same_source", "after a source was opened")
class ListsOnce(NotesSource):
    def list_tables(self) -> Sequence[str]:
        self.listed = getattr(self, "listed", None) or super().list_tables()
        return self.listed


@wrong("test_tables.py::test_an_unknown_table_is_not_found[T]", "expected TableNotFound")
class FoldsTheCaseOfNames(NotesSource):
    def open(self, name: str, options: Any) -> TableLog:
        return super().open(name.lower(), options)


@wrong(
    "test_tables.py::test_an_unknown_table_is_not_found[nowhere]",
    "expected TableNotFound or ConfigError, found StorageError",
)
class NamesNoError(NotesSource):
    def open(self, name: str, options: Any) -> TableLog:
        try:
            return super().open(name, options)
        except TableNotFound:
            raise KeyError(name) from None


@wrong("test_failures.py::test_a_system_that_does_not_answer_is_told", "as if all were dropped")
class ListsNothingWhereNobodyAnswers(NotesSource):
    def list_tables(self) -> Sequence[str]:
        return super().list_tables() if self.root.is_dir() else []


@wrong("test_failures.py::test_a_system_that_does_not_answer_is_told", "`bounds` is asked for")
class HasNoBucketsWhereNobodyAnswers(NotesLog):
    def bounds(self) -> Mapping[str, BucketBounds]:
        return super().bounds() if self.folder.is_dir() else {}


# -- lives and declarations --------------------------------------------------------------------------------------------


@wrong("test_lives.py::test_a_log_is_closed_twice_and_in_another_thread", "a log is closed twice")
class ClosesOnce(NotesLog):
    def close(self) -> None:
        object.__setattr__(self, "closed", self.__dict__.get("closed", 0) + 1)
        if self.__dict__["closed"] > 1:
            raise RuntimeError("closed twice")


@wrong("test_same_rows.py::test_the_same_range_gives_the_same_rows_again", "pickle")
class KeepsALock(NotesLog):
    def bounds(self) -> Mapping[str, BucketBounds]:
        object.__setattr__(self, "lock", threading.Lock())
        return super().bounds()


@wrong("test_same_rows.py::test_a_fresh_interpreter_reads_the_same_rows", "of its own")
class KeepsWhatItReadsInItsProcess(NotesLog):
    def plan(self, wanted: LogRange) -> Sequence[LogSplit]:
        _PLANNED.update((split.bucket, split.start) for split in super().plan(wanted))
        return super().plan(wanted)

    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        return super().records(split) if (split.bucket, split.start) in _PLANNED else iter(())


_PLANNED: set[tuple[str, int]] = set()


@wrong("test_lives.py::test_a_log_is_closed_while_another_is_read", "closed")
class SharesItsConnection(NotesLog):
    """Who closes one closes all of the process."""

    def close(self) -> None:
        _OPEN[0] = False

    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        _OPEN[0] = True if split.start == 0 else _OPEN[0]
        for record in super().records(split):
            if not _OPEN[0]:
                return
            yield record


_OPEN = [True]


@wrong("test_lives.py::test_a_log_is_closed_once_a_newer_one_of_its_source_is_open", "an older one of its source")
class ClosesTheConnectionOfItsSource(NotesLog):
    def close(self) -> None:
        _OPEN[0] = False

    def plan(self, wanted: LogRange) -> Sequence[LogSplit]:
        if not _OPEN[0]:
            raise StorageError("the connection is closed", where=self.described.name)
        return super().plan(wanted)


@wrong("test_declaration.py::test_a_secret_is_shown_nowhere", "show its password")
class ShowsItsPassword(NotesSource):
    def __repr__(self) -> str:
        return f"NotesSource({self.password.reveal() if self.password else None})"


@wrong("test_declaration.py::test_the_version_of_the_contract_is_a_number_of_the_plugins_own", "write the number")
class TakesAnyVersion(NotesPlugin):
    spi_version = SOURCE_SPI_VERSION


def whole_splits(wanted: LogRange) -> list[LogSplit]:
    """A range, not cut."""
    starts = {bucket: wanted.start.get(bucket, 0) for bucket in wanted.end}
    return [
        LogSplit(bucket=bucket, start=starts[bucket], end=end)
        for bucket, end in wanted.end.items()
        if starts[bucket] < end
    ]


# -- odd, and right ----------------------------------------------------------------------------------------------------

_APART = 1 << 33


class _FarApart(NotesLog):
    """As by a moment in ns, or a position in a log of writes."""

    def bounds(self) -> Mapping[str, BucketBounds]:
        return {
            bucket: replace(each, earliest=each.earliest * _APART, latest=each.latest * _APART)
            for bucket, each in super().bounds().items()
        }

    def refuse_expired(self, bucket: str, start: int) -> None:
        super().refuse_expired(bucket, -(-start // _APART))

    def plan(self, wanted: LogRange) -> Sequence[LogSplit]:
        return whole_splits(wanted)

    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        dense = replace(split, start=-(-split.start // _APART), end=-(-split.end // _APART))
        if dense.start < dense.end:
            for record in super().records(dense):
                yield replace(record, offset=record.offset * _APART)


RIGHT["offsets_far_apart"] = Right(_FarApart, "NotesHarness", _OFFSETS)


class _BeginsElsewhere(NotesLog):
    """The first offset of each bucket is 1000, as `initial` tells."""

    def bounds_of(self, bucket: str, meta: Mapping[str, Any]) -> BucketBounds:
        found = super().bounds_of(bucket, meta)
        return BucketBounds(found.earliest + 1000, found.latest + 1000, found.latest_at, found.earliest + 1000)

    def refuse_expired(self, bucket: str, start: int) -> None:
        super().refuse_expired(bucket, start % 1000)

    def plan(self, wanted: LogRange) -> Sequence[LogSplit]:
        if any(wanted.start.get(bucket, 0) < 1000 for bucket in wanted.end):
            raise OffsetsExpired("offsets before 1000", where=str(self.folder), gone={})
        return super().plan(wanted)

    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        for each in super().records(replace(split, start=split.start - 1000, end=split.end - 1000)):
            yield replace(each, offset=each.offset + 1000)


_LATER = (
    "test_offsets.py::test_a_bucket_may_come_later",
    "test_late.py::test_appends_in_quick_succession_are_told_apart",
    "test_late.py::test_rows_beside_an_open_transaction_cost_none",
)
RIGHT["begins_elsewhere"] = Right(_BeginsElsewhere, "NotesHarness", _LATER)


class _DropsBuckets(NotesLog):
    """A bucket goes with its records, and another one comes."""


class PartitionsHarness(NotesHarness):
    """Its partitions are dropped when their time is over."""

    def expire_all(self, name: str) -> None:
        self.add_bucket(name)
        self.describe(name, buckets=self.describe(name)["buckets"][-1:])


_EXPIRED = ("test_expired.py::test_a_log_whose_records_all_expired_goes_on",)
RIGHT["drops_buckets"] = Right(_DropsBuckets, "PartitionsHarness", _EXPIRED)


class _FromAfar(NotesLog):
    """A task looks at no file: all that it needs is in its split."""

    def plan(self, wanted: LogRange) -> Sequence[LogSplit]:
        return [replace(split, payload=tuple(super(_FromAfar, self).records(split))) for split in super().plan(wanted)]

    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        return iter(split.payload)


class AfarHarness(NotesHarness):
    """Of a system whose files are its own."""

    cannot: ClassVar[Mapping[str, str]] = {**NotesHarness.cannot, "files": "they are its own"}


RIGHT["from_afar"] = Right(_FromAfar, "AfarHarness", ("test_same_rows.py::test_each_row_is_read_once",))


class _Changes(NotesSource):
    """A log of changes of a table with a key."""

    def open(self, name: str, options: Any) -> TableLog:
        log: Any = super().open(name, options)
        return replace(log, described=replace(log.described, primary_key=("id",), change_column="kind"))


class ChangesHarness(NotesHarness):
    """Inserts."""

    def make_table(self, name: str) -> None:
        super().make_table(name)
        self.describe(name, columns=self.describe(name)["columns"] | {"kind": "string"})

    def rows(self, numbers: Sequence[int]) -> list[Row]:
        return [{**row, "kind": "+I"} for row in super().rows(numbers)]


RIGHT["log_of_changes"] = Right(_Changes, "ChangesHarness", (_ROUNDS,))


class _StampsEach(NotesLog):
    """Of buckets whose records expire one by one."""

    def stamp(self, position: LogOffsets) -> str | None:
        return joined_stamps(
            {each: super(_StampsEach, self).stamp(LogOffsets({each: position[each]})) for each in position}
        )


class TwoBucketsHarness(NotesHarness):
    """Records of the first one expire."""

    def make_table(self, name: str) -> None:
        super().make_table(name)
        self.add_bucket(name)


_STAMPS = "test_histories.py::test_a_stamp_tells_no_other_history_where_there_is_none"
RIGHT["stamps_each"] = Right(_StampsEach, "TwoBucketsHarness", (f"{_STAMPS}[expire]", f"{_STAMPS}[expire_all]"))


class _Waits(NotesLog):
    """Of a system with one append in each millisecond."""


class WaitingHarness(NotesHarness):
    """Of that system: it waits for the next one, as the system itself may."""

    def append(self, name: str, numbers: Sequence[int]) -> Sequence[Row]:
        before = time.time_ns() // 1_000_000
        while time.time_ns() // 1_000_000 == before:
            time.sleep(0.0001)
        return super().append(name, numbers)


RIGHT["waits"] = Right(_Waits, "WaitingHarness", ("test_late.py::test_appends_of_one_moment_are_told_apart",))


class _OfFewBuckets(NotesLog):
    """Of a system with 32 partitions at most."""


class BoundedHarness(NotesHarness):
    """Of that system."""

    def add_bucket(self, name: str) -> None:
        if len(self.describe(name)["buckets"]) >= 32:
            raise AtItsBound("a log has 32 partitions at most")
        super().add_bucket(name)


RIGHT["of_few_buckets"] = Right(
    _OfFewBuckets, "BoundedHarness", ("test_offsets.py::test_a_dozen_buckets_are_told_apart",)
)


class _OfAServer(NotesLog):
    """Who reads while somebody writes is refused by an error of the system's own, and so is who takes an hour."""

    def plan(self, wanted: LogRange) -> Sequence[LogSplit]:
        super().plan(wanted)
        return whole_splits(wanted)

    def bounds(self) -> Mapping[str, BucketBounds]:
        if (self.folder / "writing").exists():
            raise BlockingIOError("somebody writes to the log")
        return super().bounds()

    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        began = time.time()
        for record in super().records(split):
            if time.time() > began + 3600:
                raise TimeoutError("the server ended a session of an hour")
            yield record


class ServerHarness(NotesHarness):
    """Many rows come as those of `append` do, some of which they equal."""

    cannot: ClassVar[Mapping[str, str]] = {}

    def append_many(self, name: str, count: int) -> None:
        self.append(name, range(count))

    def append_begun(self, name: str, numbers: Sequence[int]) -> Callable[[], Sequence[Row]]:
        flag, finish = self.root / name / "writing", super().append_begun(name, numbers)
        flag.touch()

        def ends() -> Sequence[Row]:
            flag.unlink()
            return finish()

        return ends


RIGHT["of_a_server"] = Right(
    _OfAServer,
    "ServerHarness",
    (
        "test_late.py::test_what_is_still_written_is_read_once_it_is_whole",
        "test_many.py::test_a_read_that_takes_a_day_gives_each_row",
        "test_many.py::test_pages_behind_a_gap_are_read_once",
    ),
)
