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

    def land(self, epoch: int | None, *results: WriteResult, mode: WriteMode) -> RoundResult:
        """A whole round of what was staged before."""
        round_ = self.round(epoch, mode=mode)
        round_.begin()
        return round_.commit(results)

    def append(self, epoch: int | None, *ids: int, **more: Any) -> RoundResult:
        return self.round(epoch, **more).commit([self.stage(self.rows(*ids))] if ids else [])

    def open(self) -> lance.LanceDataset:
        return lance.dataset(self.location)

    def ids(self) -> list[int]:
        return sorted(self.open().to_table(columns=["id"]).column("id").to_pylist())

    def fragments(self, *ids: int) -> list[str]:
        """The names of the splits' fragments that hold any of ``ids``."""
        source = self.storage.source(self.info)
        plan = source.plan(ScanRequest(columns=("id",)))
        return [
            name
            for split in plan.splits
            if any(not set(ids).isdisjoint(b["id"].to_pylist()) for b in source.read(split, plan.schema))
            for name in split.files
        ]

    def foreign(self, change: str) -> None:
        FOREIGN[change](self)

    def data_files(self) -> list[str]:
        return sorted(path.name for path in (Path(self.location) / "data").glob("*"))

    def scan(self, **request: Any) -> pa.Table:
        source = self.storage.source(self.info)
        plan = source.plan(ScanRequest(**request))
        batches = [batch for split in plan.splits for batch in source.read(split, plan.schema)]
        assert all(batch.schema.equals(plan.schema, check_metadata=True) for batch in batches)
        return pa.Table.from_batches(batches, plan.schema)


def _append(table: LanceTable) -> None:
    lance.write_dataset(pa.Table.from_batches([table.rows(90)]), table.location, mode="append")


def _delete(table: LanceTable) -> None:
    table.open().delete("id = 1")


def _compaction(table: LanceTable) -> None:
    table.open().optimize.compact_files()


def _add(table: LanceTable) -> None:
    table.open().add_columns(pa.schema([pa.field("more", pa.int32())]))


def _drop(table: LanceTable) -> None:
    table.open().drop_columns(["name"])


def _rename(table: LanceTable) -> None:
    table.open().alter_columns({"path": "name", "name": "title"})


def _cast(table: LanceTable) -> None:
    table.open().alter_columns({"path": "id", "data_type": pa.int32()})


def _overwrite(table: LanceTable) -> None:
    lance.write_dataset(pa.Table.from_batches([table.rows(91)]), table.location, mode="overwrite")


def _restore(table: LanceTable) -> None:
    lance.dataset(table.location, version=2).restore()


def _metadata(table: LanceTable) -> None:
    table.open().update_schema_metadata({"a": "b"})


def _update(table: LanceTable) -> None:
    table.open().update({"name": "'x'"}, where="id = 2")


def _merge_insert(table: LanceTable) -> None:
    merge = table.open().merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merge.execute(pa.Table.from_batches([table.rows(2, 92)]))


def _other_pipeline(table: LanceTable) -> None:
    table.append(0, 93, pipeline="q")


def _index(table: LanceTable) -> None:
    table.open().create_scalar_index("id", "BTREE")


def _upsert(table: LanceTable) -> None:
    merge = table.open().merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    schema = table.open().schema.remove_metadata()
    merge.execute(pa.Table.from_pylist([{"id": 94, "name": "m", "more": 1}], schema=schema))


def _config(table: LanceTable) -> None:
    table.open().update_config({"a": "b"})


FOREIGN: dict[str, Callable[[LanceTable], None]] = {
    "append": _append,
    "delete": _delete,
    "compaction": _compaction,
    "add": _add,
    "drop": _drop,
    "rename": _rename,
    "cast": _cast,
    "overwrite": _overwrite,
    "restore": _restore,
    "metadata": _metadata,
    "update": _update,
    "merge insert": _merge_insert,
    "other pipeline": _other_pipeline,
    "index": _index,
    "upsert": _upsert,
    "config": _config,
}
"""What others may do to a table, by name: see `LanceTable.foreign`."""


@pytest.fixture
def table(tmp_path: Path) -> LanceTable:
    return LanceTable(tmp_path / "lake")


@pytest.fixture
def make_table(tmp_path: Path) -> Callable[..., LanceTable]:
    def make(schema: pa.Schema = SCHEMA, **options: Any) -> LanceTable:
        return LanceTable(tmp_path / f"lake{len(list(tmp_path.iterdir()))}", schema, LanceOptions(**options))

    return make
