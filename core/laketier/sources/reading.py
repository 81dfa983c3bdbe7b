"""What every reader of splits does alike."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence

import pyarrow as pa

from laketier.spi import LakeSource, LakeSplit, Predicate, ScanPlan, ScanRequest
from laketier.spi.predicate import to_arrow
from laketier.spi.serializer import to_plain


def read_split(
    source: LakeSource, split: LakeSplit, schema: pa.Schema, remaining: Sequence[Predicate] = ()
) -> Iterator[pa.RecordBatch]:
    """Read a split, and apply the filters that the source left. Executor. ``schema`` must hold their columns."""
    if not remaining:
        yield from source.read(split, schema)
        return
    condition = to_arrow(remaining[0])
    for predicate in remaining[1:]:
        condition = condition & to_arrow(predicate)
    for batch in source.read(split, schema):
        for kept in pa.Table.from_batches([batch]).filter(condition).to_batches():
            if kept.num_rows:
                yield kept


def plan_content(request: ScanRequest, plan: ScanPlan) -> str:
    """A digest of what a plan reads, for `Token.content`: the same again means the same rows.

    A table's snapshot never changes, so its id stands for its splits; a folder's plan has none, and its splits name
    each file's size and time.
    """
    described = {
        "columns": request.columns,
        "filters": [str(predicate) for predicate in request.filters],
        "snapshot": plan.snapshot_id,
        "splits": [] if plan.snapshot_id is not None else [to_plain(split) for split in plan.splits],
    }
    text = json.dumps(described, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
