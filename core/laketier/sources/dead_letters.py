"""Records that could not be made rows, as a table: what was in the log, where, and why it is not in the lake table."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from laketier.spi import BadRecord, TablePath

SUFFIX = "__dead_letters"

SCHEMA = pa.schema(
    [
        pa.field("source_table", pa.string()),
        pa.field("bucket", pa.string()),
        pa.field("offset", pa.int64()),
        pa.field("at", pa.timestamp("us", tz="UTC")),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("error", pa.string()),
        pa.field("schema_version", pa.string()),
    ]
)
"""``bucket`` and ``offset`` say where the record is in the log; ``at`` when it was written to it."""


def dead_letter_table(target: TablePath) -> TablePath:
    """The table beside ``target`` that holds its bad records."""
    return TablePath(target.database, target.table + SUFFIX)


def dead_letter_batch(source_table: str, records: Sequence[BadRecord]) -> pa.RecordBatch:
    """``records`` in `SCHEMA`."""
    columns = [
        pa.array([source_table] * len(records), pa.string()),
        pa.array([record.bucket for record in records], pa.string()),
        pa.array([record.offset for record in records], pa.int64()),
        pa.array([None if r.at is None else r.at * 1000 for r in records], pa.timestamp("us", tz="UTC")),
        pa.array([record.key for record in records], pa.binary()),
        pa.array([record.value for record in records], pa.binary()),
        pa.array([record.error for record in records], pa.string()),
        pa.array([record.schema_version for record in records], pa.string()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
