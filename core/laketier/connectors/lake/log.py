"""The log of one lake table: its versions are the offsets.

A reader that has nothing yet gets the table as it is, from a snapshot: so tables whose first commits expired long ago,
or that were once rewritten, can be followed. From then on it gets what commits append;
where the change feed is read, all that they did to rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from laketier.spi import (
    BucketBounds,
    CorruptTable,
    LakeChanges,
    LakeFeed,
    LakeSource,
    LakeSplit,
    LaketierError,
    LogOffsets,
    LogRange,
    LogSplit,
    LogTable,
    OffsetsExpired,
    OnBadRecord,
    ScanPlan,
    ScanRequest,
    SchemaChanged,
    SnapshotNotFound,
    StorageError,
    TableLog,
    TableNotFound,
    fail_on_bad_record,
    pack,
    unpack,
)

BUCKET = "table"
INITIAL = 0
"""Where a range begins that is read from a snapshot."""
_LOOKED_AT = 16
"""So many splits of the newest snapshot, one of which has to be there where others are gone."""


@dataclass(frozen=True)
class LakePart:
    """A split of the format's, packed, and the columns that its snapshot lacks. Without a split there is nothing to
    read, as after a compaction."""

    split: bytes | None
    absent: tuple[str, ...] = ()


@dataclass(frozen=True)
class LakeLog(TableLog):
    """See `TableLog`. One bucket. ``stored``: the columns as the format describes them, which it reads by. ``feed``:
    where all changes are read, and not only what commits appended."""

    described: LogTable
    source: LakeSource
    stored: pa.Schema
    changes: LakeChanges
    feed: LakeFeed | None = None
    skip_changes: bool = False

    @property
    def table(self) -> LogTable:
        """See `TableLog.table`."""
        return self.described

    def bounds(self) -> Mapping[str, BucketBounds]:
        """See `TableLog.bounds`. An offset is a version of the table."""
        found = self.changes.versions()
        return {BUCKET: BucketBounds(found.earliest, found.latest, found.latest_at, initial=INITIAL)}

    def stamp(self, position: LogOffsets) -> str | None:
        """See `TableLog.stamp`: that of the last version which was read."""
        end = position.get(BUCKET, INITIAL)
        return self.changes.stamp(end - 1) if end > INITIAL else None

    def plan(self, wanted: LogRange) -> Sequence[LogSplit]:
        """A split for each split of the format's, all of the whole range; one where the format has none. From
        `INITIAL`: of the snapshot at the range's end. Raises also `RowsChanged`, and `SchemaChanged` when the columns
        did since the log was opened.
        """
        start, end = wanted.start.get(BUCKET, INITIAL), wanted.end.get(BUCKET, INITIAL)
        if start >= end:
            return []
        whole = start == INITIAL
        plan = self._snapshot(end - 1) if whole else self._changed_rows(start, end)
        nothing = LogSplit(bucket=BUCKET, start=start, end=end, bytes=0, payload=LakePart(None), unordered=whole)
        if plan is None:
            return [nothing]
        absent = tuple(self._absent(plan, may_lack=whole))
        serializer = self.source.split_serializer
        parts = [(split.bytes, LakePart(pack(serializer, split), absent)) for split in plan.splits]
        return [replace(nothing, bytes=size, payload=part) for size, part in parts] or [nothing]

    def read(
        self, split: LogSplit, *, columns: Sequence[str] | None = None, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        """See `TableLog.read`. There are no bad records. Of a snapshot that was taken away meanwhile, raises
        `OffsetsExpired` that says so (``again``): the next plan is of a newer one. Raises `StorageError` where the
        table itself can't be read: its rows may be there once it can."""
        wanted = self.described.projected(columns)
        part: LakePart = split.payload
        if part.split is None:
            return
        stored = pa.schema([self.stored.field(name) for name in wanted.names if name not in part.absent])
        planned = unpack(self.source.split_serializer, part.split)
        try:
            for batch in self.source.read(planned, stored):
                if batch.num_rows:
                    yield _shaped(batch, wanted, self.described.change_column)
        except (CorruptTable, SnapshotNotFound, TableNotFound) as error:
            raise self._gone(split, error) from error

    def _changed_rows(self, start: int, end: int) -> ScanPlan | None:
        try:
            if self.feed is not None:
                return self.feed.plan(start, end)
            return self.changes.plan(start, end, skip_changes=self.skip_changes)
        except OffsetsExpired as error:
            # A format knows versions, and no buckets: whoever may pass over what expired has to be told which it is.
            first = min(self.changes.versions().earliest, end)
            if not error.gone and start < first:
                error.gone = {BUCKET: ((start, first),)}
            raise

    def _snapshot(self, version: int) -> ScanPlan | None:
        try:
            snapshot_id = self.changes.snapshot_at(version)
            if snapshot_id is None:
                return None
            plan = self.source.plan(ScanRequest(snapshot_id=snapshot_id))
            if not self._changed(plan):
                return plan
            # A format may change columns without a new snapshot. As the newest one it is read by today's then.
            newest = self.source.plan(ScanRequest())
            return newest if newest.snapshot_id == snapshot_id else plan
        except SnapshotNotFound as error:
            raise self._outdated(version, error) from error

    def _absent(self, plan: ScanPlan, *, may_lack: bool) -> list[str]:
        """The columns that the table has got since the plan's snapshot. Values of a new column must not be left out,
        and one that went, or has another name now, must not read as null."""
        absent = [name for name in self.stored.names if name not in plan.schema.names]
        changed = self._changed(plan)
        if changed or (absent and not may_lack):
            raise SchemaChanged(
                f"the columns {changed + absent} of the source's table changed since its log was opened",
                where=self.described.name,
                fix="Nothing: the log is opened again when the source's tables are listed.",
            )
        return absent

    def _changed(self, plan: ScanPlan) -> list[str]:
        types = {field.name: field.type for field in plan.schema}
        changed = [name for name in types if name not in self.stored.names]
        return changed + [f.name for f in self.stored if f.name in types and not types[f.name].equals(f.type)]

    def _outdated(self, version: int, error: Exception) -> OffsetsExpired:
        return OffsetsExpired(
            f"the snapshot at version {version} can't be read any more",
            where=self.described.name,
            why=str(error),
            fix="Read again, as a service does by itself: what is read then begins with the newest snapshot. If that "
            "can't be read either, the source's table has lost files: restore them.",
            again=True,
        )

    def _gone(self, split: LogSplit, error: Exception) -> OffsetsExpired | StorageError:
        try:
            self.changes.versions()
            self._look_at_newest()
        except (LaketierError, OSError) as unseen:  # the table is away, or its data: behind a mount that was lost
            return StorageError(
                "the source's table can't be read",
                where=self.described.name,
                why=f"{error}; and of its newest snapshot: {unseen}",
                fix="Look whether its warehouse is there, and the place of its data files, where that is elsewhere. It "
                "is read again in the next round. If files were deleted for good, restore them.",
            )
        if split.start == INITIAL:
            return self._outdated(split.end - 1, error)
        return OffsetsExpired(
            f"the rows that versions {split.start} to {split.end - 1} appended can't be read any more",
            where=self.described.name,
            why=str(error),
            fix="Restore them, or read the source's table into a new table. Keep the files of the source's table for "
            "longer than its rounds lag behind.",
        )

    def _look_at_newest(self) -> None:
        """What expires takes no file of the newest snapshot away. Where none of those can be read, the storage of the
        data is away, which is not always that of the metadata, and nothing says what will be there once it is back.
        Raises as a read of the newest snapshot does."""
        plan = self.source.plan(ScanRequest())
        failed: Exception | None = None
        for split in _spread(plan.splits):
            try:
                next(iter(self.source.read(split, plan.schema)), None)
            except (LaketierError, OSError) as error:
                failed = error
            else:
                return
        if failed is not None:
            raise failed


def _spread(splits: Sequence[LakeSplit]) -> Sequence[LakeSplit]:
    """Some from end to end. What deletes files by their age, as a rule of a bucket, takes those of one end."""
    count = min(len(splits), _LOOKED_AT)
    return [splits[i * (len(splits) - 1) // max(1, count - 1)] for i in range(count)]


def _shaped(batch: pa.RecordBatch, schema: pa.Schema, change_column: str | None) -> pa.RecordBatch:
    """In exactly ``schema``. What lacks change types is a snapshot, whose rows are all new."""
    if not schema.names:
        return batch.replace_schema_metadata(None)
    arrays = [
        batch.column(index).cast(field.type)
        if index >= 0
        else pa.repeat(pa.scalar("+I" if field.name == change_column else None, field.type), batch.num_rows)
        for field in schema
        for index in (batch.schema.get_field_index(field.name),)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
