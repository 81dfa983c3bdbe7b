"""More wrong sources: of keyed tables, which have a snapshot at first and then changes, and of files that are cut."""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from altered_notes import Right, whole_splits, wrong
from altered_pages import ReadsByTheNameAlone
from altered_waits import RIGHT, WRONG, plugin_of
from laketier.spi import BadRecord, BucketBounds, LogRange, LogSplit, StorageError, TableLog
from laketier_source_conformance.harness import Row
from notes import NotesHarness, NotesLog, NotesSource

__all__ = ["RIGHT", "WRONG", "plugin_of"]

_CHANGES = "test_histories.py::test_changes_come_in_their_order_and_after_their_snapshot"
_KEYED = "altered_changes:KeyedHarness"
_KEYLESS = "altered_changes:KeylessHarness"
_CUT = "test_failures.py::test_a_file_that_is_cut_in_the_midst_of_a_read_costs_no_row"


@wrong("test_failures.py::test_a_file_that_is_cut_in_the_midst_of_a_read_costs_no_row", "in whose midst a file was cut")
class LooksAtTheLengthOnce(NotesLog):
    """Before it reads, record by record."""

    def plan(self, wanted: LogRange) -> Sequence[LogSplit]:
        super().plan(wanted)
        return whole_splits(wanted)

    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        for _ in super().records(replace(split, start=split.end - 1)):
            pass
        for at in range(split.start, split.end):
            with suppress(StorageError):
                yield from super().records(replace(split, start=at, end=at + 1))


class _MapsItsFiles(NotesLog):
    """Into memory: once one is cut, the system ends the process that reads on."""

    def plan(self, wanted: LogRange) -> Sequence[LogSplit]:
        super().plan(wanted)
        return whole_splits(wanted)

    def lines(self, bucket: str) -> Iterator[dict[str, Any]]:
        with (self.folder / f"{bucket}.log").open("rb") as file:
            if file.seek(0, 2):
                with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
                    yield from map(json.loads, iter(mapped.readline, b""))


RIGHT["maps_its_files"] = Right(_MapsItsFiles, "NotesHarness", (_CUT,))


@wrong("test_bad_bytes.py::test_bytes_of_all_kinds_are_told_as_they_were", "are not told with their bytes, b'{\\r'")
class TakesAReturnForAnEnd(NotesLog):
    """Of a line. Where an offset is a place in a file, all that follow are off by one."""

    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        return (replace(each, value=(each.value or b"").removesuffix(b"\r")) for each in super().records(split))


@dataclass(frozen=True)
class Size:
    """Of a file, in bytes."""

    size: int


@wrong("test_histories.py::test_a_table_that_is_made_again_has_another_identity", "rows of a new table")
class TellsANewTableByItsLength(ReadsByTheNameAlone):
    """A file that is shorter than it was is another one. It grows."""

    def plan(self, wanted: LogRange) -> Sequence[LogSplit]:
        return [replace(each, payload=self.size_of(each)) for each in super().plan(wanted)]

    def size_of(self, split: LogSplit) -> Size:
        return Size((self.folder / f"{split.bucket}.log").stat().st_size)

    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        if self.size_of(split).size < split.payload.size:
            raise StorageError("a file is another one than it was", where=str(self.folder))
        yield from super().records(split)


class KeyedHarness(NotesHarness):
    """Each row has a key, and the kind of its change."""

    def make_table(self, name: str) -> None:
        super().make_table(name)
        self.describe(name, columns={**self.describe(name)["columns"], "kind": "string"})

    def rows(self, numbers: Sequence[int]) -> list[Row]:
        return [{**row, "kind": "+I"} for row in super().rows(numbers)]

    def change_rows(self, name: str) -> Sequence[Row]:
        before, gone = self.rows([2, 4])
        changes = [{**before, "kind": "-U"}, {**before, "text": "changed", "kind": "+U"}, {**gone, "kind": "-D"}]
        self.write(name, [json.dumps(row) for row in changes])
        return changes


class Keyed(NotesSource):
    """A log of changes."""

    def open(self, name: str, options: Any) -> TableLog:
        log = super().open(name, options)
        assert isinstance(log, NotesLog)
        return replace(log, described=replace(log.described, primary_key=("id",), change_column="kind"))


@dataclass(frozen=True)
class Slice:
    """Keys of this remainder."""

    remainder: int


