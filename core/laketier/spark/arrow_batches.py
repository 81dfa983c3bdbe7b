"""The one setting that decides what JVM → Python costs, owned here.

``spark.sql.execution.arrow.maxBytesPerBatch`` makes Spark recompute the size of the whole batch for every row, unless
it is the largest int: 3.5 times the CPU. So our own entry points lift it for their work, and bound a batch's bytes by
rows per batch from the schema's width instead. Columns whose width no schema tells (binary) keep Spark's own bound:
there the cost per row is small beside the row. Texts are taken for short, and their rows for fewer: Arrow ends at 2 GiB
of text in a batch, which is 128 KiB a row. A bound of bytes that the user set is kept: by rows where the width is
known, and by Spark where it is not.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.types as pt
from pyspark.sql import SparkSession

MAX_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
MAX_RECORDS = "spark.sql.execution.arrow.maxRecordsPerBatch"
UNBOUNDED = 2**31 - 1
"""The only value that switches Spark's check off."""

ADVICE = (
    f"Spark recomputes the size of each Arrow batch for every row, which costs more than the write itself. Set "
    f"{MAX_BYTES}={UNBOUNDED} on the session (laketier.spark.write and .stream do so by themselves)."
)

_TARGET_BYTES = 64 * 1024 * 1024
_MOST_ROWS = 65_536
_MOST_TEXTS = 16_384
_FEWEST_ROWS = 256
_STRING_BYTES = 512
_LIST_ITEMS = 128


@dataclass(frozen=True)
class BatchLimits:
    """The settings to make: ``max_records`` rows per batch; ``lift_bytes`` says whether the rows bound the bytes
    enough. ``width``: the bytes of a row, as far as the types tell; None where they don't."""

    max_records: int
    lift_bytes: bool
    width: int | None


def batch_limits(schema: pa.Schema) -> BatchLimits:
    """Rows per batch so that a batch of ``schema`` stays near 64 MB, from the widths that the types tell."""
    width = sum(type_width(f.type) for f in schema) or 1
    most = _MOST_TEXTS if any(_has(f.type, _TEXTS) for f in schema) else _MOST_ROWS
    rows = max(_FEWEST_ROWS, min(most, _TARGET_BYTES // width))
    known = not any(_has(f.type, _OF_ANY_LENGTH) for f in schema)
    return BatchLimits(rows, not any(_has(f.type, _BLOBS) for f in schema), width if known else None)


def type_width(kind: pa.DataType) -> int:
    """Bytes of a value, guessed where the type does not say."""
    if pt.is_struct(kind):
        return sum(type_width(f.type) for f in kind)
    if pt.is_map(kind):
        return 32 * (type_width(kind.key_type) + type_width(kind.item_type))
    if pt.is_fixed_size_list(kind):
        return int(kind.list_size) * type_width(kind.value_type)
    if pt.is_list(kind) or pt.is_large_list(kind):
        return _LIST_ITEMS * type_width(kind.value_type)
    try:
        return max(1, kind.bit_width // 8)
    except ValueError:
        return _STRING_BYTES


_BLOBS = (pt.is_binary, pt.is_large_binary, pt.is_binary_view)
_TEXTS = (pt.is_string, pt.is_large_string, pt.is_string_view)
_OF_ANY_LENGTH = (*_BLOBS, *_TEXTS, pt.is_list, pt.is_large_list, pt.is_map)


def _has(kind: pa.DataType, tests: Sequence[Callable[[pa.DataType], bool]]) -> bool:
    """Whether the type, or one inside of it, is one of those."""
    return any(test(kind) for test in tests) or any(_has(kind.field(i).type, tests) for i in range(kind.num_fields))


@dataclass
class _Session:
    """The jobs of ours that run in one session, and what the settings were before the first of them."""

    before: dict[str, str | None] = field(default_factory=dict)
    running: list[BatchLimits] = field(default_factory=list)


_lock = threading.Lock()
_sessions: WeakKeyDictionary[SparkSession, _Session] = WeakKeyDictionary()


@contextmanager
def arrow_batches(spark: SparkSession, schema: pa.Schema) -> Iterator[BatchLimits]:
    """Hold the settings for one job of ours in ``spark``; ``schema`` is that of its rows. Driver, any thread.

    The settings belong to the session, so concurrent jobs share them: the tightest limits of the running jobs hold,
    and the last one to end restores what the first one found. A value that the user set tighter stays.
    """
    limits = batch_limits(schema)
    with _lock:
        session = _sessions.setdefault(spark, _Session())
        if not session.running:
            explicit = spark.conf.getAll  # get() would also give defaults, which must be unset again
            session.before = {key: explicit.get(key) for key in (MAX_BYTES, MAX_RECORDS)}
        session.running.append(limits)
        _apply(spark, session)
    try:
        yield limits
    finally:
        with _lock:
            session.running.remove(limits)
            _apply(spark, session)


def _apply(spark: SparkSession, session: _Session) -> None:
    if not session.running:
        for key, value in session.before.items():
            _set(spark, key, value)
        return
    lift = all(limits.lift_bytes for limits in session.running)
    rows = min(limits.max_records for limits in session.running)
    own_bytes = session.before[MAX_BYTES]
    if own_bytes is not None and own_bytes != str(UNBOUNDED):
        widths = [limits.width for limits in session.running]
        if own_bytes.isdecimal() and None not in widths:
            rows = min(rows, *(max(1, int(own_bytes) // width) for width in widths if width))
        else:
            lift = False
    own = session.before[MAX_RECORDS]
    if own is not None and 0 < int(own) < rows:
        rows = int(own)
    _set(spark, MAX_BYTES, str(UNBOUNDED) if lift else session.before[MAX_BYTES])
    _set(spark, MAX_RECORDS, str(rows))


def _set(spark: SparkSession, key: str, value: str | None) -> None:
    if value is None:
        spark.conf.unset(key)
    else:
        spark.conf.set(key, value)


def is_costly(value: str | None) -> bool:
    """Whether a task that saw ``value`` for `MAX_BYTES` (None: unset) paid for the check."""
    return value is None or value != str(UNBOUNDED)
