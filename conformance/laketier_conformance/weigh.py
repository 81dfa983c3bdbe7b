"""The memory that a writer and a reader take. Measured by a process that did nothing before (`child`)."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator

import pyarrow as pa

from laketier.spi import ScanRequest
from laketier_conformance.lake import Table, token

MIB = 1 << 20
TOTAL, LIMIT = 512 * MIB, 480 * MIB
"""Bytes that are written and read, and the most that a process may grow by. What is collected for large row groups or
read ahead stays below it in the formats that were tried; who holds everything takes all of the total."""
MANY = 1_100_001
"""More rows than a million, and than 2**20: the rows of a row group in many formats, and of a file in some."""
SCHEMA = pa.schema([("id", pa.int64()), ("pad", pa.string())])
KEY = pa.field("key", pa.int32())
KEYS = 48
"""Partitions that grow side by side: what is collected for each alone, up to a usual row group, is all there is."""
_WIDTH, _ROWS = 256, 16_384
_BATCHES = TOTAL // (_WIDTH * _ROWS)
ROWS = _BATCHES * _ROWS


def batches() -> Iterator[pa.RecordBatch]:
    """About `TOTAL` bytes, each batch with buffers of its own. They are quickly compressed, so that files are small."""
    offsets = pa.array(range(0, (_ROWS + 1) * _WIDTH, _WIDTH), pa.int32()).buffers()[1]
    for number in range(_BATCHES):
        content = pa.py_buffer(bytes([97 + number % 26]) * (_ROWS * _WIDTH))
        pad = pa.Array.from_buffers(pa.string(), _ROWS, [None, offsets, content])
        ids = pa.array(range(number * _ROWS, (number + 1) * _ROWS), pa.int64())
        yield pa.record_batch([ids, pad], schema=SCHEMA)


def in_batches(rows: int) -> Iterator[pa.RecordBatch]:
    """So many ids, from 0 on."""
    ids = pa.array(range(rows), pa.int64())
    return (pa.record_batch({"id": ids.slice(start, _ROWS)}) for start in range(0, rows, _ROWS))


def in_partitions() -> Iterator[pa.RecordBatch]:
    """The same rows, and in each batch some of every partition."""
    keys = pa.array((number % KEYS for number in range(_ROWS)), KEY.type)
    for batch in batches():
        yield pa.record_batch([*batch.columns, keys], schema=SCHEMA.append(KEY))


def write(table: Table) -> int:
    """Stage and publish one task; the bytes that the process grew by as it staged."""
    rows = in_partitions() if table.info.descriptor.partition_by else batches()
    before = _peak()
    result = table.stage_arrow(rows)
    grown = _peak() - before
    table.commit([result], token(0))
    return grown


def read(table: Table) -> tuple[int, int]:
    """Read all rows, one batch after the other: their number, and the bytes that the process grew by."""
    source = table.source
    plan = source.plan(ScanRequest())
    before = _peak()
    rows = sum(batch.num_rows for split in plan.splits for batch in source.read(split, plan.schema))
    return rows, _peak() - before


def _peak() -> int:
    """The most that this process ever took."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
