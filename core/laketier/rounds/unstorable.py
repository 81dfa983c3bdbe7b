"""Rows that a log could read, and that the lake table can't store: bad records, too.

A source that tells which record a row came from takes the record aside (`TableLog.read_storable`). Others hand rows
over without their offsets; such a row is told at the last offset of its split, as `laketier.rounds.told_changes` does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import numpy as np
import pyarrow as pa

from laketier.kit import conform
from laketier.kit.views import only
from laketier.rounds.changes import DELETE, UPSERTS, places_of
from laketier.rounds.told_changes import row_text
from laketier.rounds.upsert import Merge
from laketier.spi import (
    BadRecord,
    FeatureNotSupported,
    FindUnstorable,
    LogSplit,
    OnBadRecord,
    TableLog,
    UnstorableRows,
)
from laketier.tiering.unstorable import refused_places, why_unstorable


def storable_rows(
    log: TableLog, split: LogSplit, find_unstorable: FindUnstorable, on_bad_record: OnBadRecord
) -> Iterator[pa.RecordBatch]:
    """The rows of ``split`` without those that ``find_unstorable`` finds, which ``on_bad_record`` is told. Executor."""
    told = False

    def noted(record: BadRecord) -> None:
        nonlocal told
        told = True
        on_bad_record(record)

    try:
        batches = log.read_storable(split, find_unstorable, on_bad_record=noted)
        first = next(batches, None)  # where the method has a `yield`, it refuses only now
    except FeatureNotSupported:
        if told:
            raise  # by another reading it would be told twice
        return _told_by_row(log.read(split, on_bad_record=on_bad_record), split, find_unstorable, on_bad_record)
    return batches if first is None else chain([first], batches)


def unstorable_changes(merge: Merge, find_unstorable: FindUnstorable) -> FindUnstorable:
    """``find_unstorable`` for the changes that ``merge`` takes: of those that set a row, and by the key alone of those
    that delete one, of which nothing else is used. What is left out changes nothing: the key keeps what it had before,
    until its next change."""
    keys = pa.schema([merge.rows.field(name).with_nullable(True) for name in merge.key])

    def find(batch: pa.RecordBatch) -> Mapping[int, str]:
        upserts = places_of(batch, UPSERTS, merge.key, merge.change_column)
        deletes = places_of(batch, [DELETE], merge.key, merge.change_column)
        gone = _rows_at(batch, deletes).select(keys.names)

        def refusal(start: int, end: int) -> UnstorableRows | None:
            try:
                conform(gone.slice(start, end - start), keys)
            except UnstorableRows as error:
                return error
            return None

        rows = _rows_at(batch, upserts)
        rows = rows.select([name for name in rows.schema.names if name != merge.change_column])
        found = {upserts[at]: why for at, why in find_unstorable(rows).items()}
        return found | {
            deletes[at]: why_unstorable(error) for at, error in refused_places(len(deletes), refusal).items()
        }

    return find


def _rows_at(batch: pa.RecordBatch, places: Sequence[int]) -> pa.RecordBatch:
    kept = np.zeros(batch.num_rows, bool)
    kept[list(places)] = True
    return only(batch, pa.array(kept))


def _told_by_row(
    batches: Iterator[pa.RecordBatch], split: LogSplit, find_unstorable: FindUnstorable, on_bad_record: OnBadRecord
) -> Iterator[pa.RecordBatch]:
    where = "" if split.end - split.start == 1 else f"a row of the offsets {split.start} to {split.end - 1}: "
    for batch in batches:
        found = find_unstorable(batch)
        if not found:
            yield batch
            continue
        for at, why in sorted(found.items()):
            error = f"{where}{why}; it is {row_text(batch, at)}"
            on_bad_record(BadRecord(bucket=split.bucket, offset=split.end - 1, error=error, value=None))
        kept = np.ones(batch.num_rows, bool)
        kept[list(found)] = False
        yield only(batch, pa.array(kept))


def fails_on(refused: UnstorableRows) -> OnBadRecord:
    """Stops at the first record that the lake can't store. ``refused``: what the writer said first."""

    def fail(record: BadRecord) -> None:
        raise UnstorableRows(
            f"the record at offset {record.offset} of bucket {record.bucket!r} is a row that the table can't store",
            where=refused.where,
            why=record.error,
            fix=f"{refused.fix or 'Correct the record at its source.'} Or set on-bad-record to dead-letter or drop.",
        ) from refused

    return fail


def shared_refusal(refused: UnstorableRows) -> UnstorableRows:
    """Of a task that merges a part of what it reads. The other tasks of its round, which wrote the rest of the same
    records, can't leave out what this one would."""
    return UnstorableRows(
        refused.what,
        where=refused.where,
        why=refused.why,
        fix=f"{refused.fix or 'Correct the record at its source.'} Or, with on-bad-record dead-letter or drop, set "
        "max-offsets-per-round so low that one task merges a round, as only that can take it aside: 100000 where an "
        "offset is a record, and 1 where it is a file or a commit, of 25 MB at most.",
    )
