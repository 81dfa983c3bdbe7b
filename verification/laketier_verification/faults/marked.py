"""A table whose rows say which round put them there, and by whose hand: (epoch, driver, part, row)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from laketier.config import parse_options
from laketier.registry import load_format
from laketier.spi import (
    Feature,
    LakeStorage,
    LakeStorageConfig,
    LakeStoragePlugin,
    PartitionField,
    ScanRequest,
    TableDescriptor,
    TableInfo,
    TablePath,
    Token,
    WriteResult,
    WriterInitContext,
    new_attempt_id,
    support_of,
    unpack,
)
from laketier.tables.scan import scan
from laketier.tiering import RetryPolicy, RoundResult, TieringRound, write_task

SCHEMA = pa.schema([("epoch", pa.int64()), ("driver", pa.string()), ("part", pa.string()), ("row", pa.int64())])
PATIENT = RetryPolicy(conflicts=10_000, unknowns=100, first_wait_seconds=0.001, longest_wait_seconds=0.05)
"""Nobody gives up because the others are many."""

Marks = Counter[tuple[int, str]]
"""How many rows each (epoch, driver) has."""


def rows_of(epoch: int, driver: str, count: int, part: str = "a", first: int = 0) -> pa.RecordBatch:
    columns = [
        pa.array([epoch] * count, pa.int64()),
        pa.array([driver] * count, pa.string()),
        pa.array([part] * count, pa.string()),
        pa.array(range(first, first + count), pa.int64()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


@dataclass(frozen=True)
class MarkedTable:
    """One table ``db.t`` of a warehouse. Each use opens it afresh, as another process would."""

    format: str
    warehouse: str
    options: Mapping[str, str] = field(default_factory=dict)
    path: TablePath = field(default_factory=lambda: TablePath("db", "t"))

    @cached_property
    def plugin(self) -> LakeStoragePlugin:
        """Found once per process, as in a real driver."""
        return load_format(self.format)

    @property
    def storage(self) -> LakeStorage:
        options = parse_options(
            self.plugin.options_type, self.options, prefix=f"lake.{self.format}.", origin="the fault tests"
        )
        return self.plugin.create_storage(LakeStorageConfig(self.warehouse, options))

    @property
    def info(self) -> TableInfo:
        return self.storage.catalog().load_table(self.path)

    @property
    def factory(self) -> Any:
        storage = self.storage
        return storage.tiering_factory(storage.catalog().load_table(self.path))

    @property
    def location(self) -> Path:
        """The table's folder."""
        return Path(self.info.location.removeprefix("file://"))

    def create(self, *, partitioned: bool = False, properties: Mapping[str, str] | None = None) -> MarkedTable:
        """Make the table. Partitioned by ``part``, where the format can."""
        by_part = partitioned and support_of(self.plugin.features, Feature.PARTITIONING).full
        descriptor = TableDescriptor(
            SCHEMA, (PartitionField.parse("part"),) if by_part else (), properties=dict(properties or {})
        )
        self.storage.catalog().create_table(self.path, descriptor)
        return self

    def stage(self, factory: Any, tasks: Sequence[Sequence[pa.RecordBatch]]) -> list[WriteResult]:
        """One task for each list of batches."""
        return [
            unpack(
                factory.write_result_serializer,
                write_task(factory, batches, WriterInitContext(attempt=new_attempt_id(), split_index=index)),
            )
            for index, batches in enumerate(tasks)
        ]

    def append(self, epoch: int, *batches: pa.RecordBatch, pipeline: str = "p") -> RoundResult:
        """A whole round, one task for each batch; a round of one row without any."""
        batches = batches or (rows_of(epoch, "ours", 1),)
        return self.round(epoch, [[batch] for batch in batches], pipeline)

    def round(self, epoch: int, tasks: Sequence[Sequence[pa.RecordBatch]], pipeline: str = "p") -> RoundResult:
        """A whole round, one task for each list of batches."""
        factory = self.factory
        tiering = TieringRound(factory, token=Token(pipeline, "run", epoch), policy=PATIENT)
        tiering.begin()
        return tiering.commit(self.stage(factory, tasks))

    def read(self) -> pa.Table:
        """As our source sees it."""
        schema, batches = scan(self.storage.source(self.info), ScanRequest())
        return pa.Table.from_batches(batches, schema=schema)

    def marks(self) -> Marks:
        return marks_of(self.read())


def marks_of(table: pa.Table) -> Marks:
    """Count the rows of each round. Raises `AssertionError` when one of its rows is there twice."""
    distinct = table.select(["epoch", "driver", "part", "row"]).group_by(["epoch", "driver", "part", "row"])
    doubled = distinct.aggregate([([], "count_all")]).column("count_all").to_pylist()
    assert all(count == 1 for count in doubled), "a row is in the table twice"
    counted = table.group_by(["epoch", "driver"]).aggregate([([], "count_all")])
    return Counter(
        {
            (epoch, driver): count
            for epoch, driver, count in zip(
                *(counted.column(name).to_pylist() for name in ("epoch", "driver", "count_all")), strict=True
            )
        }
    )
