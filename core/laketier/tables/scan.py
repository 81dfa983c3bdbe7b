"""Scanning a lake table completely: what the format does not do of filters, limit and projection is done here."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from laketier.kit.views import only
from laketier.spi import LakeSource, LakeSplit, Predicate, ScanPlan, ScanRequest, columns_of, to_arrow


@dataclass(frozen=True)
class Scan:
    """A planned scan whose splits can be read one by one, on any process: `read` yields exactly ``schema``, with all
    filters applied. The limit holds per split; over all splits the reader stops by itself."""

    source: LakeSource
    plan: ScanPlan
    schema: pa.Schema
    limit: int | None

    def for_tasks(self) -> Scan:
        """The same without its splits, which travel to their tasks one by one."""
        return replace(self, plan=replace(self.plan, splits=()))

    def read(self, split: LakeSplit) -> Iterator[pa.RecordBatch]:
        """Read one split, on an executor."""
        names = self.schema.names
        condition = condition_of(self.plan.remaining, self.plan.schema)
        batches = self.source.read(split, self.plan.schema)
        kept = (batch if condition is None else only(batch, condition) for batch in batches)
        return limited((rows.select(names) for rows in kept if rows.num_rows), self.limit)


def plan_scan(source: LakeSource, request: ScanRequest) -> Scan:
    """Plan on the driver. A filter's columns are read also when they are not wanted, and dropped afterwards."""
    wanted = request.columns
    needed = wanted
    if wanted is not None:
        hidden = sorted(columns_of(request.filters).difference(wanted))
        needed = (*wanted, *hidden)
    plan = source.plan(replace(request, columns=needed))
    schema = plan.schema if wanted is None else pa.schema([plan.schema.field(name) for name in wanted])
    return Scan(source, plan, schema, request.limit)


def scan(source: LakeSource, request: ScanRequest) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Plan and read in this process: the schema, and the rows that the request asks for, no more."""
    planned = plan_scan(source, request)
    batches = (batch for split in planned.plan.splits for batch in planned.read(split))
    return planned.schema, limited(batches, planned.limit)


def condition_of(predicates: Sequence[Predicate], schema: pa.Schema) -> Any:
    """Their conjunction as an Arrow expression for rows of ``schema``; None where there are none."""
    expressions = [to_arrow(predicate, schema) for predicate in predicates]
    return functools.reduce(operator.and_, expressions) if expressions else None


def limited(batches: Iterable[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    """Their first ``limit`` rows (None: all), and no batch asked for beyond these."""
    if limit is None:
        yield from batches
        return
    left = limit
    if not left:
        return
    for batch in batches:
        taken = min(left, batch.num_rows)  # a limit may be beyond what Arrow counts
        yield batch.slice(0, taken)
        left -= taken
        if not left:
            return
