"""The records that rows came from, as `TableLog.read_storable` tells them."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from laketier.spi import BadRecord, FeatureNotSupported, LogSplit
from laketier_source_conformance.reads import Read, read_range, whole
from laketier_source_conformance.system import Table, text_of

NOT_STORABLE = "the lake can't store this row"
OF_BEFORE = "why it was no row some time ago"


def storable(table: Table, splits: list[LogSplit], refused_rows: set[str]) -> Read:
    """Read as after a writer refused these rows."""
    log, found = table.log(), Read()

    def unstorable(batch: pa.RecordBatch) -> Mapping[int, str]:
        return {at: NOT_STORABLE for at, row in enumerate(batch.to_pylist()) if text_of(row) in refused_rows}

    for split in splits:
        reading = log.read_storable(split, unstorable, on_bad_record=found.bad.append)
        try:
            found.batches += reading
        except FeatureNotSupported as refusal:
            raise AssertionError(
                "a source without `read_storable` refuses it at once, and a round reads by `read` then: found "
                f"{refusal.feature!r} refused once its rows were asked for. It has a `yield`: raise in a method "
                "without one"
            ) from refusal
    return found


def records_of_all(table: Table) -> list[BadRecord]:
    """The records of all rows of a table, as `read_storable` tells them."""
    log = table.log()
    bad = {identity(each) for each in read_range(log).bad}
    found = storable(table, list(log.plan(whole(log.bounds()))), {text_of(row) for row in table.rows})
    return [each for each in found.bad if identity(each) not in bad]


def identity(record: BadRecord) -> tuple[str, int, bytes, bytes]:
    """What a record is known by: its place, its key and its value."""
    return record.bucket, record.offset, record.key or b"", record.value or b""


def dated(record: BadRecord) -> tuple[str, int, bytes, bytes, int]:
    """`identity` and its time: who replays it, and finds it to be none still, tells the record that was stored."""
    return *identity(record), record.at or 0
