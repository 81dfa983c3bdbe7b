"""Stages Parquet data files. Executor: pyarrow, and pyiceberg_core where the table has partition transforms."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from laketier.kit.file_names import ID, PREFIX, SUFFIX, NameSettings, attempt_of_spelling, spelled
from laketier.kit.parquet import ClosedFile, ParquetSettings, RollingParquetWriter
from laketier.spi import LakeWriter, Passthrough, StagedFile, TableInfo, WriteResult
from laketier_iceberg.files import Files
from laketier_iceberg.metrics import Leaf, collect, leaves
from laketier_iceberg.partitions import PartitionPlan

_NAME = re.compile(rf"(?:^|/){PREFIX}\d{{5,}}-(?P<attempt>{ID})-\d{{5,}}{SUFFIX}\.parquet\Z")


AFTER = "after"
"""In a payload: `WriterPlan.sequence`."""


@dataclass(frozen=True)
class WriterPlan:
    """The table's settings for a writer, as plain data. Made on the driver."""

    table: TableInfo
    partitions: PartitionPlan
    parquet: ParquetSettings
    metrics: Mapping[str, str]
    data: str
    """Where data files go: below the table's location, or elsewhere (``write.data.path``)."""
    io: Passthrough
    """Properties of the table's FileIO; may hold secrets."""
    names: NameSettings = field(default_factory=NameSettings)
    sequence: int = 0
    """The table's last sequence number: no snapshot up to it has a file of these writers."""

    @property
    def base(self) -> str:
        """What the paths of staged files are relative to: the table's location, or the data folder elsewhere."""
        location = self.table.location.rstrip("/")
        return location if f"{self.data}/".startswith(f"{location}/") else self.data


def attempt_of(path: str) -> str | None:
    """The attempt that wrote a data file. None for files of other writers."""
    match = _NAME.search(path)
    return attempt_of_spelling(match["attempt"]) if match else None


class IcebergWriter(LakeWriter[WriteResult]):
    """Writes one attempt's rows into data files with unguessable names, flat in the table's data folder.

    Flat, because a folder named ``column=value`` makes readers of plain Parquet add a column, and Iceberg itself
    never reads the path.
    """

    def __init__(self, plan: WriterPlan, attempt: str, split_index: int) -> None:
        self._plan = plan
        self._attempt = attempt
        self._split_index = split_index
        self._files = Files(plan.io)
        self._count = 0
        self._leaves = leaves(plan.table.schema)
        self._floats: dict[str, Leaf] = {
            leaf.name: leaf for leaf in self._leaves if _may_be_nan(leaf, plan.table.schema)
        }
        self._with_nan: set[str] = set()
        self._parquet = RollingParquetWriter(
            plan.table.schema,
            self._create,
            plan.parquet,
            keys=plan.partitions.keys if plan.partitions.fields else None,
            on_closed=self._files.make_durable,
        )

    def write(self, batch: pa.RecordBatch) -> None:
        for name in self._floats.keys() - self._with_nan:
            index = batch.schema.get_field_index(name)
            if index >= 0 and _has_nan(batch.column(index)):
                self._with_nan.add(name)
        self._parquet.write(batch)

    def complete(self) -> WriteResult:
        closed = self._parquet.close()
        if closed:
            self._files.make_names_durable(self._plan.data)
        no_nan = {leaf.field_id for name, leaf in self._floats.items() if name not in self._with_nan}
        return WriteResult.of(self._plan.table, self._attempt, tuple(self._staged(file, no_nan) for file in closed))

    def abort(self) -> None:
        self._parquet.abandon()
        for path in self._parquet.paths:
            self._files.delete(path)

    def _create(self, partition: tuple[Any, ...]) -> tuple[str, pa.NativeFile]:
        names = self._plan.names
        stem = f"{self._split_index:05d}-{spelled(self._attempt, names.file_names)}-{self._count:05d}"
        location = f"{self._plan.data}/{names.file_prefix}{stem}{names.file_suffix}.parquet"
        self._count += 1
        return location, self._files.create(location)

    def _staged(self, file: ClosedFile, no_nan: set[int]) -> StagedFile:
        partitions = self._plan.partitions
        metrics = collect(file.footer, self._leaves, self._plan.metrics, no_nan)
        return StagedFile(
            path=file.path.removeprefix(f"{self._plan.base}/"),
            rows=file.rows,
            bytes=file.bytes,
            partition=partitions.text(file.partition),
            bucket=partitions.bucket(file.partition),
            payload={
                "metrics": metrics.to_json(),
                "partition": partitions.to_json(file.partition),
                AFTER: str(self._plan.sequence),
            },
        )


def _has_nan(array: pa.Array) -> bool:
    return pt.is_floating(array.type) and bool(pc.any(pc.is_nan(array)).as_py())


def _may_be_nan(leaf: Leaf, schema: pa.Schema) -> bool:
    return pt.is_floating(leaf.type) and not leaf.repeated and leaf.name in schema.names
