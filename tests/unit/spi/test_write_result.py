"""A format's own write result: a subclass with fields of its own, which travels as the base does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pytest

from laketier.spi import (
    CommitterInitContext,
    DataclassSerializer,
    LakeCommitter,
    LakeTieringFactory,
    LakeWriter,
    SerializationError,
    SimpleVersionedSerializer,
    StagedFile,
    TableDescriptor,
    TableInfo,
    TablePath,
    WriteResult,
    WriterInitContext,
    pack,
    unpack,
)
from laketier.tiering import write_task

SCHEMA = pa.schema([("id", pa.int64())])
TABLE = TableInfo(TablePath("db", "t"), TableDescriptor(SCHEMA), "uuid", "/w/db/t", 1)


@dataclass(frozen=True, kw_only=True)
class ChunkResult(WriteResult):
    """With what a format may need for its commit: also a field named like a type."""

    chunks: tuple[StagedFile, ...] = ()
    digest: bytes = b""
    statistics: Mapping[str, int] = field(default_factory=dict, hash=False)
    level: int | None = None


class ChunkWriter(LakeWriter[ChunkResult]):
    def __init__(self, attempt: str) -> None:
        self.attempt, self.rows = attempt, 0

    def write(self, batch: pa.RecordBatch) -> None:
        self.rows += len(batch)

    def complete(self) -> ChunkResult:
        files = (StagedFile("a", self.rows, 8),)
        return ChunkResult.of(TABLE, self.attempt, files, digest=b"\x00\xff", statistics={"id": 1}, level=3)

    def abort(self) -> None:
        pass


@dataclass(frozen=True)
class ChunkFactory(LakeTieringFactory[ChunkResult]):
    def create_writer(self, context: WriterInitContext) -> ChunkWriter:
        return ChunkWriter(context.attempt)

    def create_committer(self, context: CommitterInitContext) -> LakeCommitter[ChunkResult]:
        raise NotImplementedError

    @property
    def write_result_serializer(self) -> SimpleVersionedSerializer[ChunkResult]:
        return DataclassSerializer(ChunkResult)


def test_a_subclass_is_made_of_a_table_with_its_own_fields() -> None:
    result = ChunkResult.of(TABLE, "a", (StagedFile("a", 2, 8),), digest=b"d")
    assert type(result) is ChunkResult
    assert (result.digest, result.rows, result.table_uuid) == (b"d", 2, "uuid")


def test_a_subclass_travels_from_a_task_to_the_driver() -> None:
    factory = ChunkFactory()
    message = write_task(factory, [pa.record_batch({"id": [1, 2]})], WriterInitContext("a"), ["gone.feather"])
    result = unpack(factory.write_result_serializer, message)
    assert type(result) is ChunkResult
    assert result == ChunkResult.of(
        TABLE,
        "a",
        (StagedFile("a", 2, 8),),
        replaced=("gone.feather",),
        digest=b"\x00\xff",
        statistics={"id": 1},
        level=3,
    )
    assert replace(result, replaced=()).level == 3


def test_a_result_that_the_serializer_would_cut_is_refused_where_it_is_made() -> None:
    """Without a serializer of its own: the driver would refuse it, long after and far away."""
    with pytest.raises(SerializationError, match=r"a ChunkResult was given to the serializer of WriteResult.*Override"):
        pack(DataclassSerializer(WriteResult), ChunkResult.of(TABLE, "a", ()))
