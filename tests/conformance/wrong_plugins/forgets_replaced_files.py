"""Results have a serializer of their own, from the time before they could replace files."""

from __future__ import annotations

from dataclasses import dataclass

from crooked import CrookedFactory, CrookedPlugin

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_serializer.py::test_the_names_of_replaced_files_travel"
SAYS = "a result that replaces files, packed and unpacked"


@dataclass(frozen=True)
class Sent:
    attempt: str
    table: str
    schema: str
    spec: int
    files: tuple[spi.StagedFile, ...]


class OldSerializer(spi.SimpleVersionedSerializer[spi.WriteResult]):
    version = 1

    def serialize(self, value: spi.WriteResult) -> bytes:
        sent = Sent(value.attempt, value.table_uuid, value.schema_fingerprint, value.spec_id, value.files)
        return spi.DataclassSerializer(Sent).serialize(sent)

    def deserialize(self, version: int, data: bytes) -> spi.WriteResult:
        sent = spi.DataclassSerializer(Sent).deserialize(version, data)
        return spi.WriteResult(
            attempt=sent.attempt,
            table_uuid=sent.table,
            schema_fingerprint=sent.schema,
            spec_id=sent.spec,
            files=sent.files,
        )


class OldFactory(CrookedFactory):
    @property
    def write_result_serializer(self) -> spi.SimpleVersionedSerializer[spi.WriteResult]:
        return OldSerializer()


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("forgets-replaced-files", factory=OldFactory)