class _SnapshotLog(NotesLog):
    """From 0, the rows that are there at the end of the range, in slices of keys. Then changes."""

    def bounds(self) -> Mapping[str, BucketBounds]:
        return {bucket: replace(each, initial=0) for bucket, each in super().bounds().items()}

    def plan(self, wanted: LogRange) -> Sequence[LogSplit]:
        splits = super().plan(wanted)
        first = [
            LogSplit(bucket=each.bucket, start=0, end=wanted.end[each.bucket], payload=Slice(at), unordered=True)
            for each in splits
            if each.start == 0
            for at in (0, 1)
        ]
        begun = {each.bucket for each in first}
        return [*first, *(each for each in splits if each.bucket not in begun)]

    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        if not isinstance(split.payload, Slice):
            yield from super().records(split)
            return
        rows: dict[int, BadRecord] = {}
        for record in super().records(replace(split, payload=None, end=self.end_of(split))):
            row = json.loads(record.value or b"")
            rows.pop(row["id"], None)
            if row["kind"] in ("+I", "+U"):
                rows[row["id"]] = replace(record, value=json.dumps({**row, "kind": "+I"}).encode())
        yield from (record for key, record in rows.items() if key % 2 == split.payload.remainder)

    def end_of(self, split: LogSplit) -> int:
        return split.end


class _SnapshotAndChanges(Keyed):
    log_type: ClassVar[type[NotesLog]] = _SnapshotLog


class _Changes(Keyed):
    """From its first change on."""


class _Keyless(NotesSource):
    """Changes of a table without a key, as they come into each of its buckets."""

    def open(self, name: str, options: Any) -> TableLog:
        log = super().open(name, options)
        assert isinstance(log, NotesLog)
        return replace(log, described=replace(log.described, change_column="kind"))


class KeylessHarness(KeyedHarness):
    """In two buckets, by turns."""

    def make_table(self, name: str) -> None:
        super().make_table(name)
        self.add_bucket(name)


class _MayBeAway(NotesLog):
    """Its system does not tell a table that was dropped from one that is away."""

    def identify(self) -> str | None:
        return str(self.meta()["id"])


RIGHT["may_be_away"] = Right(_MayBeAway, "NotesHarness", ("test_tables.py::test_a_table_that_is_dropped_is_told",))
RIGHT["changes_without_a_key"] = Right(_Keyless, _KEYLESS, (_CHANGES,))
RIGHT["snapshot_and_changes"] = Right(_SnapshotAndChanges, _KEYED, (_CHANGES,))
RIGHT["changes_from_the_first"] = Right(_Changes, _KEYED, (_CHANGES,))


class _NoDeletions(NotesLog):
    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        return (each for each in super().records(split) if b'"-D"' not in (each.value or b""))


@wrong(
    "test_histories.py::test_changes_come_in_their_order_and_after_their_snapshot",
    "the changes that came after a reader began",
    harness=_KEYED,
)
class PassesOverDeletions(Keyed):
    """Its target was one where nothing is ever deleted."""

    log_type: ClassVar[type[NotesLog]] = _NoDeletions


class _BeforeAfterwards(NotesLog):
    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        some = list(super().records(split))
        return iter(sorted(some, key=lambda each: each.offset + 1.5 * (b'"-U"' in (each.value or b""))))


@wrong(
    "test_histories.py::test_changes_come_in_their_order_and_after_their_snapshot",
    "the changes that came after a reader began",
    harness=_KEYED,
)
class TellsLastWhatWasThereBefore(Keyed):
    """An update is two changes of one moment. The last one of a key counts, and the row is deleted then."""

    log_type: ClassVar[type[NotesLog]] = _BeforeAfterwards


@wrong(
    "test_histories.py::test_changes_come_in_their_order_and_after_their_snapshot",
    "of a table without a key come in their order",
    harness=_KEYLESS,
)
class TellsLastWhatWasThereBeforeWithoutAKey(_Keyless):
    """And nothing else tells which change was the last one."""

    log_type: ClassVar[type[NotesLog]] = _BeforeAfterwards


class _OfNow(_SnapshotLog):
    def end_of(self, split: LogSplit) -> int:
        return self.bounds()[split.bucket].latest


@wrong(
    "test_histories.py::test_changes_come_in_their_order_and_after_their_snapshot",
    "planned before rows were changed",
    harness=_KEYED,
)
class ReadsASnapshotOfNow(Keyed):
    """Each slice of another moment, and none of that of the range's end."""

    log_type: ClassVar[type[NotesLog]] = _OfNow
