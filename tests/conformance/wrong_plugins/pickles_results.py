"""Write results travel as pickle, which runs whatever a message says."""

from __future__ import annotations

import pickle

from crooked import CrookedFactory, CrookedPlugin

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_serializer.py::test_nothing_is_unpickled"
SAYS = "a pickle is deserialised as a result: expected SerializationError, and no error was raised"


class PickleSerializer(spi.SimpleVersionedSerializer[spi.WriteResult]):
    version = 1

    def serialize(self, value: spi.WriteResult) -> bytes:
        return pickle.dumps(value, protocol=0)

    def deserialize(self, version: int, data: bytes) -> spi.WriteResult:
        try:
            result: spi.WriteResult = pickle.loads(data)  # noqa: S301 - this is the mistake
        except Exception as error:
            raise spi.SerializationError("damaged") from error
        return result


class PicklingFactory(CrookedFactory):
    @property
    def write_result_serializer(self) -> spi.SimpleVersionedSerializer[spi.WriteResult]:
        return PickleSerializer()


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("pickles-results", factory=PicklingFactory)
