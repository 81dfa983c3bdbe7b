"""What union reads ask for, and whether what they got is just what a prefix of the log holds."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from laketier.spi import Leaf, Op, Predicate, ScanRequest
from laketier.tables.scan import condition_of, limited
from laketier.union_read.scan import UnionScan
from laketier_verification.faults.union_log import MOST_BUCKETS, SCHEMA, STRIDE, WrittenLog


@dataclass
class Verdict:
    """``gaps``: rows that are missing. ``overlaps``: rows that are there again. ``strays``: rows that the prefix does
    not hold, such as an older one of their key."""

    gaps: int = 0
    overlaps: int = 0
    strays: int = 0
    wrong: list[str] = field(default_factory=list)


def some_request(draw: random.Random, written: Mapping[str, int]) -> ScanRequest:
    """Everything, or some columns, filters on others of them, and a limit."""
    if draw.random() < 0.4:
        return ScanRequest()
    columns = draw.sample(SCHEMA.names, draw.randint(1, len(SCHEMA.names))) if draw.random() < 0.6 else None
    filters = tuple(_some_filter(draw, written) for _ in range(draw.choice((0, 1, 1, 2))))
    limit = draw.randrange(60) if draw.random() < 0.25 else None
    return ScanRequest(columns=None if columns is None else tuple(columns), filters=filters, limit=limit)


def _some_filter(draw: random.Random, written: Mapping[str, int]) -> Predicate:
    match draw.randrange(3):
        case 0:
            return Leaf("n", draw.choice((Op.EQ, Op.LT, Op.GE)), draw.randrange(7))
        case 1:
            return Leaf("id", draw.choice((Op.LT, Op.GE)), draw.randrange(MOST_BUCKETS) * STRIDE + draw.randrange(30))
        case _:
            return Leaf("v", draw.choice((Op.LT, Op.GE)), draw.randrange(max(written.values()) + 1))


@dataclass(frozen=True)
class Plan:
    """A planned read: what was in the log for sure before, and at most after it was planned."""

    request: ScanRequest
    scan: UnionScan
    least: Mapping[str, int]
    most: Mapping[str, int]

    def read(self) -> pa.Table:
        """All that was asked for, no more."""
        batches = (batch for split in self.scan.splits for batch in self.scan.read(split))
        return pa.Table.from_batches(limited(batches, self.scan.limit), schema=self.scan.schema)


def judge(plan: Plan, found: pa.Table, log: WrittenLog, name: str, verdict: Verdict) -> None:
    """Compare a read with the prefix that it says it is of."""
    end = plan.scan.offsets.end
    for bucket, most in plan.most.items():
        upto = end.get(bucket, 0)
        if not plan.least.get(bucket, 0) <= upto <= most:
            verdict.wrong.append(
                f"{name}: bucket {bucket} ends at {upto}, and had {plan.least.get(bucket, 0)} to {most} rows"
            )
    expected = log.rows(end)
    condition = condition_of(plan.request.filters, expected.schema)
    if condition is not None:
        expected = expected.filter(condition)
    names = plan.request.columns or SCHEMA.names
    if found.column_names != list(names):
        verdict.wrong.append(f"{name}: the columns are {found.column_names}")
        return
    limit = plan.request.limit
    wanted = expected.num_rows if limit is None else min(limit, expected.num_rows)
    missing, again, strays = _compared(found, expected.select(names))
    if limit is not None:
        missing = max(0, wanted - found.num_rows)
    if limit is not None and found.num_rows > limit:
        verdict.wrong.append(f"{name}: {found.num_rows} rows, and the limit was {limit}")
    verdict.gaps += missing
    verdict.overlaps += again
    verdict.strays += strays
    if missing or again or strays:
        verdict.wrong.append(
            f"{name}: {missing} of {wanted} rows are missing, {again} are there again, {strays} are none of that "
            f"prefix; {plan.request}"
        )


def _compared(found: pa.Table, expected: pa.Table) -> tuple[int, int, int]:
    rows = np.concatenate([_matrix(expected.columns), _matrix(found.columns)])
    if not len(rows):
        return 0, 0, 0
    _, which = np.unique(rows, axis=0, return_inverse=True)
    which = which.reshape(-1)
    count = int(which.max()) + 1
    wanted = np.bincount(which[: expected.num_rows], minlength=count)
    there = np.bincount(which[expected.num_rows :], minlength=count)
    beyond = np.maximum(there - wanted, 0)
    return int(np.maximum(wanted - there, 0).sum()), int(beyond[wanted > 0].sum()), int(beyond[wanted == 0].sum())


def _matrix(columns: Iterable[pa.ChunkedArray]) -> np.ndarray:
    return np.stack([column.to_numpy() for column in columns], axis=1)
