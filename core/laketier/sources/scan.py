"""Scanning a lake table completely: what the format does not do of filters, limit and projection is done here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from laketier.spi import LakeSource, LakeSplit, ScanPlan, ScanRequest, columns_of, to_arrow


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
        left = self.limit
        names = self.schema.names
        condition = None
        for predicate in self.plan.remaining:
            expression = to_arrow(predicate)
            condition = expression if condition is None else condition & expression
        for batch in self.source.read(split, self.plan.schema):
            rows = batch if condition is None else batch.filter(condition)
            rows = rows.select(names).slice(0, left)
            if rows.num_rows:
                yield rows
            if left is not None:
                left -= rows.num_rows
                if left == 0:
                    return


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
    return planned.schema, _limited(planned)


def _limited(planned: Scan) -> Iterator[pa.RecordBatch]:
    left = planned.limit
    for split in planned.plan.splits:
        if left == 0:
            return
        for batch in planned.read(split):
            rows = batch.slice(0, left)
            yield rows
            if left is not None:
                left -= rows.num_rows
                if left == 0:
                    return
