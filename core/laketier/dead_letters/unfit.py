"""Which dead letters are no rows of the lake table: those that can't be decoded, and those that it can't store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from laketier.spi import BadRecord, IncompatibleData, TableLog, UnstorableRows
from laketier.tiering.unstorable import Trial, refused_places, why_unstorable

Key = tuple[str, int, bytes | None, bytes | None]


def key_of(record: BadRecord) -> Key:
    """The parts of a record that decide whether it is a row."""
    return record.bucket, record.offset, record.key, record.value


def undecodable(log: TableLog, records: Sequence[BadRecord]) -> dict[Key, BadRecord]:
    """Those that give no rows, with their present errors. Driver. Raises `FeatureNotSupported`."""
    found: dict[Key, BadRecord] = {}
    for _ in _decoded(log, [record for record in records if record.value is not None], found):
        pass
    # A source may pass over a record without bytes; whether it did shows when it is asked for that one alone.
    for record in records:
        if record.value is None and not any(batch.num_rows for batch in _decoded(log, [record], found)):
            found.setdefault(key_of(record), replace(record, error="its bytes were not kept"))
    return found


def unstorable(log: TableLog, records: Sequence[BadRecord], trial: Trial) -> dict[Key, BadRecord]:
    """Of records that can be decoded, those that the table can't store, with the reasons. Driver. Raises what a writer
    raises for any other reason."""

    def refusal(start: int, end: int) -> UnstorableRows | None:
        try:
            trial.store(_decoded(log, records[start:end], {}))
        except UnstorableRows as error:
            return error
        return None

    refused = refused_places(len(records), refusal)
    return {
        key_of(records[place]): replace(records[place], error=why_unstorable(error)) for place, error in refused.items()
    }


def unfit(log: TableLog, records: Sequence[BadRecord], trial: Trial | None) -> dict[Key, BadRecord]:
    """Those that are no rows, or none that the table of ``trial`` can store; None where there is no table yet. Driver.
    Raises `FeatureNotSupported`."""
    found = undecodable(log, records)
    left = [record for record in records if key_of(record) not in found]
    if trial is None or not left:
        return found
    try:
        return found | unstorable(log, left, trial)
    except UnstorableRows:
        raise
    except IncompatibleData:  # its columns are to follow those of the log first
        return found


def _decoded(log: TableLog, records: Sequence[BadRecord], bad: dict[Key, BadRecord]) -> Iterator[pa.RecordBatch]:
    if records:
        yield from log.decode(records, on_bad_record=lambda record: bad.update({key_of(record): record}))
