"""A file is sent as its path, rows and bytes. Its partition is in its path."""

from __future__ import annotations

from dataclasses import dataclass

from crooked import CrookedFactory
from richer import richer

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_layout.py::test_results_name_their_partitions"
SAYS = "the partitions that a result names"


@dataclass(frozen=True)
class Sent:
    attempt: str
    table: str
    schema: str
    spec: int
    files: tuple[tuple[str, int, int], ...]
    replaced: tuple[str, ...]


class SmallSerializer(spi.SimpleVersionedSerializer[spi.WriteResult]):
    version = 1

    def serialize(self, value: spi.WriteResult) -> bytes:
        files = tuple((file.path, file.rows, file.bytes) for file in value.files)
        sent = Sent(value.attempt, value.table_uuid, value.schema_fingerprint, value.spec_id, files, value.replaced)
        return spi.DataclassSerializer(Sent).serialize(sent)

    def deserialize(self, version: int, data: bytes) -> spi.WriteResult:
        sent = spi.DataclassSerializer(Sent).deserialize(version, data)
        return spi.WriteResult(
            attempt=sent.attempt,
            table_uuid=sent.table,
            schema_fingerprint=sent.schema,
            spec_id=sent.spec,
            files=tuple(spi.StagedFile(*file) for file in sent.files),
            replaced=sent.replaced,
        )


class SmallFactory(CrookedFactory):
    @property
    def write_result_serializer(self) -> spi.SimpleVersionedSerializer[spi.WriteResult]:
        return SmallSerializer()


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return richer("forgets-partitions-on-the-way", factory=SmallFactory)
