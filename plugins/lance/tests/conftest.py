"""A warehouse, and a table in it that is driven as the core drives one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from laketier.spi import (
    LakeStorageConfig,
    ScanRequest,
    TableDescriptor,
    TablePath,
    Token,
    WriteMode,
    WriteResult,
    WriterInitContext,
    new_attempt_id,
)
from laketier.tiering import RoundResult, TieringRound
from laketier_lance.options import LanceOptions
from laketier_lance.plugin import LancePlugin

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.string())])


class LanceTable:
    """One table, its storage and its factory."""

    def __init__(self, warehouse: Path, schema: pa.Schema = SCHEMA, options: LanceOptions | None = None) -> None:
        self.warehouse = warehouse
        self.schema = schema
        self.options = options or LanceOptions()
        self.storage = LancePlugin().create_storage(LakeStorageConfig(str(warehouse), self.options))
        self.path = TablePath("db", "t")
        self.info = self.storage.catalog().create_table(self.path, TableDescriptor(schema))
        self.factory = self.storage.tiering_factory(self.info)
        self.location = self.info.location

    def reload(self) -> None:
        self.info = self.storage.catalog().load_table(self.path)
        self.factory = self.storage.tiering_factory(self.info)

    def rows(self, *ids: int) -> pa.RecordBatch:
        return pa.record_batch([pa.array(ids, pa.int64()), pa.array([f"n{i}" for i in ids])], schema=SCHEMA)

    def stage(self, *batches: pa.RecordBatch) -> WriteResult:
        writer = self.factory.create_writer(WriterInitContext(new_attempt_id()))
        for batch in batches:
            writer.write(batch)
        return writer.complete()

    def round(
        self, epoch: int | None, *, pipeline: str = "p", run: str = "r", mode: WriteMode = WriteMode.APPEND, **more: Any
    ) -> TieringRound:
        token = None if epoch is None else Token(pipeline, run, epoch, **more)
        return TieringRound(self.factory, token=token, mode=mode)

    def append(self, epoch: int | None, *ids: int, **more: Any) -> RoundResult:
        return self.round(epoch, **more).commit([self.stage(self.rows(*ids))] if ids else [])

    def open(self) -> lance.LanceDataset:
        return lance.dataset(self.location)

    def ids(self) -> list[int]:
        return sorted(self.open().to_table(columns=["id"]).column("id").to_pylist())

    def data_files(self) -> list[str]:
        return sorted(path.name for path in (Path(self.location) / "data").glob("*"))

    def scan(self, **request: Any) -> pa.Table:
        source = self.storage.source(self.info)
        plan = source.plan(ScanRequest(**request))
        batches = [batch for split in plan.splits for batch in source.read(split, plan.schema)]
        assert all(batch.schema.equals(plan.schema, check_metadata=True) for batch in batches)
        return pa.Table.from_batches(batches, plan.schema)


@pytest.fixture
def table(tmp_path: Path) -> LanceTable:
    return LanceTable(tmp_path / "lake")


@pytest.fixture
def make_table(tmp_path: Path) -> Callable[..., LanceTable]:
    def make(schema: pa.Schema = SCHEMA, **options: Any) -> LanceTable:
        return LanceTable(tmp_path / f"lake{len(list(tmp_path.iterdir()))}", schema, LanceOptions(**options))

    return make
