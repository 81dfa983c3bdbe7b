from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from laketier.spi import (
    CommitterInitContext,
    LakeStorageConfig,
    LakeTieringFactory,
    PartitionField,
    ScanRequest,
    TableDescriptor,
    TableInfo,
    TablePath,
    Token,
    Watermark,
    WriteMode,
    WriteResult,
    WriterInitContext,
    new_attempt_id,
)
from laketier.tiering import RoundResult, TieringRound
from laketier_iceberg.connection import disconnect
from laketier_iceberg.loading import load
from laketier_iceberg.options import IcebergOptions
from laketier_iceberg.plugin import IcebergPlugin
from laketier_iceberg.storage import IcebergStorage

SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("s", pa.string())])


@dataclass
class Fixture:
    """One table with what a test does to it."""

    storage: IcebergStorage
    info: TableInfo
    factory: LakeTieringFactory[WriteResult]

    @staticmethod
    def batch(start: int, stop: int) -> pa.RecordBatch:
        ids = range(start, stop)
        return pa.RecordBatch.from_pydict({"id": list(ids), "s": [f"v{i % 3}" for i in ids]}, schema=SCHEMA)

    @staticmethod
    def token(epoch: int, pipeline: str = "p", **rest: Any) -> Token:
        return Token(pipeline, "run", epoch, **rest)

    @staticmethod
    def watermark(epoch: int, commit_id: str = "c", pipeline: str = "p") -> Watermark:
        return Watermark(Token(pipeline, "run", epoch), commit_id)

    def stage(self, *batches: pa.RecordBatch) -> WriteResult:
        writer = self.factory.create_writer(WriterInitContext(new_attempt_id()))
        for each in batches:
            writer.write(each)
        return writer.complete()

    def round(self, token: Token | None, *batches: pa.RecordBatch, mode: WriteMode = WriteMode.APPEND) -> RoundResult:
        return TieringRound(self.factory, token=token, mode=mode).commit([self.stage(*batches)])

    def round_of(self, token: Token | None, *results: WriteResult) -> RoundResult:
        """Publish what was staged before."""
        return TieringRound(self.factory, token=token).commit(results)

    def committer(self, commit_id: str | None = None, mode: WriteMode = WriteMode.APPEND) -> Any:
        return self.factory.create_committer(CommitterInitContext(commit_id or new_attempt_id(), mode))

    def table(self) -> Any:
        return load(self.storage._settings, self.info.path)

    def ids(self) -> list[int]:
        return sorted(self.table().scan(selected_fields=("id",)).to_arrow()["id"].to_pylist())

    def read(self, **request: Any) -> pa.Table:
        source = self.storage.source(self.info)
        plan = source.plan(ScanRequest(**request))
        batches = [b for split in plan.splits for b in source.read(split, plan.schema)]
        return pa.Table.from_batches(batches, schema=plan.schema)


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "warehouse"
    disconnect()


@pytest.fixture
def storage(warehouse: Path) -> IcebergStorage:
    made = IcebergPlugin().create_storage(LakeStorageConfig(str(warehouse), IcebergOptions()))
    assert isinstance(made, IcebergStorage)
    return made


@pytest.fixture
def make(warehouse: Path) -> Callable[..., Fixture]:
    def build(
        schema: pa.Schema = SCHEMA,
        partition_by: tuple[PartitionField, ...] = (),
        options: IcebergOptions | None = None,
        properties: dict[str, str] | None = None,
        name: str = "events",
        **descriptor: Any,
    ) -> Fixture:
        opened = IcebergStorage(LakeStorageConfig(str(warehouse), options or IcebergOptions()))
        wanted = TableDescriptor(schema, partition_by, properties=properties or {}, **descriptor)
        info = opened.catalog().create_table(TablePath("db", name), wanted)
        # A test's own look is fresh each time, whatever it does to the table in between.
        return Fixture(opened, info.with_handle(None), opened.tiering_factory(info))

    return build


@pytest.fixture
def events(make: Callable[..., Fixture]) -> Fixture:
    return make()
