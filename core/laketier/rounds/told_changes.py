"""Rows of a log of changes that are no change of a row: bad records, though the log's source could read them.

A source hands rows over without their offsets. So such a row is told at the last offset of its split: a later round
that reads it again, and more behind it, tells it rather once more than not at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from laketier.codecs.said import shown
from laketier.kit.views import only
from laketier.rounds.changes import refused_changes
from laketier.rounds.upsert import Merge
from laketier.spi import BadRecord, LogSplit, OnBadRecord

_MOST = 500
"""Characters of a row that are told."""


def without_refused(
    batches: Iterator[pa.RecordBatch], split: LogSplit, merge: Merge, on_bad_record: OnBadRecord
) -> Iterator[pa.RecordBatch]:
    """The ``batches`` of ``split`` without the rows that can't be merged, which ``on_bad_record`` is told. Executor."""
    for batch in batches:
        refused = refused_changes(batch, merge.key, merge.change_column)
        if not refused:
            yield batch
            continue
        for at, why in sorted(refused.items()):
            row = row_text(batch, at)
            where = f"a row of the offsets {split.start} to {split.end - 1} can't be merged: "
            where = where if split.end - split.start > 1 else ""
            on_bad_record(
                BadRecord(bucket=split.bucket, offset=split.end - 1, error=f"{where}{why}; it is {row}", value=None)
            )
        kept = np.ones(batch.num_rows, bool)
        kept[list(refused)] = False
        yield only(batch, pa.array(kept))


def row_text(batch: pa.RecordBatch, at: int) -> str:
    """The values of a row, by their columns, for people: not longer than an error may be."""
    return shown(str({name: _text(batch.column(name)[at]) for name in batch.schema.names}), _MOST)


def _text(value: pa.Scalar) -> Any:
    try:
        return value.as_py()
    except (ValueError, OverflowError):  # a time beyond Python's, or text that is none
        return f"<{value.type}>"
