"""A table and rounds on it, as the core drives them."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from laketier.kit.manifests import ManifestLog
from laketier.spi import (
    CommitterInitContext,
    LakeStorageConfig,
    PartitionField,
    ScanRequest,
    TableDescriptor,
    TableInfo,
    TablePath,
    Token,
    WriteMode,
    WriteResult,
    WriterInitContext,
    new_attempt_id,
)
from laketier.tiering import RoundResult, TieringRound
from laketier_localfile.options import LocalFileOptions
from laketier_localfile.plugin import LocalFilePlugin
from laketier_localfile.table import LocalFileTable

# The fork server finds the module by its plain name, as every process of multiprocessing does.
sys.path.append(str(Path(__file__).parent))
from localfile_child import Child

SCHEMA = pa.schema([("id", pa.int64()), ("region", pa.string())])


@dataclass
class Table:
    """One table, driven through the SPI."""

    warehouse: Path
    path: TablePath = field(default_factory=lambda: TablePath("db", "events"))
    schema: pa.Schema = SCHEMA
    partition_by: tuple[str, ...] = ()
    buckets: Any = None
    primary_key: tuple[str, ...] = ()
    options: LocalFileOptions = field(default_factory=LocalFileOptions)

    @property
    def storage(self) -> Any:
        return LocalFilePlugin().create_storage(LakeStorageConfig(str(self.warehouse), self.options))

    def create(self) -> TableInfo:
        partition_by = tuple(map(PartitionField.parse, self.partition_by))
        return self.storage.catalog().create_table(
            self.path, TableDescriptor(self.schema, partition_by, buckets=self.buckets, primary_key=self.primary_key)
        )

    @property
    def info(self) -> TableInfo:
        return self.storage.catalog().load_table(self.path)

    @property
    def location(self) -> Path:
        return self.warehouse / self.path.database / self.path.table

    @property
    def log(self) -> ManifestLog:
        return LocalFileTable(self.location).manifests()

    @property
    def factory(self) -> Any:
        return self.storage.tiering_factory(self.info)

    def committer(self, mode: WriteMode = WriteMode.APPEND, commit_id: str | None = None) -> Any:
        return self.factory.create_committer(CommitterInitContext(commit_id or new_attempt_id(), mode))

    def stage(self, rows: Sequence[dict[str, Any]], schema: pa.Schema | None = None) -> WriteResult:
        writer = self.factory.create_writer(WriterInitContext(new_attempt_id()))
        if rows:
            writer.write(pa.RecordBatch.from_pylist(list(rows), schema=schema or self.schema))
        return writer.complete()

    def ids(self, epoch: int, rows: int = 4) -> list[dict[str, Any]]:
        return [{"id": epoch * 1000 + i, "region": f"r{i}"} for i in range(rows)]

    def round(
        self,
        epoch: int | None,
        rows: Sequence[dict[str, Any]] | None = None,
        *,
        pipeline: str = "p",
        mode: WriteMode = WriteMode.APPEND,
    ) -> RoundResult:
        token = None if epoch is None else Token(pipeline, "run", epoch)
        staged = self.stage(self.ids(epoch or 0) if rows is None else rows)
        return TieringRound(self.factory, token=token, mode=mode).commit([staged])

    def scan(self, **request: Any) -> pa.Table:
        source = self.storage.source(self.info)
        plan = source.plan(ScanRequest(**request))
        batches = [batch for split in plan.splits for batch in source.read(split, plan.schema)]
        return pa.Table.from_batches(batches, schema=plan.schema)

    def read_ids(self, **request: Any) -> list[int]:
        return sorted(self.scan(**request).column("id").to_pylist())

    def plain_files(self) -> list[Path]:
        """What a reader of Hive-style folders takes for data: no part of the path begins with _ or a dot."""
        return sorted(
            path
            for path in self.location.rglob("*")
            if path.is_file() and not any(p[0] in "_." for p in path.relative_to(self.location).parts)
        )

    def staged_files(self) -> list[Path]:
        return sorted((self.location / "__in_progress").iterdir())

    def child(self, failpoints: str, *epochs: int, mode: str = "append", pipeline: str = "p", **options: Any) -> Child:
        """Run rounds in a process of its own, with failpoints on."""
        return Child(
            {
                "failpoints": failpoints,
                "warehouse": str(self.warehouse),
                "table": str(self.path),
                "epochs": epochs,
                "mode": mode,
                "pipeline": pipeline,
                "options": options,
            }
        )


@pytest.fixture
def make_table(tmp_path: Path) -> Callable[..., Table]:
    def make(**options: Any) -> Table:
        table = Table(tmp_path / "lake", **options)
        table.create()
        return table

    return make


@pytest.fixture
def table(make_table: Callable[..., Table]) -> Table:
    return make_table()


@pytest.fixture
def other_device(tmp_path: Path) -> Iterator[Path]:
    """A folder on another file system than the warehouse's."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        assert os.stat(folder).st_dev != tmp_path.stat().st_dev
        yield Path(folder)
