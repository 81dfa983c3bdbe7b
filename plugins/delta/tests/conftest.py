from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from laketier.registry import load_format
from laketier.spi import (
    BucketSpec,
    CommitterInitContext,
    LakeStorageConfig,
    PartitionField,
    Predicate,
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

PATH = TablePath("db", "t")
IDS = pa.schema([("id", pa.int64()), ("v", pa.string())])


@dataclass
class DeltaLake:
    """One warehouse, driven as the core drives it."""

    warehouse: str
    options: Mapping[str, Any]

    @property
    def storage(self) -> Any:
        plugin = load_format("delta")
        return plugin.create_storage(LakeStorageConfig(self.warehouse, plugin.options_type(**self.options)))

    @property
    def table(self) -> TableInfo:
        return self.storage.catalog().load_table(PATH)

    @property
    def uri(self) -> str:
        return f"{self.warehouse}/{PATH.database}/{PATH.table}"

    def create(
        self, schema: pa.Schema = IDS, *partitions: str, buckets: BucketSpec | None = None, **properties: str
    ) -> TableInfo:
        descriptor = TableDescriptor(
            schema,
            tuple(map(PartitionField.parse, partitions)),
            buckets,
            properties={key.replace("__", "."): value for key, value in properties.items()},
        )
        return self.storage.catalog().create_table(PATH, descriptor)

    def factory(self) -> Any:
        return self.storage.tiering_factory(self.table)

    def stage(self, data: pa.Table, factory: Any = None) -> WriteResult:
        factory = factory or self.factory()
        with factory.create_writer(WriterInitContext(attempt=new_attempt_id())) as writer:
            for batch in data.to_batches():
                writer.write(batch)
            return writer.complete()

    def append(self, data: pa.Table, *, mode: WriteMode = WriteMode.APPEND, token: Token | None = None) -> RoundResult:
        factory = self.factory()
        tiering = TieringRound(factory, token=token, mode=mode)
        tiering.begin()
        return tiering.commit([self.stage(data, factory)])

    def epoch(self, epoch: int, data: pa.Table | None = None, pipeline: str = "p", **round: Any) -> RoundResult:
        data = ids(epoch) if data is None else data
        return self.append(data, token=Token(pipeline, "run", epoch, content=str(epoch)), **round)

    def committer(self, mode: WriteMode = WriteMode.APPEND, commit_id: str | None = None) -> Any:
        return self.factory().create_committer(CommitterInitContext(commit_id or new_attempt_id(), mode))

    def read(self, *filters: Predicate, **request: Any) -> pa.Table:
        source = self.storage.source(self.table)
        plan = source.plan(ScanRequest(filters=filters, **request))
        batches = [batch for split in plan.splits for batch in source.read(split, plan.schema)]
        return pa.Table.from_batches(batches, schema=plan.schema)


def ids(*values: int) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64()), "v": pa.array([f"v{value}" for value in values])})


def watermark(epoch: int, pipeline: str = "p", commit_id: str = "c") -> Watermark:
    return Watermark(Token(pipeline, "run", epoch), commit_id)


def values(table: pa.Table, column: str = "id") -> list[Any]:
    return sorted(table.column(column).to_pylist())


class Support:
    """What tests share: importlib's import mode has no modules to import it from."""

    PATH = PATH
    IDS = IDS
    ids = staticmethod(ids)
    watermark = staticmethod(watermark)
    values = staticmethod(values)
    DeltaLake = DeltaLake


@pytest.fixture(scope="session")
def support() -> type[Support]:
    return Support


@pytest.fixture
def lake(tmp_path: Path) -> DeltaLake:
    return DeltaLake(str(tmp_path / "warehouse"), {})


@pytest.fixture
def lake_with(tmp_path: Path) -> Any:
    def make(**options: Any) -> DeltaLake:
        return DeltaLake(str(tmp_path / "warehouse"), options)

    return make
