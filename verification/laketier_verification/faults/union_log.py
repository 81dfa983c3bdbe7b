"""The log under the checker of union reads: who writes it knows which rows each of its prefixes comes down to."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from laketier.bucketing import assigner_for
from laketier.spi import BucketSpec, TableDescriptor
from laketier_verification.lines import LinesTable

STRIDE = 1_000_000_000
MOST_BUCKETS = 5
_KEYS = 25
_COLUMNS = {"id": "int64", "n": "int64", "v": "int64"}
SCHEMA = pa.schema([(name, pa.int64()) for name in _COLUMNS])
CHANGE = "change"


@dataclass
class _Bucket:
    """``begun`` rows may be in the log, ``done`` of them are. A log of changes remembers them."""

    begun: int = 0
    done: int = 0
    keys: list[int] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    alive: set[int] = field(default_factory=set)
    pool: Sequence[int] = range(_KEYS)


@dataclass
class WrittenLog:
    """Row i of bucket b has ``v`` = i and ``n`` = i modulo 7. Its ``id`` is b * STRIDE + i, or with ``keyed`` one of
    a few keys, so that all is written over again and again. New buckets come up meanwhile; with ``aligned``, there are
    as many as that says, and they hold the keys that the lake puts there too."""

    root: Path
    keyed: bool
    draw: random.Random
    aligned: BucketSpec | None = None
    buckets: list[_Bucket] = field(default_factory=lambda: [_Bucket()])

    def __post_init__(self) -> None:
        columns = {CHANGE: "string", **_COLUMNS} if self.keyed else _COLUMNS
        self.source = LinesTable(self.root, "t").create(columns=columns)
        if self.keyed:
            self.source.describe(primary_key=["id"], change_column=CHANGE)
        if self.aligned is not None:
            self.source.describe(buckets=vars(self.aligned))
            self.buckets = [_Bucket(pool=_keys_of(self.aligned, number)) for number in range(self.aligned.count)]

    def write(self, over: threading.Event) -> None:
        """Until ``over``. A thread of its own."""
        while not over.wait(0.004):
            self.append()

    def append(self) -> None:
        """Some rows to one bucket, which may be a new one."""
        if self.aligned is None and len(self.buckets) < MOST_BUCKETS and self.draw.random() < 0.01:
            self.buckets.append(_Bucket())
        number = self.draw.randrange(len(self.buckets))
        bucket = self.buckets[number]
        first = bucket.begun
        count = self.draw.randint(1, 5)
        rows = [self._row(number, bucket, first + i) for i in range(count)]
        bucket.begun += count
        self.source.append_raw(*rows, bucket=number)
        bucket.done += count

    def _row(self, number: int, bucket: _Bucket, offset: int) -> str:
        row = {"n": offset % 7, "v": offset}
        if not self.keyed:
            return json.dumps({"id": number * STRIDE + offset, **row})
        key = self.draw.choice(bucket.pool)
        kind = self.draw.choice(("+U", "+U", "-U", "-D") if key in bucket.alive else ("+I", "+I", "+I", "-D"))
        if kind == "-D":
            bucket.alive.discard(key)
        elif kind != "-U":
            bucket.alive.add(key)
        bucket.keys.append(key)
        bucket.kinds.append(kind)
        return json.dumps({CHANGE: kind, "id": number * STRIDE + key, **row})

    def done(self) -> dict[str, int]:
        """How many rows each bucket has at least."""
        return {str(number): bucket.done for number, bucket in enumerate(self.buckets)}

    def begun(self) -> dict[str, int]:
        """How many rows each bucket has at most."""
        return {str(number): bucket.begun for number, bucket in enumerate(self.buckets)}

    def rows(self, end: Mapping[str, int]) -> pa.Table:
        """What the log comes down to, read up to ``end``."""
        parts = [self._prefix(int(number), upto) for number, upto in end.items()]
        ids, offsets = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
        return pa.table([pa.array(values) for values in (ids, offsets % 7, offsets)], schema=SCHEMA)

    def _prefix(self, number: int, upto: int) -> tuple[np.ndarray, np.ndarray]:
        """The ids and the offsets of bucket ``number``."""
        offsets = np.arange(upto, dtype=np.int64)
        if not self.keyed:
            return number * STRIDE + offsets, offsets
        bucket = self.buckets[number]
        latest: dict[int, int] = {}
        for offset in range(upto):
            match bucket.kinds[offset]:
                case "+I" | "+U":
                    latest[bucket.keys[offset]] = offset
                case "-D":
                    latest.pop(bucket.keys[offset], None)
        keys, offsets = (np.array(list(part), dtype=np.int64) for part in (latest.keys(), latest.values()))
        return number * STRIDE + keys, offsets


def _keys_of(spec: BucketSpec, number: int) -> list[int]:
    """Some keys that ``spec`` puts into bucket ``number``."""
    keys = range(number * STRIDE, number * STRIDE + 100 * spec.count)
    batch = pa.record_batch({"id": pa.array(keys, pa.int64())})
    assigned = assigner_for(TableDescriptor(SCHEMA, buckets=spec)).assign(batch).to_pylist()
    return [key - number * STRIDE for key, bucket in zip(keys, assigned, strict=True) if bucket == number][:_KEYS]
